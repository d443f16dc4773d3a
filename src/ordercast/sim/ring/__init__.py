"""What the simulator knows of rings alone: who forges their packets, judges their tokens, aims at their recovery."""
