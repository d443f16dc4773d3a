"""Machine mutation: every rule is taken out in turn, and what nobody misses is listed. See `__main__.py`."""
