"""A page in Chromium."""

from types import SimpleNamespace

import pytest

from waiting import HANGS


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
