"""The sockets of a daemon, by network and lane."""
