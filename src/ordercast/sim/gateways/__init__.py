"""What the simulator knows of networks of rings."""
