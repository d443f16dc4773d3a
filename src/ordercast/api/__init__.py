"""What an application uses: a member of the cluster in its own process, clients of a daemon, their ordered streams."""
