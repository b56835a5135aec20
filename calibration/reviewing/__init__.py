"""Who may label what: rules on records and counts, without SQL."""
