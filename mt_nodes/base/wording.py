# SPDX-License-Identifier: Apache-2.0
"""Numbers and their nouns in sentences."""

from __future__ import annotations

import re

#: What a full stop follows that ends no sentence: an initial, and usual short forms.
_ABBREVIATION = re.compile(r"\b([A-Z]|al|e\.g|i\.e|vs)$")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, given in the singular: ``1 bundle``, ``2 blocks of 10 frames``."""
    name, of, what = noun.partition(" of ")
    return f"{count} {noun}" if count == 1 else f"{count} {name}s{of}{what}"


def capitalised(text: str) -> str:
    """Return a text with a capital first letter; the others stay as they are."""
    return text[:1].upper() + text[1:]


def first_sentence(text: str) -> str:
    """Return the first sentence of a text, in one line; a full stop within brackets or an abbreviation ends none."""
    line = " ".join(text.split())
    for end in re.finditer(r"[.:;](?= |$)", line):
        before = line[: end.start()]
        if before.count("(") == before.count(")") and not _ABBREVIATION.search(before):
            return before
    return line


def lateral_text(left_m: float, digits: int) -> str:
    """Return a lateral offset in metres with its side: ``0.256 m to the right``."""
    side = "right" if round(left_m, digits) < 0.0 else "left"
    return f"{abs(left_m):.{digits}f} m to the {side}"
