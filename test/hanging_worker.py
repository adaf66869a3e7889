# SPDX-License-Identifier: Apache-2.0
"""A worker of a campaign that hangs; it imports nothing, so that its process is there at once."""

from __future__ import annotations

from typing import Any


def takes_and_says_nothing(pipe: Any, *rest: object) -> None:
    """Take an item, and wait for another."""
    pipe.recv()
    pipe.recv()
