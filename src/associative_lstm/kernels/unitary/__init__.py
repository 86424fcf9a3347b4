"""The unitary networks."""
