# SPDX-License-Identifier: Apache-2.0
"""The way back from plain data to dataclasses."""

from __future__ import annotations

import dataclasses
import types
import typing
from typing import Any


def revived(hint: Any, value: Any) -> Any:
    """Return a value of a type from what :func:`mt_nodes.base.params.plain` made of it, after a way through JSON.

    Args:
        hint: the type, or an annotation: dataclasses, tuples, dicts, unions with None, and plain values.

    Raises:
        LookupError, TypeError, ValueError: it is no such thing.
    """
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else revived(next(one for one in args if one is not types.NoneType), value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = typing.get_type_hints(hint)
        return hint(**{name: revived(hints[name], inner) for name, inner in value.items()})
    if origin is tuple:
        items = (args[0],) * len(value) if args[1:] == (Ellipsis,) else args
        return tuple(revived(item, inner) for item, inner in zip(items, value, strict=True))
    if origin is dict:
        return {name: revived(args[1], inner) for name, inner in value.items()}
    return value
