"""The project's own traces and their canonical labels."""
