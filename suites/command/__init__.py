"""The command line that every suite ends in: options, set-up, run, display, result and records."""
