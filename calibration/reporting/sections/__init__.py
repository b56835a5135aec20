"""What each report says, in which order."""
