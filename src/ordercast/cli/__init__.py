"""The command line: one file per command, drawing apart from doing."""
