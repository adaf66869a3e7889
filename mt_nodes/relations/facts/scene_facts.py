# SPDX-License-Identifier: Apache-2.0
"""Facts of a scene and their sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """A fact with its source.

    ``value``: a flag, a number, a name, or names; None if unknown. ``source``: its source, or why it is unknown.
    """

    value: Any
    source: str

    @property
    def known(self) -> bool:
        """Whether the value is known."""
        return self.value is not None


Facts = dict[str, Fact]


def unknown(why: str) -> Fact:
    """Return an unknown fact."""
    return Fact(None, why)


def first_known(*sources: Mapping[str, Fact]) -> Facts:
    """Return each fact from the first source that knows it; if none does, the last source's reason."""
    merged: Facts = {}
    for source in reversed(sources):
        merged |= {name: fact for name, fact in source.items() if fact.known or not merged.get(name, fact).known}
    return merged
