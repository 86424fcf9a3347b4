"""The subcommands of `alstm`, a few to a file; `associative_lstm.lab.cli` puts them together."""
