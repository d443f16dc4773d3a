"""Many rings, one order over all of them: rings on separate broadcast domains, joined by gateways."""
