"""Practice, examinations and certificates."""
