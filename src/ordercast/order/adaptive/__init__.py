"""The adaptive engine: everybody multicasts at once, and the order follows places that members own by their rates.

Start reading at `slots.py` (who owns which place), `merge.py` (the one rule of delivery), `states/operational.py`.
"""
