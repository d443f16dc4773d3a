"""The state in which a ring works, and what it does with the token."""
