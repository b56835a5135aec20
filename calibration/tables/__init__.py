"""Tables in CSV, JSONL, Parquet: `rows` with their line, typed `labels`, and their `vocabulary`."""
