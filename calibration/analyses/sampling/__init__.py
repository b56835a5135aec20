"""Batches: `planning` their size, `draw` at random, `stratified` or by `escalation` of doubt."""
