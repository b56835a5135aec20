"""Tables in CSV, JSONL and Parquet: `rows` with their line, and typed `labels` and verdicts."""
