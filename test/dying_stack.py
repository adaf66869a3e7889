# SPDX-License-Identifier: Apache-2.0
"""A stack that dies, hangs or exits in a way and at a call of its choice, for the tests of what becomes of a run."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import yaml
from bad_bags import bag, scans

#: What is done at the call; each names how that is told.
WAYS = {
    "os._exit(0)": "ended with exit code 0",
    "os._exit(3)": "ended with exit code 3",
    "os.abort()": "was ended by SIGABRT",
    "signal.raise_signal(signal.SIGSEGV)": "was ended by SIGSEGV",
    "os.kill(os.getpid(), signal.SIGKILL)": "was ended by SIGKILL",
    "sys.exit(0)": "raised SystemExit: 0",
    "raise_(KeyboardInterrupt())": "raised KeyboardInterrupt",
    "wait(threading.Thread(target=os._exit, args=(0,)))": "ended with exit code 0",
    "time.sleep(3600)": "has not answered within 1 s (deadline_s) and was killed",
    "ctypes.PyDLL(None).sleep(3600)": "has not answered within 1 s (deadline_s) and was killed",
    "os.fork() and os.wait()": "was ended by SIGKILL",
    "os.closerange(3, 256)": "ended with exit code 0",
}
#: What leaves a stack alive: its verdicts count.
HARMLESS = (
    "wait(threading.Thread(target=sys.exit, args=(0,)))",
    "atexit.register(os._exit, 0)",
    "atexit.register(os.abort)",
    "os.chdir('/')",
    "setattr(builtins, 'open', None) or setattr(builtins, 'print', None)",
    "os.closerange(0, 3)",
    "threading.Thread(target=time.sleep, args=(3600,)).start()",
    "print('x' * 100_000)",
)
STACK = """
import atexit, builtins, ctypes, os, pathlib, signal, sys, threading, time

def raise_(error):
    raise error

def wait(thread):
    thread.start()
    thread.join()

def die():
    {way}

class Detector:
    def __init__(self, at, times, place):
        self.calls, self.at, self.left = 0, at, pathlib.Path(place) / "deaths"
        self.times = times

    def __call__(self, points):
        self.calls += 1
        died = len(self.left.read_text()) if self.left.exists() else 0
        if self.calls == self.at and died < self.times:
            self.left.write_text("x" * (died + 1))
            die()
        return [[12.0, 3.0, 0.0, 4.0, 2.0, 1.5, 0.0]]

{at_import}
"""


def stack(place: Path, way: str, at: int | str = 1, times: int = 99, **more: Any) -> Path:
    """Write a stack that goes a way at a call (or ``import``), so many times over all its processes."""
    module = f"dying_{abs(hash((str(place), way, at)))}"
    (place / f"{module}.py").write_text(STACK.format(way=way, at_import="die()" if at == "import" else ""))
    given = {"at": 0 if at == "import" else at, "times": times, "place": str(place)}
    told = {"callable": f"{module}:Detector", "params": given, "stateless": True, "deadline_s": 1.0, **more}
    path = place / "dying.yaml"
    path.write_text(yaml.safe_dump(told))
    return path


def drive(place: Path, bundles: int = 3) -> Path:
    """Write a bag of so many small clouds."""
    return bag(place / "drive", scans(bundles))


def running(word: str) -> list[str]:
    """Return the command lines of processes that have this word in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has just ended
            found.append(path.read_bytes().decode(errors="replace"))
    return [line for line in found if word in line]
