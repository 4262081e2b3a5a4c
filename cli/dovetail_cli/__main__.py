"""Runs the command line as `python -m dovetail_cli`."""

from dovetail_cli.entry import main

main()
