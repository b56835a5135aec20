"""How fast prompts are built, and what the runner adds to a bare client: `make bench-judge`."""
