"""Rules for reviewers: `certification`, and the `quality` of their labels over time."""
