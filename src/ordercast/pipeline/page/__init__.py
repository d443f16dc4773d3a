"""Pages that a person looks at first: one HTML file, plots inside as SVG, no script, nothing from the network. Pure.

`scales.py` finds ticks and writes numbers, `plot.py` and `strips.py` draw, `html.py` puts a page together. Nothing here
knows what the numbers mean.
"""
