"""Benchmarks that anyone can run; each file says how."""
