# SPDX-License-Identifier: Apache-2.0
"""Stamps and headers of ROS messages, as integers in ns; any object with the same fields will do."""

from __future__ import annotations

from typing import Any


def stamp_of(message: Any) -> int | None:
    """Return the header stamp in ns; None for a type without header or stamp."""
    stamp = getattr(getattr(message, "header", message), "stamp", None)
    return None if stamp is None else int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def set_stamp(stamp: Any, stamp_ns: int) -> None:
    """Write ns into a ``builtin_interfaces/Time``."""
    stamp.sec, stamp.nanosec = divmod(int(stamp_ns), 1_000_000_000)


def set_header(header: Any, frame_id: str, stamp_ns: int | None) -> None:
    """Write frame and stamp into a ``std_msgs/Header``; no stamp is 0."""
    header.frame_id = frame_id
    set_stamp(header.stamp, stamp_ns or 0)
