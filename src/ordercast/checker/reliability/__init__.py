"""A judge of the thesis' reliability guarantees: how soon a message is delivered, at whom, and in which order.

`events.py` is what happened, by a clock that no site has; `states.py` says who was awake, up and reachable when;
`properties.py` has the guarantees P0 to P4, Q0 to Q3, R0 to R3. (Thesis, chapter 6)
"""
