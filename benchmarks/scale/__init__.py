"""What a run costs on each engine."""
