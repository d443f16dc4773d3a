"""Rings far apart, one order over all of them: a ring inside each site, links of 10 to 200 ms between sites.

Start reading at `tape.py` (what a site's ring carries, and what each entry does), `order.py` (one order out of the
streams of a view), `plan.py` (what a view ends with), `speaker.py` (what the representative of a ring says on links).
"""
