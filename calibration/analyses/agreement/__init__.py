"""Inter-annotator agreement of a batch or a file of ratings."""
