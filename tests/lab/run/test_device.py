"""Nothing assumes a CPU: a run on a device that has no numbers, whose tensors refuse others that are elsewhere."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from associative_lstm import AssociativeLSTM
from associative_lstm.lab.files import RunError
from associative_lstm.lab.networks import NETWORKS
from associative_lstm.lab.run import loop, step
from associative_lstm.lab.run.checkpoint import load_checkpoint, save_checkpoint
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.evaluation import Trained, evaluate, load_trained, predict, write_text
from associative_lstm.lab.run.model import build_model, flatten_state
from associative_lstm.lab.run.step import Trainer, random_states, restore_random_states

ELSEWHERE = torch.device("meta")


ASKING = [getattr(torch.ops.aten, name).default for name in ("_local_scalar_dense", "item", "is_nonzero")]


class Numbers(TorchDispatchMode):
    """Where a number is asked for of a tensor that has none, 1; what is brought back to the CPU is 1 as well."""

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        options = options or {}
        if function in ASKING and arguments[0].is_meta:
            return 1
        try:
            return function(*arguments, **options)
        except NotImplementedError as error:
            if "Cannot copy out of meta tensor" not in str(error):
                raise
            return torch.ones(arguments[0].shape, dtype=options.get("dtype") or arguments[0].dtype)


@pytest.fixture
def fabric(monkeypatch):
    """A Fabric of one process with such a device, for which PyTorch has no fused Adam."""
    adam = torch.optim.Adam
    monkeypatch.setattr(torch.optim, "Adam", lambda *a, fused, **how: adam(*a, **how))
    with Numbers():
        yield SimpleNamespace(world_size=1, global_rank=0, device=ELSEWHERE)


def settings(model="associative-lstm", **changes):
    chosen = {"task": "assignment", "model": model, "hidden_size": 8} | changes
    return complete(
        {"window": 4} | chosen if chosen["task"] in ("assignment", "xml", "arithmetic") else chosen
    )


def devices(trainer):
    everything = [*trainer.model.parameters(), *trainer.model.buffers(), *flatten_state(trainer.state)]
    return {tensor.device for tensor in everything}


@pytest.mark.parametrize("model", list(NETWORKS))
def test_every_network_is_trained_there(fabric, model):
    trainer = Trainer(settings(model, clip=1.0, weight_decay=0.1), fabric)
    trainer.train_step()
    assert devices(trainer) == {ELSEWHERE}


@pytest.mark.parametrize("task", ["copy", "ntm-copy", "xml", "arithmetic"])
def test_every_kind_of_task_is_scored_there(fabric, task):
    trainer = Trainer(settings("lstm", task=task), fabric)
    trainer.train_step()
    batches = trainer.task.stream(3, 0)
    assert evaluate(trainer.model, trainer.task, batches, 2).symbols > 0


@pytest.mark.filterwarnings(
    "ignore:.*which is a no-op:UserWarning"
)  # numbers are not copied to where there are none
def test_a_checkpoint_is_read_back_to_where_it_came_from(fabric):
    """As it is read: on the CPU."""
    trainer = Trainer(settings(), fabric)
    trainer.train_step()
    content = trainer.save()
    content["ranks"][0]["state"] = [torch.zeros(t.shape) for t in content["ranks"][0]["state"]]
    content["model"] = build_model(settings(), trainer.task).state_dict()
    for moment in content["moments"].values():
        moment |= {name: torch.zeros(tensor.shape) for name, tensor in moment.items()}
    again = Trainer(settings(), fabric)
    again.load(content)
    assert devices(again) == {ELSEWHERE}
    again.train_step()


def test_a_network_there_predicts_and_writes(fabric):
    trainer = Trainer(settings(task="xml"), fabric)
    trained = Trained(trainer.config, trainer.task, trainer.model, 0)
    assert predict(trained, seed=0, symbols=6)[1].device == ELSEWHERE
    assert len(write_text(trained, seed=0, length=3, prompt="", temperature=1.0)) == 3


def test_a_layer_moves_as_a_whole():
    layer = AssociativeLSTM(3, 8, 2, num_copies=2, rotation=0.5, learn_initial_state=True)
    layer = layer.to(ELSEWHERE)
    output, (h, c) = layer(torch.randn(4, 2, 3, device=ELSEWHERE))
    assert {output.device, h.device, c.device} == {ELSEWHERE}


def test_the_random_states_of_a_gpu_are_kept(monkeypatch):
    cuda, drawn = torch.device("cuda", 0), []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.tensor([7], dtype=torch.uint8))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device: drawn.append((state, device)))
    restore_random_states(random_states(cuda), cuda)
    assert drawn == [(torch.tensor([7], dtype=torch.uint8), cuda)]
    assert "device" not in random_states(torch.device("cpu"))


def test_checkpoints_are_read_on_the_cpu(tmp_path):
    path = save_checkpoint(tmp_path, 1, {"weight": torch.ones(3)})
    assert load_checkpoint(path)["weight"].device.type == "cpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_sentence_says_so(tmp_path):
    with pytest.raises(RunError, match="device is cuda, but PyTorch finds no GPU here"):
        loop.train(settings(device="cuda"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(RunError, match="PyTorch finds no GPU here"):
        load_trained(tmp_path, device="cuda")


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch):
    small = {"steps": 2, "log_every": 1, "model": "lstm"}
    loop.train(settings(**small), tmp_path / "run")
    assert "device" not in (tmp_path / "run" / "config.toml").read_text()
    made = step.make_fabric()
    monkeypatch.setattr(loop, "make_fabric", lambda device: made)
    text = (tmp_path / "run" / "config.toml").read_text()
    (tmp_path / "run" / "config.toml").write_text(text + 'device = "cuda"\n')
    with pytest.raises(RunError, match="the run computes on cuda: continue it with --device cuda"):
        loop.resume(tmp_path / "run", steps=3, device="cpu")
