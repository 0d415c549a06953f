"""A real browser without a window, spoken to through a pipe (Chrome DevTools Protocol): no port, no driver."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def installed() -> str | None:
    """The first browser that is there."""
    return next((result for name in NAMES if (result := shutil.which(name))), None)


class Browser:
    """One page of one browser; everything that it asks for, and every error, is written down."""

    def __init__(self, folder: Path) -> None:
        program = installed()
        assert program is not None
        message, self._tell = os.pipe()
        self._hear, text = os.pipe()
        # The browser speaks on descriptors 3 and 4.
        command = ["bash", "-c", f'exec "$0" "$@" 3<&{message} 4>&{text}', program]
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
        self._process = subprocess.Popen(
            [*command, *flags], pass_fds=(message, text), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(message)
        os.close(text)
        self._rest, self._count, self._session = b"", 0, ""
        self.asked: list[str] = []
        """Addresses of everything that the page loaded."""
        self.errors: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(30)
        os.close(self._tell)
        os.close(self._hear)

    def open(self, page: Path, width: int = 1280) -> None:
        """Waits until all of it is there."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self._call("Page.navigate", url=page.as_uri())
        while self._listen().get("method") != "Page.loadEventFired":
            pass

    def prefer(self, scheme: str) -> None:
        """Pages that are opened from now on are light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", features=features)

    def look_like_paper(self, is_paper: bool) -> None:
        """Pages are as they are printed, or as on a screen again."""
        self._call("Emulation.setEmulatedMedia", media="print" if is_paper else "", features=[])

    def take_picture(self) -> bytes:
        """The whole page as a PNG."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        return base64.b64decode(data)

    def run(self, script: str) -> Any:
        """The value of an expression on the page; of a promise, what it resolves to."""
        result = self._call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._tell, json.dumps(message).encode() + b"\0")
        while (actual_result := self._listen()).get("id") != self._count:
            pass
        assert "error" not in actual_result, actual_result
        result: dict[str, Any] = actual_result["result"]
        return result

    def _listen(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            part = os.read(self._hear, 1 << 16)
            assert part, "the browser ended"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        document: dict[str, Any] = json.loads(text)
        if document.get("method") == "Network.requestWillBeSent":
            self.asked.append(document["params"]["request"]["url"])
        if document.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
            self.errors.append(json.dumps(document["params"])[:300])
        return document
