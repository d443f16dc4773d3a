"""Ready structures: pure state machines, each with a front of typed methods."""
