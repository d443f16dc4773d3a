"""The thesis' Protocols 0 to 5 in a world of their own, and what they guarantee. (Chapters 6 and 7)

They are not engines: no view, no groups, one group of members and its sources. `world.py` is time, network, failures;
`fan.py` has Protocols 0 to 3, `atomic.py` Protocol 4, `rebuilt.py` Protocol 5; `rows.py` says what each meets and what
it does not. The judge is `checker/reliability`.
"""
