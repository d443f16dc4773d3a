"""Reliable links between two processes, for every engine that has some: numbered packets, what is lost is asked for.

`link.py` is the face; it tells how an engine uses a link. `sender.py` and `receiver.py` are its two halves (the Hop
protocol, Figures 4.1 and 4.2 of the paper on wide area group communication), `codec.py` their bytes, `packing.py` what
travels in packets, `regulator.py` how much may be under way, `round_trip.py` what is known of the path, `config.py` the
timers.
"""
