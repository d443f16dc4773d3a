"""Several networks under one engine: the Totem Redundant Ring Protocol. `layer.py` is the way in."""
