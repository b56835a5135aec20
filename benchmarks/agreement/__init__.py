"""How fast agreement is beside named peers, and how it grows: `make bench-agreement`."""
