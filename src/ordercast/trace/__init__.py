"""What nodes did: records (pure) and their files."""
