"""The working state of the adaptive engine; all others are the membership's."""
