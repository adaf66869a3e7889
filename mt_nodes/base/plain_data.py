# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that files keep: what a run is asked for, lines of a journal."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

from mt_nodes.base.params import structure

P = TypeVar("P", bound="PlainData")


class PlainData:
    """A dataclass that JSON can hold."""

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return dataclasses.asdict(self)  # type: ignore[call-overload, no-any-return]

    @classmethod
    def from_plain(cls: type[P], data: Mapping[str, Any]) -> P:
        """Read what :meth:`as_plain` made; a key that is no field, such as one of another version, is left out.

        Raises LookupError, TypeError, ValueError: it is no such thing.
        """
        hints = _hints(cls)  # type: ignore[arg-type]
        return cls(**{name: _field(hint, data[name]) for name, hint in hints.items() if name in data})


def _field(hint: Any, value: Any) -> Any:
    return hint.from_plain(value) if isinstance(hint, type) and issubclass(hint, PlainData) else structure(hint, value)


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}
