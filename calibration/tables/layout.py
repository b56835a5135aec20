"""How ratings are laid out: a row a rating, or a column a rater."""
