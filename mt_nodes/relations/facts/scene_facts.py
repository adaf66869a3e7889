# SPDX-License-Identifier: Apache-2.0
"""Facts of a scene: what is so, and where that is known from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """One fact.

    Attributes:
        value: a flag, a number, a name, or names; None: it is not known.
        source: where it is from, or why it is not known.
    """

    value: Any
    source: str

    @property
    def known(self) -> bool:
        """Whether there is a value."""
        return self.value is not None


Facts = dict[str, Fact]


def unknown(why: str) -> Fact:
    """Return a fact that is not known."""
    return Fact(None, why)


def first_known(*sources: Mapping[str, Fact]) -> Facts:
    """Return each fact of the first source that knows it; of what none knows, why the last does not."""
    merged: Facts = {}
    for source in reversed(sources):
        merged |= {name: fact for name, fact in source.items() if fact.known or not merged.get(name, fact).known}
    return merged
