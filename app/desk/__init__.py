"""The desk: reading a trace, walking the tree, adjudicating, by keyboard."""
