"""pass@k and pass^k of many tasks, beside a plain loop and scorio."""
