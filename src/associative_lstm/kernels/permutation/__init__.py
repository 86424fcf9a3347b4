"""The permutation RNN."""
