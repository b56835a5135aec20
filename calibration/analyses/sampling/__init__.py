"""Drawing and planning batches."""
