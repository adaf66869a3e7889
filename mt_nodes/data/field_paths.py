# SPDX-License-Identifier: Apache-2.0
"""Paths to fields of messages, such as ``objects[0].pose.position``: read, followed, and looked up in a type.

Types are written as in rclpy (``get_fields_and_field_types``): ``double``, ``string``, ``pkg/Name``,
``sequence<pkg/Name>``, ``sequence<double, 9>``, ``float[36]``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import UsageError, suggest

#: Form of a path; fields have no leading underscore.
_PATH = re.compile(r"[A-Za-z]\w*(\[\d+\])*(\.[A-Za-z]\w*(\[\d+\])*)*")
_STEP = re.compile(r"[A-Za-z]\w*|\d+")
_LIST = re.compile(r"sequence<([^,>]+)(?:, *(\d+))?>|(.+)\[(\d+)\]")
#: The path of an item itself, for example of a point in a list of points.
ITSELF = "."

FieldsOf = Callable[[str], dict[str, str]]


@dataclass(frozen=True)
class FieldPath:
    """The steps of a path: names of fields, and places in lists."""

    steps: tuple[str | int, ...]

    @classmethod
    def parse(cls, text: Any, where: str) -> FieldPath:
        """Read ``a.b[0].c``; ``.`` is the item itself. Raises UsageError: it is no path."""
        if text == ITSELF:
            return cls(())
        if not isinstance(text, str) or not _PATH.fullmatch(text):
            raise UsageError(f"{where}: got {text!r}, expected a path of fields such as pose.position or objects[0].x")
        return cls(tuple(int(step) if step.isdigit() else step for step in _STEP.findall(text)))

    def __str__(self) -> str:
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return text.lstrip(".") or ITSELF

    def of(self, message: Any) -> Any:
        """Follow the path. Raises ValueError: the message has no such field, or the list no such index."""
        value = message
        for step in self.steps:
            try:
                value = value[step] if isinstance(step, int) else getattr(value, step)
            except (AttributeError, IndexError, TypeError) as error:
                raise ValueError(f"path {self} leads nowhere: {error}") from error
        return value

    def type_in(self, type_name: str, fields_of: FieldsOf, where: str) -> str:
        """Return the type of the field at this path in a message type.

        Raises UsageError: there is no such field, or an index into no list; lists the fields.
        ``type_name``: the message type. ``fields_of``: names and types of the fields of a message type; empty for
        others. ``where``: prefix of error texts.
        """
        for step in self.steps:
            known = fields_of(type_name)
            if isinstance(step, int):
                if (element := element_of(type_name)) is None:
                    raise UsageError(f"{where}: {self}: got an index into {type_name}, expected a list to take it from")
                type_name = _with_place(type_name, element, step, f"{where}: {self}")
            elif step in known:
                type_name = known[step]
            elif known:
                raise UsageError(f"{where}: {self}: {type_name} has no field '{step}'{_fields(step, known)}")
            else:
                raise UsageError(f"{where}: {self}: {type_name} is no message, so it has no field '{step}'")
        return type_name


def element_of(type_name: str) -> str | None:
    """Return the type of a list's elements; None for other types."""
    found = _LIST.fullmatch(type_name)
    return (found[1] or found[3]).strip() if found else None


def _with_place(type_name: str, element: str, place: int, where: str) -> str:
    found = _LIST.fullmatch(type_name)
    size = int((found[2] or found[4] or 0) if found else 0)
    if size and place >= size:
        raise UsageError(f"{where}: got place {place} of {type_name}, expected 0 to {size - 1}")
    return element


def _fields(step: str, known: dict[str, str]) -> str:
    """Return a similar name, and all fields with their types."""
    near = suggest(step, known, " ").rstrip("; ")
    return f"{near}; its fields are {', '.join(f'{name} ({kind})' for name, kind in known.items())}"
