"""Agreement between reviewers."""
