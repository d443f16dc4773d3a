"""What a daemon is told: the configuration file, its keys and their rules."""
