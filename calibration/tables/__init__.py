"""Tables in CSV, JSONL, Parquet: `rows` with their line, typed `labels`, and their `vocabulary`.

`trials` are repeated runs of tasks, and descriptions of the tasks; `annotation_exports` are labels
that were made in other tools.
"""
