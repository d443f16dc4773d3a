"""Engines to compare others with: the papers' rivals. They run in the simulator alone, and promise what they have.

Start reading at `base.py`: fixed members, one configuration, links that lose nothing.
"""
