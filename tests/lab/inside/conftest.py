"""Chromium."""

import shutil
from types import SimpleNamespace

import pytest

from waiting import HANGS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox",  # without it, it does not start as root; the pages are our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=1000 * HANGS)
        yield opened
        opened.close()


@pytest.fixture
def load(browser):
    """``load(page)`` opens a file in a tab of its own, which asks for nothing else and leaves no error behind."""
    tabs = []

    def open_tab(page, width=1200, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(1000 * HANGS)
        tab = context.new_page()
        seen = SimpleNamespace(tab=tab, requests=[], wrong=[])
        tabs.append(seen)
        tab.on("request", lambda request: seen.requests.append(request.url))
        tab.on("pageerror", lambda error: seen.wrong.append(str(error)))
        tab.on("dialog", lambda dialog: seen.wrong.append(f"dialog: {dialog.message}"))
        tab.on("console", lambda message: seen.wrong.append(message.text))
        tab.goto(page.resolve().as_uri())
        seen.address = page.resolve().as_uri()
        return tab

    yield open_tab
    for seen in tabs:
        assert seen.wrong == []
        assert [url for url in seen.requests if url != seen.address and not url.startswith("data:")] == []
        seen.tab.context.close()
