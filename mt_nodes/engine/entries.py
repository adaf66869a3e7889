# SPDX-License-Identifier: Apache-2.0
"""Values in entries of the files that rules and the ontology are written in: texts, flags, lists, mappings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mt_nodes.base.errors import UsageError


def text(data: Mapping[str, Any], key: str, where: str, default: str | None = "") -> str:
    """Return a text that is not blank, or the default; None: there must be one. Raises UsageError."""
    value = data.get(key, default)
    if isinstance(value, str) and (value.strip() or value == default):
        return value
    raise UsageError(f"{where}.{key}: got {value!r}, expected a text")


def texts(data: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return a list of texts; none without the key. Raises UsageError: names the place, the key and what was got."""
    value = data.get(key, [])
    if isinstance(value, list) and all(isinstance(one, str) and one.strip() for one in value):
        return tuple(value)
    raise UsageError(f"{where}.{key}: got {value!r}, expected a list of texts (quote yes, no, on and numbers)")


def flag(data: Mapping[str, Any], key: str, where: str) -> bool:
    """Return a flag, which is false without the key. Raises UsageError: names the place, the key and what was got."""
    if isinstance(value := data.get(key, False), bool):
        return value
    raise UsageError(f"{where}.{key}: got {value!r}, expected true or false")


def mapping(value: Any, where: str, such_as: str = "") -> Mapping[str, Any]:
    """Return a mapping. Raises UsageError: names the place and what was got."""
    if isinstance(value, dict):
        return value
    raise UsageError(f"{where}: got {value!r}, expected a mapping{such_as and f', such as {such_as}'}")
