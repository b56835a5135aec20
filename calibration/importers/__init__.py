"""One module a trace format; each yields records."""
