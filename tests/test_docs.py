"""The documentation without its builder (`make docs` is strict): links lead somewhere, programs are Python."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest
import yaml

from associative_lstm.lab import cli

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("*.md"))
WRITTEN = [*PAGES, *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"))]
named = pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.name)


class _Settings(yaml.SafeLoader):
    """MkDocs' own tags are of no interest here."""


_Settings.add_multi_constructor("", lambda loader, tag, node: None)


def prose(page):
    """A page without its programs, in which brackets mean something else."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors(page):
    """The places in a page that a link can name."""
    text = page.read_text()
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    slugs = {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}
    return slugs | set(re.findall(r'id="([^"]+)"', text))


def entries(nav):
    for entry in nav:
        for target in entry.values():
            yield from entries(target) if isinstance(target, list) else [target]


@named
def test_links_lead_to_files_and_places_that_exist(page):
    for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", prose(page)):
        if "://" in target:
            continue
        path = page.parent / target if target else page
        assert path.exists(), f"{page.name}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{page.name}: {target}#{anchor}"


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page():
    nav = set(entries(yaml.load((ROOT / "mkdocs.yml").read_text(), _Settings)["nav"]))
    assert {page.name for page in PAGES} <= nav
    for entry in nav:
        assert (ROOT / "docs" / entry).exists() or (ROOT / entry).exists(), entry


@named
def test_programs_in_pages_are_python(page):
    for program in re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE):
        ast.parse(program)


def test_every_command_is_on_the_page_of_commands(capsys):
    assert cli.main(["--help"]) == 0
    commands = re.findall(r"^  (\w+) ", capsys.readouterr().out.split("Commands:")[1], flags=re.MULTILINE)
    listed = re.findall(r"^\| `alstm (\w+)", (ROOT / "docs" / "command.md").read_text(), flags=re.MULTILINE)
    assert sorted(listed) == sorted(commands)


def test_the_tutorials_programs_run_one_after_the_other():
    """Of the memory's page, all; it promises what it prints."""
    text = (ROOT / "docs" / "memory.md").read_text()
    names = {}
    for program in re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE):
        exec(compile(program, "memory.md", "exec"), names)
    assert names["copies"] > 150
    assert names["error"] < 2 * names["expected_error"](items=10, copies=20, size=1024)


def test_the_pictures_can_be_drawn(tmp_path):
    file = ROOT / "docs" / "site" / "pictures.py"
    spec = importlib.util.spec_from_file_location("documentation_pictures", file)
    pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(pictures)
    drawn = pictures.draw(tmp_path)
    shown = set(re.findall(r"images/([\w-]+\.png)", "".join(page.read_text() for page in PAGES)))
    assert {path.name for path in drawn} == shown - {"inside.png"}
