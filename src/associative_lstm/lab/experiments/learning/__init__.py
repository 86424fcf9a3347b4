"""Figures 3 to 9 and 11 to 13: learning curves, and the verdicts on what the paper says of them."""
