# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium that tests ask about a page; see https://chromedevtools.github.io/devtools-protocol."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
#: Pipes of the protocol in the browser.
_READS, _WRITES = 3, 4


class Browser:
    """One page of a browser of its own; a context manager. Messages go through pipes, each ended by a zero byte."""

    def __init__(self, profile: Path, width: int = 1200, height: int = 900) -> None:
        name = next((found for found in map(shutil.which, _NAMES) if found), None)
        if name is None:
            pytest.skip(f"no browser: {', '.join(_NAMES)} are not installed")
        options = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
        ]
        inner_reads, self._writes = os.pipe()
        self._reads, inner_writes = os.pipe()
        #: What it leaves behind when it is killed; a socket in it must have a short path.
        self._place = tempfile.TemporaryDirectory(prefix="mt_browser_", ignore_cleanup_errors=True)
        # The shell takes the pipes to where the browser looks for them.
        take = f'exec "$0" "$@" {_READS}<&{inner_reads} {_WRITES}>&{inner_writes}'
        command = ["bash", "-c", take, name, *options, f"--window-size={width},{height}", "about:blank"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(inner_reads, inner_writes),
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "TMPDIR": self._place.name},
        )
        os.close(inner_reads)
        os.close(inner_writes)
        self._buffer, self._number, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []
        page = next(t for t in self.ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._place.cleanup()
        os.close(self._reads)
        os.close(self._writes)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Have something done, and return what comes of it."""
        self._number += 1
        said = {"id": self._number, "method": method, "params": params}
        os.write(
            self._writes, json.dumps(said | ({"sessionId": self._session} if self._session else {})).encode() + b"\0"
        )
        while (heard := self._message()).get("id") != self._number:
            self.events.append(heard)
        assert "error" not in heard, heard
        result: dict[str, Any] = heard["result"]
        return result

    def open(self, url: str) -> None:
        """Load a page, and wait until it is."""
        self.events.clear()
        self.ask("Page.navigate", url=url)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def value(self, script: str) -> Any:
        """Return what a script comes to in the page, once that is settled."""
        told = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key and let it go."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key)

    @property
    def troubles(self) -> list[str]:
        """What the page complained about so far."""
        self.value("0")
        named = ("Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(event["params"]) for event in self.events if event.get("method") in named]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            more = os.read(self._reads, 1 << 20)
            assert more, "the browser has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message
