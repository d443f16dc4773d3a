"""Messages over propagation graphs, and over the methods that the thesis compares them with, without failures.

No engine runs here: these are the paper's own models, for its tables and for what its proofs leave open. `schedule.py`
is the time, `walk.py` one message alone, `traffic.py` many at a time, `rivals.py` other methods.
"""
