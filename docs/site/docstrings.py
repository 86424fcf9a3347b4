"""Docstrings are written for Python's help and Sphinx's signs; the site reads Markdown."""

import re
import textwrap
from typing import Any

import griffe


def markdown(text: str) -> str:
    """Equations and names as Markdown has them."""
    text = re.sub(r"^( *)\.\. math::\n((?:\1 +.*\n?|\n)+)", _equation, text, flags=re.MULTILINE)
    text = re.sub(r":math:`((?:[^`])+)`", lambda m: f"${' '.join(m[1].split())}$", text)
    text = re.sub(r":(?:class|func|meth|attr|mod):`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    text = text.replace("``", "`")
    text = re.sub(r"^(Inputs|Outputs): (.*)\n((?: {4}.*\n?)+)", _listed, text, flags=re.MULTILINE)
    text = re.sub(r"^( *)>>> .*(?:\n\1\S.*)*", _example, text, flags=re.MULTILINE)
    return re.sub(r"^( *)(.*)::\n\n", r"\1\2:\n\n", text, flags=re.MULTILINE)


def _equation(match: re.Match[str]) -> str:
    body = textwrap.dedent(match[2]).strip()
    if "&" in body and "begin{" not in body:
        body = f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}"
    lines = "\n".join(match[1] + line for line in ["$$", *body.splitlines(), "$$"])
    return f"\n{lines}\n\n"


def _listed(match: re.Match[str]) -> str:
    return f"**{match[1]}**: {match[2]}\n\n{textwrap.dedent(match[3])}"


def _example(match: re.Match[str]) -> str:
    return f"{match[1]}```pycon\n{match[0]}\n{match[1]}```"


class Markdown(griffe.Extension):
    """Every docstring, before it is looked into."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = markdown(obj.docstring.value)
