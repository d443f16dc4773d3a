"""A real cluster on this machine that loses a member, splits, merges and grows, and is judged."""
