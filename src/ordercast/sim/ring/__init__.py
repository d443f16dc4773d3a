"""What the simulator knows of rings alone: who forges their packets, and who judges their tokens."""
