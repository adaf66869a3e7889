# SPDX-License-Identifier: Apache-2.0
"""Numbers in sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return how many there are of something, by its name in the singular: ``1 bundle``, ``2 blocks of 10 frames``."""
    name, of, what = noun.partition(" of ")
    return f"{count} {noun}" if count == 1 else f"{count} {name}s{of}{what}"


def aside(left_m: float, digits: int) -> str:
    """Return how far something lies to which side, in metres: ``0.256 m to the right``."""
    side = "right" if round(left_m, digits) < 0.0 else "left"
    return f"{abs(left_m):.{digits}f} m to the {side}"
