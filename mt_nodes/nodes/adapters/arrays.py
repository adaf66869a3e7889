# SPDX-License-Identifier: Apache-2.0
"""What arrays of detections have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def best(detection: Any) -> Any | None:
    """Return the hypothesis with the highest score, the first of several; None where there is none."""
    return max(detection.results, key=lambda result: result.hypothesis.score, default=None)


def frame_of(message: Any, rows: Iterable[Any]) -> str:
    """Return the frame of an array: its header's, or where that is empty the one of its rows' headers.

    Raises:
        ValueError: the rows are in several frames.
    """
    frames = [message.header.frame_id, *(row.header.frame_id for row in rows)]
    names = sorted({frame for frame in frames if frame})
    if len(names) > 1:
        raise ValueError(f"the rows are in several frames: {', '.join(names)}")
    return names[0] if names else ""
