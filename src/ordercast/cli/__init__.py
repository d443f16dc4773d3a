"""The command line: one file per command, drawing apart from doing."""

INTERRUPTED = 130  # exit status
