"""The sockets of a daemon, by network and kind of traffic."""
