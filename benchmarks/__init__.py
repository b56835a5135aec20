"""What is run by hand: ratios against named peers on one machine, and the screenshots."""
