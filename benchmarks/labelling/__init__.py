"""How fast the labelling desk is, how much it bears, and what it keeps: `make bench`."""
