"""Gates in CI."""
