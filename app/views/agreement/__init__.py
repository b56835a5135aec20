"""Agreement between the reviewers of a batch."""
