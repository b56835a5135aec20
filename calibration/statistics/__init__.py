"""Statistical primitives that every stage uses: numpy and scipy only."""
