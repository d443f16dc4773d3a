"""Frames between a client and its daemon, and both halves of the conversation. Pure."""
