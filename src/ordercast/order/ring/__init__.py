"""The Totem single ring: total order by a token, above the membership that engines share. (Paper 000, chapter 4)

Start reading at `node.py`, then `states/`; the pure questions that the states ask are in the files beside.
"""
