# SPDX-License-Identifier: Apache-2.0
"""Queries ROS in a child process, for callers that do not import ROS themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.errors import MtError

TIMEOUT_S = 60.0


def ask_child(module: str, env: Mapping[str, str], *words: str) -> dict[str, Any]:
    """Run a module of this package that queries ROS; return the JSON object in its last line of output.

    Raises MtError: the module fails or does not return in time.
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
    """Return the last line of a program's output."""
    return text.strip().rpartition("\n")[2]
