"""The command line of dovetail: commands, renderings, exit codes; everything else is in `dovetail`."""
