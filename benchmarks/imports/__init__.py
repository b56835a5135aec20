"""How quickly trace files are imported, and in how much memory: `make bench-import`."""
