"""Gates in CI: `run` measures what a gate file requires, `baseline` compares with a saved run."""
