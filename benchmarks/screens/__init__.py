"""Screenshots of every page and of the states of the desk; the documents show some of them."""
