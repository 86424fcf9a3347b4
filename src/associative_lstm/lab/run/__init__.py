"""One run: its configuration, network, cost, step, loop, folder, checkpoints and evaluation."""
