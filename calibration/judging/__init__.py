"""The LLM judge: walks the reviewers' tree over a trace, and leaves a verdict with its proof."""
