"""What docs/inside.md and the README show of the inside of trained networks, made again.

python benchmarks/inside.py --runs FOLDER    from the weights of the runs in FOLDER a page for every task,
                                             docs/inside/TASK.html (with --measure first results/inside, from what is
                                             finished there), and then all that is made without:
python benchmarks/inside.py                  the pages with today's scripts, the README's picture (needs Chromium),
                                             and the section of docs/inside.md, from results/inside

The numbers of results/inside are those of `alstm reproduce inside --runs FOLDER`, which makes missing runs first.
Pages are of the same networks, the first seed of each; on arithmetic of one head, as three are 4 MB of weights.
"""

import argparse
import io
import shutil
from pathlib import Path

from PIL import Image

from associative_lstm.lab.experiments.inside.study import ASSIGNMENT, COPY, INSIDE, ONE_HEAD, XML
from associative_lstm.lab.experiments.learning.curves import curve
from associative_lstm.lab.experiments.learning.runs import Logs, read_curve
from associative_lstm.lab.files import write_atomically
from associative_lstm.lab.inside.page import data_of, html_of, load, samples, write_page
from associative_lstm.lab.tasks import make_task

ROOT = Path(__file__).parents[1]
STUDY, PAGE, PAGES = ROOT / "results" / "inside", ROOT / "docs" / "inside.md", ROOT / "docs" / "inside"
PICTURE = ROOT / "docs" / "images" / "inside.png"
SHOWN = (COPY, XML, ASSIGNMENT, ONE_HEAD)
BEGIN, END = "<!-- made by benchmarks/inside.py -->\n", "<!-- end -->\n"


def with_study(page: str) -> str:
    """The text of docs/inside.md with what results/inside has."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{(STUDY / 'README.md').read_text(encoding='utf-8')}\n{END}{after}"


def make_pages(runs: Path) -> None:
    """A page for every task, of the first seed."""
    for task, network in SHOWN:
        found = read_curve(runs, curve(task, network))
        if not found.runs or found.runs[0].steps < found.curve.steps:
            print(f"{task}: the first seed of {network} is not there yet")
            continue
        folder = found.runs[0].folder
        reader = load(folder)._replace(name=folder.relative_to(runs).as_posix())
        text, *examples = samples(reader.trained.task, seed=0)
        write_page([reader], text, examples, PAGES / f"{task}.html")
        print(f"written: {PAGES / task}.html")


def renew_pages() -> None:
    """The same networks and texts with the scripts of today."""
    for path in PAGES.glob("*.html"):
        data = data_of(path.read_text(encoding="utf-8"))
        write_atomically(path, html_of(make_task(data["task"]), data).encode())


def take_picture(page: Path) -> None:
    """The upper part of a page, as Chromium shows it."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": 860, "height": 1400}, device_scale_factor=1.5)
        tab.goto(page.resolve().as_uri())
        tab.wait_for_selector('canvas[aria-busy="false"]')
        box = tab.locator(".detail").bounding_box()
        assert box is not None
        height = box["y"] + box["height"] + 12
        shot = tab.screenshot(clip={"x": 0, "y": 0, "width": 860, "height": height})
        browser.close()
    content = io.BytesIO()
    with Image.open(io.BytesIO(shot)) as image:
        few = image.convert("RGB").quantize(
            256, Image.Quantize.MAXCOVERAGE, kmeans=2, dither=Image.Dither.NONE
        )
        few.save(content, format="png", optimize=True)
    PICTURE.parent.mkdir(exist_ok=True)
    write_atomically(PICTURE, content.getvalue())
    print(f"written: {PICTURE}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=Path, help="the folder of all runs, with their weights")
    parser.add_argument("--measure", action="store_true", help="look into the networks again")
    arguments = parser.parse_args()
    runs = arguments.runs
    if runs is not None:
        if arguments.measure:
            INSIDE.draw(STUDY, Logs(runs), first_seed=0, smoke=False)
        make_pages(runs)
    renew_pages()
    take_picture(PAGES / "assignment.html")
    write_atomically(PAGE, with_study(PAGE.read_text(encoding="utf-8")).encode())
    print(f"written: {PAGE}")


if __name__ == "__main__":
    main()
