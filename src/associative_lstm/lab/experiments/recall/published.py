"""Figures that others have published, to stand beside ours, marked as theirs."""

MQAR = (
    ("DeltaNet", 9.0, 0.79),
    ("DeltaNet", 34.0, 0.96),
    ("GLA", 4.9, 0.53),
    ("GLA", 18.0, 0.77),
    ("Mamba-2", 8.2, 0.52),
    ("Mamba-2", 33.0, 0.78),
    ("Based", 9.4, 0.67),
    ("H3", 8.2, 0.19),
    ("RWKV-7", 17.0, 0.82),
)
"""Network, kilobytes of state (four a number) and accuracy on MQAR, read off the plot of the repository
HazyResearch/zoology: V 8192, up to 256 pairs, other lengths of training than ours."""

PARITY = (("mLSTM", 0.09), ("sLSTM", 1.0))
MODULAR = (("DeltaNet", 0.31), ("DeltaNet, eigenvalues from -1", 0.97), ("sLSTM", 0.79))
"""Accuracy on longer sequences of bits, and of numbers without brackets, on a scale where guessing is 0, the best of
three seeds; on the second three layers with a convolution of 4 (Grazzi et al., 2024, arXiv 2411.12537)."""
