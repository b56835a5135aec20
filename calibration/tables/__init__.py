"""Readers of labels, verdicts and rows from CSV, JSONL and Parquet files."""
