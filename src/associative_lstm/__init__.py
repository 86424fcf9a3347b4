"""Associative Long Short-Term Memory (Danihelka, Wayne, Uria, Kalchbrenner, Graves, 2016)."""
