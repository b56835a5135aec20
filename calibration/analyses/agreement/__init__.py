"""Inter-annotator agreement of a batch or a file of ratings.

`analysis` is of a batch of the store, `ratings` of a file; `traces` are behind each number;
`recommendations` follow from it. `sample_size` plans the number of shared traces.
"""
