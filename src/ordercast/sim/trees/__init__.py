"""Who looks on when trees run in the simulator."""
