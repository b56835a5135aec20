"""Reviewers: `progress`, `examinations` with `exam_report`, `drift` and `adjudication`."""
