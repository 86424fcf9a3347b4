"""The Associative LSTM."""
