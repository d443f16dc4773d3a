"""Verdicts on recorded runs of any size and number: the checkers, spread over Spark."""
