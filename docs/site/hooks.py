"""What the site has beyond the pages in docs/: results, papers of the project, equations, search. Nothing is fetched.

The pages stay readable where they lie: a link that leaves docs/ is turned here into one within the site.
"""

import hashlib
import re
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PAPERS = ("CHANGELOG.md", "CONTRIBUTING.md", "constraints.txt")
SHOWN = (".md", ".png", ".txt", ".json", ".csv")
"""What of the results is shown; the logs of the runs stay in the repository."""

NPM = {
    "katex-0.19.1.tgz": (
        "24da5a599eb2fcede2e270b99a6ff48bca816beecc95feeb84e8cccbd1bb34fd",
        r"package/dist/(katex\.min\.(?:js|css)|fonts/[^/]+\.woff2)",
    ),
    "iframe-worker-1.0.4.tgz": (
        "e8c5d12d87829c503afba01d67772ea9f4aba5b7ae57a0c98e1917711030efbb",
        r"package/shim/(index\.js)",
    ),
}
"""By archive of npm's its SHA-256, and what is taken of it: equations, and search where there is no server."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add results, papers, examples and scripts, each under the name that links use."""
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in SHOWN and "runs" not in path.parts:
            _add(files, config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path))
    for name in PAPERS:
        _add(files, config, name, abs_src_path=str(ROOT / name))
    for path in sorted((ROOT / "examples").glob("*.py")):
        _add(files, config, f"examples/{path.name}.txt", content=path.read_bytes())
    for archive, (digest, wanted) in NPM.items():
        for name, content in _taken(archive, digest, wanted):
            _add(files, config, f"{archive.rsplit('-', 1)[0]}/{name}", content=content)
    return files


def _add(files: Files, config: MkDocsConfig, name: str, **source: Any) -> None:
    files.append(File.generated(config, name, **source))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site has them: from papers into docs/, from pages out of it; folders as what shows them."""
    here = page.file.src_uri

    def relinked(match: re.Match[str]) -> str:
        target, anchor = match[1], match[2] or ""
        if here in PAPERS:
            target = target.removeprefix("docs/")
        elif not here.startswith("results/"):
            target = target.removeprefix("../")
        if target.startswith("examples/") and target.endswith(".py"):
            target += ".txt"
        return f"]({_shown(target, here)}{anchor})"

    return re.sub(r"\]\(([^)#:]+)(#[^)]*)?\)", relinked, markdown)


def _shown(target: str, here: str) -> str:
    """A folder of results by the page or the picture in it, or by the page of all claims."""
    folder = ROOT / Path(here).parent / target if here.startswith("results/") else ROOT / target
    if not folder.is_dir():
        return target
    name = folder.name
    for shown in ("README.md", f"{name}.md", f"{name}.png", f"{name}.csv"):
        if (folder / shown).exists():
            return f"{target}/{shown}"
    first = next((path.name for path in sorted(folder.rglob("*")) if path.suffix in SHOWN), None)
    return f"{target}/{first}" if first else target


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Search in pages that are opened from a disk: Material would fetch what that needs."""
    up = "../" * page.file.dest_uri.count("/")
    return output.replace("https://unpkg.com/iframe-worker/shim", f"{up}iframe-worker/index.js")


def _taken(archive: str, digest: str, wanted: str) -> list[tuple[str, bytes]]:
    """Files of an archive, by name: downloaded once, and checked."""
    kept = ROOT / "build" / archive
    if not kept.exists() or hashlib.sha256(kept.read_bytes()).hexdigest() != digest:
        url = f"https://registry.npmjs.org/{archive.rsplit('-', 1)[0]}/-/{archive}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read()
        if hashlib.sha256(content).hexdigest() != digest:
            raise PluginError(f"{url} is not the file that is expected: its SHA-256 is another")
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(content)
    with tarfile.open(kept) as opened:
        members = {m[1]: member for member in opened if (m := re.fullmatch(wanted, member.name))}
        files = {name: opened.extractfile(member) for name, member in members.items()}
        return [(name, file.read()) for name, file in files.items() if file is not None]
