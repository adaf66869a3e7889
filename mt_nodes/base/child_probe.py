# SPDX-License-Identifier: Apache-2.0
"""Has a child process look at ROS for one that does not import it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.errors import MtError

TIMEOUT_S = 60.0


def ask_child(module: str, env: Mapping[str, str], *words: str) -> dict[str, Any]:
    """Run a module of ours that looks at ROS; return what it prints as its last line of JSON.

    Raises:
        MtError: it failed, or hangs.
    """
    argv, limit_s = [sys.executable, "-m", module, *words], TIMEOUT_S
    try:
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise MtError(f"nothing came back within {limit_s:g} s") from error
    if done.returncode != 0:
        raise MtError(last_line(done.stderr) or f"exit code {done.returncode}")
    return dict(json.loads(last_line(done.stdout)))


def last_line(text: str) -> str:
    """Return the last line of what a program printed."""
    return text.strip().rpartition("\n")[2]
