"""Sealed runs: keys and their changes, an adversary on the network, and a witness of what passes the seal."""
