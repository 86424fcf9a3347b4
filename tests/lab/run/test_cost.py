"""The cost summed over the lanes, as training wants it, against the cost lane by lane."""

import pytest
import torch

from associative_lstm.lab.run.cost import cost_in_all, cost_of
from associative_lstm.lab.tasks import make_task


@pytest.mark.parametrize("name", ["copy", "copy-variable", "xml", "ntm-copy"])
def test_the_sum_of_the_lanes(name):
    task = make_task(name)
    batch = next(task.stream(3, seed=0))
    torch.manual_seed(0)
    logits = torch.randn(*batch.mask.shape, task.output_size, dtype=torch.float64, requires_grad=True)
    if task.loss == "sigmoid":
        batch = batch._replace(targets=batch.targets.double())
    lanes, sums = cost_of(task, logits, batch), cost_in_all(task, logits, batch)
    torch.testing.assert_close(sums.bits, lanes.bits.sum())
    assert sums.units == lanes.units.sum() > 0
    answer = 0.0 if lanes.answer is None else lanes.answer.sum().item()
    assert sums.answer == pytest.approx(answer, rel=1e-6)
    expected, got = (torch.autograd.grad(bits, logits)[0] for bits in (lanes.bits.sum(), sums.bits))
    torch.testing.assert_close(got, expected)
