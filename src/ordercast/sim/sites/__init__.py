"""Who looks on when sites run in the simulator."""
