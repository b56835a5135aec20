"""One module a question; the only place where the stages meet."""
