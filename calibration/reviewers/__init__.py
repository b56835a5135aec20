"""Certification, practice and quality control of reviewers."""
