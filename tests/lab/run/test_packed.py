"""Packed runs are the runs they were made of, to the byte; what is no pack is refused and does no harm."""

import json
import lzma
import os
import shutil

import pytest

from associative_lstm.lab import cli
from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.experiments.learning.runs import Logs, read_curve
from associative_lstm.lab.experiments.learning.wikipedia import figure_10
from associative_lstm.lab.files import RunError
from associative_lstm.lab.report.runs import Runs
from associative_lstm.lab.run import packed
from associative_lstm.lab.run.config import complete
from associative_lstm.lab.run.folder import last_step, read_config, read_log, read_tests
from associative_lstm.lab.sweep.jobs import Job, is_finished, run_grid
from associative_lstm.lab.sweep.local import local
from made_runs import sweep_run, write_lines, write_run

CONFIG = b'task = "xml"\n'


@pytest.fixture
def runs(tmp_path):
    """Two tasks of one run each, and a third run that diverged."""
    folder = tmp_path / "runs"
    sweep_run(folder, "xml", "lstm-128", 1e-3)
    sweep_run(folder, "xml", "lstm-128", 1e-2, logged=3, diverged="the cost is not finite")
    run = sweep_run(folder, "copy", "associative-lstm-8", 3e-3, logged=40)
    write_lines(run / "test.jsonl", [{"step": 10, "cost": 2.5}])
    return folder


def files_in(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def folders_in(folder):
    return sorted(path for path in folder.rglob("*") if path.is_dir())


def write_pack(path, *lines):
    """A pack with these lines, written as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))
    return path


def line(run="lstm/a", **files):
    return json.dumps({"run": run, "files": {"config.toml": CONFIG.decode()} | files})


def refuses(capsys, *arguments):
    """The one sentence with which the command ends."""
    assert cli.main([str(argument) for argument in arguments]) == 1
    (sentence,) = capsys.readouterr().err.splitlines()
    return sentence


def test_what_is_unpacked_is_what_was_packed(runs, capsys):
    odd = runs / "xml" / "lstm-128" / "lr0.001-seed0"
    (odd / "log.jsonl").write_bytes(b'{"step": 10, "cost"\r\n\xff\xfe half a line \x00 and \xe2\x82\xac')
    (odd / "diverged.txt").write_bytes(b"")
    before, folders = files_in(runs), folders_in(runs)
    assert cli.main(["results", "pack", "--runs", str(runs), "--remove"]) == 0
    assert sorted(path.name for path in runs.iterdir()) == ["copy.jsonl.xz", "xml.jsonl.xz"]
    packs = files_in(runs)
    assert cli.main(["results", "unpack", "--runs", str(runs)]) == 0
    assert files_in(runs) == before | packs
    assert folders_in(runs) == folders
    shutil.copytree(runs, again := runs.parent / "again", ignore=shutil.ignore_patterns("*.xz"))
    packed.pack(again)
    assert files_in(again) == before | packs  # the same runs make the same file


def test_a_packed_run_reads_as_its_folder_did(runs):
    def everything():
        found = packed.runs_below(runs)
        shown = Runs(Logs(runs))
        return (
            found,
            [(read_config(f), read_log(f), read_tests(f), last_step(f)) for f in found],
            [(run.diverged, run.steps, list(run.cost)) for run in shown.runs.values()],
            shown.versions,
            [(g.name, g.label, g.common, [run.folder for run in g.runs]) for g in shown.groups()],
            shown.problems,
            [is_finished(Job(read_config(f), f)) for f in found],
            read_curve(runs, curve("xml", "lstm-128")).sweep.keys(),
        )

    before = everything()
    assert len(before[0]) == 3
    for path, added in packed.pack(runs).items():
        assert packed.remove_packed(path, added) == (len(added), {})
    assert everything() == before


def test_paths_may_be_relative(runs, monkeypatch):
    packed.remove_packed(*packed.pack(runs, ["copy"]).popitem())
    run = packed.runs_below(runs)[0]
    monkeypatch.chdir(runs)
    assert read_config(run.relative_to(runs)).task == "copy"
    (runs / "copy" / "associative-lstm-8").mkdir(parents=True)  # where checkpoints may have been
    monkeypatch.chdir(runs / "copy" / "associative-lstm-8")
    assert read_config(run.name).task == "copy"


def test_a_packed_configuration_makes_its_run_again(runs, tmp_path, capsys):
    config = sweep_run(tmp_path, "assignment", "lstm-128", 1e-3, logged=1) / "config.toml"
    text = config.read_text().replace("hidden_size = 128", "hidden_size = 8")
    config.write_text(text.replace("steps = 20000", "steps = 2"))
    packed.remove_packed(*packed.pack(tmp_path, ["assignment"]).popitem())
    assert not config.exists()
    assert cli.main(["train", "--config", str(config), "--out", str(tmp_path / "again")]) == 0
    assert (tmp_path / "again" / "config.toml").exists()


def test_a_folder_is_believed_before_the_pack(runs):
    packed.pack(runs)
    run = runs / "copy" / "associative-lstm-8" / "lr0.003-seed0"
    (run / "test.jsonl").unlink()
    assert read_tests(run) == []
    (run / "config.toml").unlink()  # what is left is no run
    assert read_tests(run) == [{"step": 10, "cost": 2.5}]


def test_a_pack_that_changes_is_read_again(runs):
    packed.remove_packed(*packed.pack(runs, ["copy"]).popitem())
    (run,) = [run for run in packed.runs_below(runs) if run.parent.parent.name == "copy"]
    assert len(read_log(run)) == 40
    write_pack(runs / "copy.jsonl.xz", line(f"{run.parent.name}/{run.name}"))
    assert read_log(run) == []


def test_a_packed_run_does_not_go_on(tmp_path, capsys):
    runs = tmp_path / "runs"
    tiny = {"task": "assignment", "model": "lstm", "hidden_size": 8, "steps": 2, "log_every": 1}
    run = write_run(runs / "assignment" / "lstm" / "a", complete(tiny), logged=1)
    packed.remove_packed(*packed.pack(runs).popitem())
    before = files_in(runs)
    assert "assignment.jsonl.xz" in (sentence := refuses(capsys, "resume", run))
    assert "`alstm results unpack assignment`" in sentence
    assert sentence == refuses(capsys, "train", "assignment", "--steps", "2", "--out", run)
    (reason,) = run_grid([Job(read_config(run), run)], local(1))
    assert "is packed" in reason
    assert files_in(runs) == before
    assert not run.exists()


def test_figure_10_refuses_packed_runs_on_another_text(tmp_path):
    text = tmp_path / "text"
    text.write_text("a text of one's own. " * 2000)
    planned = figure_10(steps=10).panels[0].curves[0]
    config = planned.config(planned.rates[0], 0, 10)
    write_run(planned.folder(tmp_path, planned.rates[0], 0), config, logged=1)
    packed.remove_packed(*packed.pack(tmp_path).popitem())
    with pytest.raises(RunError, match=f"is a run on enwik8, not on {text}"):
        figure_10(str(text), 10).refuse_other_texts(tmp_path)


def test_packing_adds_to_a_pack(runs):
    path = runs / "xml.jsonl.xz"
    packed.remove_packed(*packed.pack(runs, ["xml"]).popitem())
    whole = path.read_bytes()
    packed.unpack(runs)
    shutil.rmtree(runs / "xml" / "lstm-128" / "lr0.01-seed0")
    with open(runs / "xml" / "lstm-128" / "lr0.001-seed0" / "log.jsonl", "a") as log:
        log.write("one more\n")
    assert packed.pack(runs, ["xml"]) == {path: ["lstm-128/lr0.001-seed0"]}
    assert path.read_bytes() != whole
    shutil.rmtree(runs / "xml")
    assert [run.name for run in packed.runs_below(runs / "..") if "xml" in run.parts] == [
        "lr0.001-seed0",
        "lr0.01-seed0",
    ]
    assert packed.read_bytes(runs / "xml/lstm-128/lr0.001-seed0/log.jsonl").endswith(b"one more\n")


def test_files_that_only_the_pack_has_stay(runs):
    run = runs / "xml" / "lstm-128" / "lr0.001-seed0"
    (run / "diverged.txt").write_text("its cost is not finite\n")
    (run / "eval-step-20-seed-0.json").write_text("{}\n")
    packed.pack(runs, ["xml"])
    (run / "diverged.txt").unlink()
    (run / "versions.json").write_text("[]\n")
    packed.remove_packed(*packed.pack(runs, ["xml"]).popitem())
    assert packed.read_bytes(run / "diverged.txt") == b"its cost is not finite\n"
    assert packed.read_bytes(run / "eval-step-20-seed-0.json") == b"{}\n"
    assert packed.read_bytes(run / "versions.json") == b"[]\n"


def test_a_log_that_would_be_lost_is_not_packed_over(runs, capsys):
    packed.pack(runs)
    log = runs / "copy" / "associative-lstm-8" / "lr0.003-seed0" / "log.jsonl"
    log.write_bytes(log.read_bytes()[:-1])
    before = files_in(runs)
    assert f"{log} does not go on" in refuses(capsys, "results", "pack", "--runs", runs, "--remove")
    assert files_in(runs) == before


def test_only_folders_that_are_wholly_packed_are_removed(runs, capsys):
    trained, grown = (runs / "xml" / "lstm-128" / f"lr{rate}-seed0" for rate in ("0.001", "0.01"))
    (trained / "model.safetensors").write_bytes(b"weights")
    (grown / "lock").touch()
    added = packed.pack(runs, ["xml"])
    with open(grown / "times.jsonl", "a") as log:
        log.write("\n")
    before = files_in(runs)
    assert packed.remove_packed(*added.popitem()) == (
        0,
        {trained: ["model.safetensors"], grown: ["times.jsonl"]},
    )
    assert files_in(runs) == before
    assert cli.main(["results", "pack", "xml", "--runs", str(runs), "--remove"]) == 0
    assert f"kept: {trained}, of which the pack has not model.safetensors" in capsys.readouterr().out
    assert trained.is_dir()
    assert not grown.exists()


def test_unpacking_overwrites_nothing(runs, capsys):
    packed.pack(runs)
    shutil.rmtree(runs / "copy")
    times = runs / "xml" / "lstm-128" / "lr0.01-seed0" / "times.jsonl"
    times.write_text("mine\n")
    before = files_in(runs)
    assert f"{times} is not what" in refuses(capsys, "results", "unpack", "--runs", runs)
    assert files_in(runs) == before
    assert cli.main(["results", "unpack", "copy", "--runs", str(runs)]) == 0
    assert times.read_text() == "mine\n"
    assert (runs / "copy").is_dir()


@pytest.mark.parametrize(
    "written",
    [
        line("../../outside/a"),
        line("../a"),
        line("lstm/.."),
        line("/tmp/a"),
        line("a"),
        line("lstm/a/b"),
        line("lstm\\a/b"),
        line("lstm/a\n"),
        line("lstm/" + 201 * "a"),
        line(**{"../log.jsonl": ""}),
        line(**{"/log.jsonl": ""}),
        line(**{"checkpoint-00000001-0123456789abcdef.pt": ""}),
        line(**{".hidden.txt": ""}),
        line(**{"log.jsonl": 1}),
        line(**{"log.jsonl": "\ud800"}),
        json.dumps({"run": "lstm/a", "files": {}}),
        json.dumps({"run": "lstm/a"}),
        json.dumps({"run": 1, "files": {"config.toml": ""}}),
        json.dumps(["lstm/a"]),
        "{",
        "",
        "[" * 100_000,
        "1" * 5_000,
    ],
)
def test_a_line_that_is_no_run_is_refused(tmp_path, capsys, written):
    runs = tmp_path / "inner" / "runs"
    path = write_pack(runs / "xml.jsonl.xz", line("lstm/b"), written)
    before = files_in(tmp_path)
    said = f"alstm: {path} is not a pack of runs or is damaged: its line 2 is not a run"
    assert refuses(capsys, "results", "unpack", "--runs", runs) == said
    assert refuses(capsys, "report", "--runs", runs, "--out", tmp_path / "page.html") == said
    assert files_in(tmp_path) == before
    assert not (runs / "xml").exists()


def test_a_run_that_is_there_twice_is_refused(tmp_path, capsys):
    write_pack(tmp_path / "xml.jsonl.xz", line(), line())
    assert "it holds lstm/a twice" in refuses(capsys, "results", "unpack", "--runs", tmp_path)


def test_a_damaged_file_is_refused(runs, capsys):
    packed.remove_packed(*packed.pack(runs, ["xml"]).popitem())
    path = runs / "xml.jsonl.xz"
    whole = path.read_bytes()
    broken = {
        whole[:-1]: "it is cut off",
        whole[: len(whole) // 2]: "it is cut off",
        b"": "it is cut off",
        whole + b"more": "its end is not that of a pack",
        whole + whole: "its end is not that of a pack",
        lzma.compress(lzma.decompress(whole)[:-1]): "its end is not that of a pack",
        whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]: "",
        b"no pack": "",
    }
    for content, reason in broken.items():
        path.write_bytes(content)
        smoke = ["reproduce", "fig6", "--smoke", "--out", runs.parent]
        for command in (["results", "unpack"], ["results", "pack"], smoke):
            if command[-1] == "pack":  # which has to read what it adds to
                sweep_run(runs, "xml", "ntm", 1e-3, logged=1)
            sentence = refuses(capsys, *command, "--runs", runs)
            assert f"{path} is not a pack of runs or is damaged: {reason}" in sentence
            shutil.rmtree(runs / "xml", ignore_errors=True)
        assert path.read_bytes() == content


def test_a_pack_that_swells_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(packed, "LARGEST", 100_000)
    path = write_pack(tmp_path / "xml.jsonl.xz", line(**{"log.jsonl": 1_000_000 * " "}))
    assert path.stat().st_size < 1000
    assert "it holds over 100,000 bytes" in refuses(capsys, "results", "unpack", "--runs", tmp_path)
    path.write_bytes(os.urandom(100_001))
    assert "it has more than 100,000 bytes" in refuses(capsys, "results", "unpack", "--runs", tmp_path)
    sweep_run(tmp_path, "copy", "lstm-128", 1e-3, logged=2000)
    before = files_in(tmp_path)
    assert "100,000 bytes" in refuses(capsys, "results", "pack", "copy", "--runs", tmp_path)
    assert files_in(tmp_path) == before


def test_what_cannot_be_packed_or_unpacked_is_said(runs, capsys):
    assert f"{runs}/wikipedia has no runs" in refuses(
        capsys, "results", "pack", "wikipedia", "--runs", runs
    ).replace(os.sep, "/")
    assert "has no packed runs" in refuses(capsys, "results", "unpack", "--runs", runs)
    assert "has no runs in folders" in refuses(capsys, "results", "pack", "--runs", runs / "nowhere")
    run = runs / "xml" / "lstm-128" / "lr0.01-seed0"
    run.rename(run.with_name("my run"))
    assert "my run cannot be packed" in refuses(capsys, "results", "pack", "--runs", runs)
    (runs / "copy.jsonl.xz").mkdir()
    assert "cannot be read" in refuses(capsys, "results", "unpack", "--runs", runs)
