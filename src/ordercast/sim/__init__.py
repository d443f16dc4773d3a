"""The pure layers under a virtual clock and a hostile network. A run is a function of (seed, options)."""
