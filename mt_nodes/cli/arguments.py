# SPDX-License-Identifier: Apache-2.0
"""Arguments of launch files, which are texts: made from the fields of :class:`ReplayRequest`, and read into one."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, spec_of
from mt_nodes.engine.plan import ReplayRequest

#: Fields with several values, by the word that ``mt replay`` has for one of them.
SINGULAR = {"bags": "bag", "faults": "fault", "topics": "topic"}
_BOOLS = {"true": True, "false": False}


@dataclass(frozen=True)
class Argument:
    """An argument: its name, its default as text (None: required), its help, and the field of the request it sets."""

    name: str
    default: str | None
    help: str
    field: str = ""


def replay_arguments(leave_out: Iterable[str] = ()) -> list[Argument]:
    """Return one argument for each field of :class:`ReplayRequest`, except those to leave out."""
    fields = [f for f in dataclasses.fields(ReplayRequest) if f.name not in set(leave_out)]
    return [Argument(SINGULAR.get(f.name, f.name), _default(f), _help(f), f.name) for f in fields]


def request_from_texts(arguments: Iterable[Argument], texts: Mapping[str, str]) -> ReplayRequest:
    """Return the request that these texts describe, one for each argument.

    Raises UsageError: a text does not fit the type of its field.
    """
    hints = typing.get_type_hints(ReplayRequest)
    values = {a.field: _value(texts[a.name].strip(), hints[a.field], a.name) for a in arguments if a.field}
    return build(ReplayRequest, values, "replay")


def role_topic(text: str, where: str = "--topic") -> tuple[str, str]:
    """Read ``ROLE=TOPIC``. Raises UsageError: the text has another form."""
    role, separator, topic = text.partition("=")
    if not (separator and role and topic):
        raise UsageError(f"{where}: got '{text}', expected ROLE=TOPIC such as lidar=/points")
    return role, topic


def role_topics(texts: Iterable[str], where: str = "--topic") -> dict[str, str]:
    """Read ``ROLE=TOPIC`` and ``ROLE=TOPIC,TOPIC``; topics of a role that is named again are appended.

    Raises UsageError: a text has another form.
    """
    topics: dict[str, str] = {}
    for role, names in (role_topic(text, where) for text in texts):
        topics[role] = f"{topics[role]},{names}" if role in topics else names
    return topics


def _default(field: dataclasses.Field[Any]) -> str | None:
    if field.default_factory is not dataclasses.MISSING:
        return ""
    if field.default is dataclasses.MISSING:
        return None
    if isinstance(field.default, tuple):
        return ",".join(field.default)
    if isinstance(field.default, bool):
        return str(field.default).lower()
    return "" if field.default is None else str(field.default)


def _help(field: dataclasses.Field[Any]) -> str:
    several = get_origin(typing.get_type_hints(ReplayRequest)[field.name]) in (tuple, Mapping)
    return spec_of(field).help + ("; separate several with commas" if several else "")


def _value(text: str, hint: Any, name: str) -> Any:
    """Read a text as the type of a field."""
    if hint is str:
        return text
    words = [word.strip() for word in text.split(",") if word.strip()]
    if get_origin(hint) is tuple:
        return tuple(words)
    if get_origin(hint) is Mapping:
        return role_topics(words, name)
    if not text and type(None) in get_args(hint):
        return None
    if hint is bool:
        if text.lower() not in _BOOLS:
            raise UsageError(f"{name}: got '{text}', expected true or false")
        return _BOOLS[text.lower()]
    kind, expected = (float, "a number") if hint is float else (int, "a whole number")
    try:
        return kind(text)
    except ValueError:
        raise UsageError(f"{name}: got '{text}', expected {expected}") from None
