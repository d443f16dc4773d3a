"""Engines that exist to be tested."""
