# SPDX-License-Identifier: Apache-2.0
"""How a process starts and ends that asks ROS something and prints the answer as one JSON line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import rclpy

from mt_nodes.nodes.node_main import end_signals


def json_output() -> Callable[[Any], None]:
    """Return what prints an answer; all that is written to descriptor 1 from now on goes to standard error.

    Fast DDS prints its errors to descriptor 1.
    """
    out = os.dup(1)
    os.dup2(2, 1)

    def answer(value: Any) -> None:
        os.write(out, (json.dumps(value) + "\n").encode())

    return answer


@contextmanager
def default_context() -> Iterator[None]:
    """Have rclpy's default context, until Ctrl-C or SIGTERM at the latest."""
    rclpy.init(args=[])
    try:
        yield
    finally:
        end_signals()
        rclpy.try_shutdown()
