"""The Reliability page: `page`, the pictures it has by `draw`, and what both show from `data`."""
