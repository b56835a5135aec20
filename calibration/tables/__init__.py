"""How tables are read, and tables in CSV, JSONL, Parquet.

What a table says: `words` of cells, `scales` of numbers, roles of `columns`, `layout` of ratings,
and `reading`, what was read and left out. On these: `rows` with their line, typed `labels`, and
their `vocabulary`; `trials` are repeated runs of tasks, and descriptions of the tasks;
`annotation_exports` are labels that were made in other tools.
"""
