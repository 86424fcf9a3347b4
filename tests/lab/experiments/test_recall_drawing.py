"""The pictures of the recall comparison: what is in their panels, and where."""

import pytest

from associative_lstm.lab.experiments.recall import grid
from associative_lstm.lab.experiments.recall.drawing import draw, draw_dependence
from recall_rows import made

_MEANS = {"associative-60-16": 0.8, "deltanet-1x32": 0.9, "mamba2-4x16": 0.7}


def measured(settings=("stacked", "mqar", "stacked-64", "copies-16", "parity", "s5")):
    return made(lambda setting, network: _MEANS.get(network, 0.5), settings=settings)


def panels(figure):
    return {axes.get_title(): axes for axes in figure.axes}


def lines(axes):
    """Of every line that the legend names, its places."""
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines if line.get_label()[0] != "_"}


def test_the_answer_is_recall_by_state_and_who_keeps_track():
    rows = measured() | made(lambda setting, network: 0.95, settings=["mqar-long"])
    rows["mqar", "deltanet-1x32"][0]["accuracy"] = 0.96
    found = panels(draw(rows))
    mqar = "MQAR, 4 pairs, in 13 passes (diamonds: 32)"
    assert list(found) == ["Stacked MQAR, 32 pairs", mqar, "Beyond the lengths trained"]
    recalled = lines(found[mqar])
    assert recalled["DeltaNet"] == [[1000, 0.5], [1000, pytest.approx(0.92)], [1000, 0.5]]  # where it stands
    shown = [line.get_xydata().tolist() for line in found[mqar].lines]
    assert [[1000, 0.96], [1000, 0.9], [1000, 0.9]] in shown  # every seed
    longer = [line for line in found[mqar].lines if line.get_marker() == "D"]
    assert [list(line.get_ydata()) for line in longer] == [pytest.approx([0.95])] * 4
    assert len(grid.SETTINGS["mqar-long"].points) == 4
    assert shown.count([[1000, 0.95]] * 3) == 4  # their seeds, too
    assert {"Attention (its state grows)", "LSTM", "mLSTM"} < recalled.keys()
    tracked = found["Beyond the lengths trained"]
    assert [label.get_text() for label in tracked.get_xticklabels()] == ["Parity", "Swaps\nof five"]
    assert [y for _, y in lines(tracked)["Mamba-2"]] == pytest.approx([0.7])


def test_what_recall_depends_on_is_a_picture_of_its_own():
    found = panels(draw_dependence(measured()))
    by_weights, by_pairs, by_copies = found.values()
    assert list(found)[1:] == ["Stacked MQAR, about 1,024 numbers", "Ours, N_h 64, stacked MQAR"]
    assert lines(by_weights)["DeltaNet"] == [[70_000, 0.5], [70_000, pytest.approx(0.9)], [70_000, 0.5]]
    assert lines(by_pairs)["DeltaNet"] == [[32, pytest.approx(0.9)], [64, pytest.approx(0.9)]]
    assert lines(by_copies) == {f"{n}": [[16 / n, 0.5]] for n in (1, 2, 4, 8, 16)}


@pytest.mark.parametrize(
    ("settings", "answer", "dependence"),
    [((), 1, 1), (["mqar"], 1, 1), (["stacked", "mqar"], 2, 1), (["stacked", "copies-4", "s5"], 2, 2)],
)
def test_there_is_a_panel_for_what_was_measured_only(settings, answer, dependence):
    rows = measured(settings)
    assert (len(draw(rows).axes), len(draw_dependence(rows).axes)) == (answer, dependence)
    assert draw({}).axes[0].get_title() == ""
