# SPDX-License-Identifier: Apache-2.0
"""How the command line ends a suite process."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from mt_nodes.processes import Process
from mt_nodes.suite_watch import in_suite

#: A suite that loses the first signal, as one that is importing may, and says that it is there.
DEAF_AT_FIRST = """
import json, os, signal, sys
came = []
def heard(number, frame):
    came.append(number)
    if len(came) > 1:
        raise KeyboardInterrupt
signal.signal(signal.SIGINT, heard)
out = int(sys.argv[sys.argv.index("--events") + 1])
os.write(out, b'{"ready": true}\\n')
try:
    while True:
        signal.pause()
except KeyboardInterrupt:
    os.write(out, json.dumps({"end": 130, "error": "interrupted"}).encode() + b"\\n")
"""


def test_a_signal_that_the_suite_lost_is_handed_on_again(tmp_path: Path) -> None:
    process = Process("suite", (sys.executable, "-c", DEAF_AT_FIRST), dict(os.environ), tmp_path / "console.log")
    ready = []

    def show(event: object) -> None:
        ready.append(event)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt) as ended:
        in_suite(process, 30.0, show, "go on")
    assert ready == [{"ready": True}]
    assert "killed" not in str(ended.value)
