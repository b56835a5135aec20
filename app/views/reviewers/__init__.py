"""Reviewers: progress, quality, certificates."""
