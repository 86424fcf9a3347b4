"""Chromium without a window, driven through its DevTools protocol: pages as their readers see them."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from urllib.request import urlopen

import websocket

from waiting import HANGS

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
    # Chromium's own flag, without which it does not start as root
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
)


class Browser:
    """One tab. ``errors`` has everything that went wrong in the page, ``requests`` the addresses it asked for."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        self.process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._numbers = itertools.count(1)
        try:
            port = _wait_for_port(profile / "DevToolsActivePort", self.process)
            with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=HANGS) as answer:
                pages = [target for target in json.load(answer) if target["type"] == "page"]
            self._socket = websocket.create_connection(pages[0]["webSocketDebuggerUrl"], timeout=HANGS)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        """End the browser."""
        self._socket.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def send(self, method: str, **parameters):
        """Call the protocol, and listen to what the page says meanwhile."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while (message := self._receive()).get("id") != number:
            pass
        if "error" in message:
            raise RuntimeError(f"{method}: {message['error']['message']}")
        return message["result"]

    def _receive(self):
        message = json.loads(self._socket.recv())
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.errors.append(str([argument.get("value") for argument in parameters["args"]]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.errors.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])
        return message

    def open(self, page: Path) -> None:
        """Load a file and wait until it is there."""
        self.send("Page.navigate", url=page.resolve().as_uri())
        while self.run("document.readyState + location.protocol") != "completefile:":
            time.sleep(0.02)

    def run(self, expression: str):
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"]["description"])
        return answer["result"].get("value")

    def screen(self, width: int, height: int = 900, *, phone: bool = False, scheme: str = "light") -> None:
        """The size of the window, and the colours that its user prefers."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[preference])
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def mouse(self, x: float, y: float, *, click: bool = False) -> None:
        """Move to a point of the window, and click there."""
        place = {"x": x, "y": y}
        self.send("Input.dispatchMouseEvent", type="mouseMoved", **place)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.send("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **place)

    def click(self, element: str) -> None:
        """Scroll to an element, given as an expression, and click on its middle."""
        self.mouse(*self.middle(element), click=True)

    def middle(self, element: str) -> tuple[float, float]:
        """Scroll to an element; where its middle is then."""
        box = self.run(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return box[0], box[1]

    def key(self, key: str) -> None:
        """Press a key."""
        text = {"Enter": {"text": "\r"}}.get(key, {})
        self.send("Input.dispatchKeyEvent", type="keyDown", key=key, code=key, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def picture(self, path: Path) -> None:
        """What the window shows, as PNG."""
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))

    def print(self) -> bytes:
        """The page on paper, as PDF."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])


def _wait_for_port(file: Path, process: subprocess.Popen) -> int:
    deadline = time.monotonic() + HANGS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"Chromium ended with code {process.returncode}")
        if file.is_file() and "\n" in (text := file.read_text()):
            return int(text.split("\n")[0])
        time.sleep(0.05)
    raise RuntimeError("Chromium did not start")
