# SPDX-License-Identifier: Apache-2.0
"""What a case and a target are, and the edits of bytes that several targets make."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

#: Numbers at which sizes, offsets and counts go wrong.
EDGES = (0, 1, 2, 3, 4, 7, 8, 15, 16, 17, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32 - 16, 2**32 - 1)
FLOATS = (0.0, 1e-320, 1e300, math.nan, math.inf, -math.inf)
Span = tuple[int, int]


class Case(NamedTuple):
    """One input: which kind of the target's it is, and its bytes. A file of the corpus holds just these."""

    kind: str
    data: bytes


@dataclass(frozen=True)
class Target:
    """Something that is fuzzed.

    Attributes:
        name: of the target, its folder in the corpus.
        kinds: what it takes, each a folder below.
        cases: makes the strategy that cases are drawn from.
        sound: one input of a kind with nothing wrong.
        check: uses a case, in an empty directory of its own; returns in a word what came of it, or raises.
        where: what every known error must name (empty: the caller of the code under test adds it).
    """

    name: str
    kinds: tuple[str, ...]
    cases: Callable[[], st.SearchStrategy[Case]]
    sound: Callable[[str], bytes]
    check: Callable[[Case, Path], str]
    where: str


def edited(sound: bytes, spans: tuple[Span, ...] = (), most: int = 4) -> st.SearchStrategy[bytes]:
    """Return the strategy of a sound input with up to ``most`` edits, of single bytes, numbers and whole ``spans``."""
    return st.lists(edit(len(sound), spans), max_size=most).map(lambda edits: applied(sound, edits))


Edit = tuple[str, int, int, bytes]


def edit(size: int, spans: tuple[Span, ...] = ()) -> st.SearchStrategy[Edit]:
    """Return the strategy of one edit of an input of ``size`` bytes."""
    place, short = st.integers(0, max(0, size)), st.integers(0, 64)
    whole = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**32 - 1)).map(lambda n: n.to_bytes(4, "little"))
    number = st.one_of(whole, st.sampled_from(FLOATS).map(lambda f: struct.pack("<d", f)))
    byte = st.binary(min_size=1, max_size=1)
    # Counts, sizes and coordinates stand at aligned places: those are tried more often than chance would, and more
    # often than what moves all behind it, which is soon found out.
    weighted = [
        (10, st.tuples(st.just("set"), place.map(lambda at: at & ~3), st.just(0), number)),
        (4, st.tuples(st.just("set"), place, st.just(0), byte)),
        (1, st.tuples(st.just("replace"), place, short, st.binary(max_size=16))),
        (1, st.tuples(st.just("cut"), place, st.just(0), st.just(b""))),
    ]
    if spans:
        kinds = st.sampled_from(("drop", "double", "zero"))
        rows = st.tuples(kinds, st.sampled_from(spans))
        weighted.append((6, rows.map(lambda row: (row[0], *row[1], b""))))
    chosen = [strategy for weight, strategy in weighted for _ in range(weight)]
    return st.integers(0, len(chosen) - 1).flatmap(chosen.__getitem__)


def applied(data: bytes, edits: list[Edit]) -> bytes:
    """Return bytes with edits made one after the other: what, where, up to where or how many, and new bytes."""
    made = bytearray(data)
    for what, at, other, new in edits:
        if what == "set":
            made[at : at + len(new)] = new
        elif what == "replace":
            made[at : at + other] = new
        elif what == "cut":
            del made[at:]
        elif what == "drop":
            del made[at:other]
        elif what == "double":
            made[other:other] = made[at:other]
        else:
            made[at:other] = bytes(len(made[at:other]))
    return bytes(made)
