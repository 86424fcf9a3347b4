"""One page about a trained network: what it expects, and from which writes each of its answers was recalled."""
