# SPDX-License-Identifier: Apache-2.0
"""Numbers and their nouns in sentences."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, given in the singular: ``1 bundle``, ``2 blocks of 10 frames``."""
    name, of, what = noun.partition(" of ")
    return f"{count} {noun}" if count == 1 else f"{count} {name}s{of}{what}"


def lateral_text(left_m: float, digits: int) -> str:
    """Return a lateral offset in metres with its side: ``0.256 m to the right``."""
    side = "right" if round(left_m, digits) < 0.0 else "left"
    return f"{abs(left_m):.{digits}f} m to the {side}"
