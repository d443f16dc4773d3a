"""What the simulator knows of rings alone: who forges their packets, who judges their tokens, who aims at recovery."""
