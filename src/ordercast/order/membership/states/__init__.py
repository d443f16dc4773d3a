"""The states of the membership algorithm: one class each, which owns the data that exists only in that state."""
