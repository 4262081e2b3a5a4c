"""Runs the command line as `python -m dovetail_cli`."""

from dovetail_cli.main import main

main()
