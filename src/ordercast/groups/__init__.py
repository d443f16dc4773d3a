"""Light-weight named groups, cut out of the ordered stream of any engine. Pure. (Spread paper, section 6.4)"""
