"""Rules of how reviewers are calibrated, and the statistics of it: plain data in and out."""
