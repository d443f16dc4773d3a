"""Who is in a configuration, and how its messages are finished: the part of an engine that does not order.

Start reading at `frame.py`, then `states/`; the pure questions that the states ask are in the files beside.
"""
