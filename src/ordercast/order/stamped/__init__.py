"""What engines share that make one order out of several streams, each of them stamped by its own ring."""
