"""What the recall comparison would measure, made up."""

from associative_lstm.lab.experiments.recall import grid
from associative_lstm.lab.experiments.recall.grid import SEEDS, SETTINGS


def made(accuracy=lambda setting, network: 0.5, settings=SETTINGS, seeds=SEEDS):
    """What the whole grid would measure if each network had the accuracy that a function tells."""
    measured = {}
    for setting in (SETTINGS[name] for name in settings):
        for point in setting.points:
            said = accuracy(setting.name, point.name)
            row = {"setting": setting.name, "network": point.name, "state": 1000, "parameters": 70_000}
            row |= {"rate": 3e-3, "accuracy": said}
            if setting.name in (*grid.TRACKING, grid.UNAIDED):
                row["longer"] = said
            if setting.name in grid.DRAWN:
                costs = (7.0, 3.0, 2.0, 1.0) if said > 0.4 else (7.0, 5.0, 2.1, 2.0)
                row["held_out_bits"] = 0.25 if said > 0.4 else 2.5
                row["bits"] = [[100 * (k + 1), cost] for k, cost in enumerate(costs)]
            measured[setting.name, point.name] = [row | {"seed": seed} for seed in seeds]
    return measured


def best_of(ours, others):
    """Accuracies with which ours are as good as they can be; copies buy recall by their ratio to the pairs."""

    def accuracy(setting, network):
        if setting.startswith("copies-"):
            return max(0.1, 1 - 0.05 * int(setting[7:]) / int(network.split("-")[-1]))
        if setting == "mqar-unaided":
            return 0.2
        if setting in ("parity", "modular-aided"):
            tracks = network.split("-")[0] in ("associative", "lstm", "gru") and "open" not in network
            return 1.0 if tracks else 0.5
        return ours if network.startswith("associative") else others

    return accuracy


def reason(network="associative-52-4", seed=30, **numbers):
    row = {"network": network, "seed": seed, "rate": 0.01, "right": 0.4, "alone": 1.0, "random_keys": 0.45}
    return row | {"match": 0.98, "interference": 9, "random_interference": 8, "expected": 7.75} | numbers
