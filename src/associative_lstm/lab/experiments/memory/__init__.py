"""Figures 1 and 2 and the properties of section 3: what a memory gives back, without learning."""
