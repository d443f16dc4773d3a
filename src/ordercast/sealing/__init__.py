"""Sealed packets between nodes: keys, lives, replay. A pure layer beneath `networks/`, above the driver."""
