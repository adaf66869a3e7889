# SPDX-License-Identifier: Apache-2.0
"""Parameters of plugins: one frozen dataclass holds names, defaults, units, ranges and help texts."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar, get_args, get_origin

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.plugins import describe_failure, is_plugin

T = TypeVar("T")
#: What a type is called by people who write YAML.
_GLOSSES = {bool: " (true or false)", str: " (a text; quote one that YAML takes for something else)"}


@dataclass(frozen=True)
class Param:
    """Specification of one parameter, in the metadata of the dataclass field.

    ``neutral`` makes it a strength: the value at which it changes nothing, or the least in its range. A number that is
    not a strength has an ``aspect``: ``place`` (where or when, not how much) or ``fixed`` (an assumption, a limit, a
    seed). See :mod:`mt_nodes.relations.strength`.
    """

    low: float | None = None
    high: float | None = None
    unit: str = ""
    help: str = ""
    choices: tuple[str, ...] = ()
    convert: Callable[[Any, str], Any] | None = None
    neutral: float | None = None
    aspect: str = ""


def param(
    default: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    unit: str = "",
    help: str = "",
    choices: tuple[str, ...] = (),
    convert: Callable[[Any, str], Any] | None = None,
    neutral: float | None = None,
    aspect: str = "",
) -> Any:
    """Declare a parameter of a frozen dataclass.

    ``low`` and ``high`` are inclusive. ``convert(value, where)`` replaces the type check for values that
    are more than a number, a text or a flag; it raises :class:`UsageError`.
    ``neutral`` and ``aspect``: see :class:`Param`.
    """
    meta = {"param": Param(low, high, unit, help, choices, convert, neutral, aspect)}
    if isinstance(default, (dict, list)):
        return dataclasses.field(default_factory=lambda: type(default)(default), metadata=meta)
    return dataclasses.field(default=default, metadata=meta)


def build(cls: type[T], given: Mapping[str, Any] | None, where: str) -> T:
    """Build ``cls`` from a mapping; refuses unknown keys, wrong types and values out of range. Raises UsageError."""
    values = {} if given is None else given
    if not isinstance(values, Mapping):
        raise UsageError(f"{where}: got {type(values).__name__} {values!r}, expected a mapping of parameters")
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}  # type: ignore[arg-type]
    hints = _hints(cls)  # type: ignore[arg-type]
    for key in values:
        if key not in fields:
            raise UsageError(f"{where}: unknown parameter '{key}'{suggest(str(key), fields)}")
    checked = {key: _check(value, hints[key], spec_of(fields[key]), f"{where}.{key}") for key, value in values.items()}
    missing = [
        name
        for name, f in fields.items()
        if name not in checked and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise UsageError(f"{where}: missing {', '.join(missing)}")
    try:
        return cls(**checked)
    except UsageError as error:  # of parameters that do not go together
        raise UsageError(f"{where}: {error}") from error
    except Exception as error:
        if not is_plugin(cls):
            raise
        raise UsageError(f"{where}: {describe_failure(cls, '__post_init__', error)}") from error


def spec_of(field: dataclasses.Field[Any]) -> Param:
    """Return the :class:`Param` of a dataclass field (an empty one if it has none)."""
    return typing.cast(Param, field.metadata.get("param", Param()))


def describe(cls: type) -> list[dict[str, Any]]:
    """List a dataclass's parameters as plain data: name, type, default, and the fields of its :class:`Param`."""
    hints = _hints(cls)
    rows = []
    for f in dataclasses.fields(cls):
        spec = spec_of(f)
        default = f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
        rows.append(
            {
                "name": f.name,
                "type": _type_name(hints[f.name]),
                "default": None if default is dataclasses.MISSING else plain(default),
                "unit": spec.unit,
                "low": spec.low,
                "high": spec.high,
                "choices": list(spec.choices),
                "help": spec.help,
                "neutral": spec.neutral,
                "aspect": spec.aspect,
            }
        )
    return rows


def strength_of(parameter: Mapping[str, Any]) -> str:
    """Describe the strength of a parameter from :func:`describe`; empty for a parameter that is not a number."""
    if parameter["neutral"] is None:
        return str(parameter["aspect"])
    unit = f" {parameter['unit']}" if parameter["unit"] else ""
    return f"least at {parameter['neutral']:g}{unit}"


def plain(value: Any) -> Any:
    """Return a parameter value as plain data for JSON and YAML."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value


def structure(hint: Any, value: Any) -> Any:
    """Build a value of a type from its plain data: the reverse of :func:`plain` after a round trip through JSON.

    ``hint``: the type, or an annotation: dataclasses, tuples, dicts, unions with None, and plain values.
    Raises LookupError, TypeError, ValueError: the data do not fit the type.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else structure(next(one for one in args if one is not types.NoneType), value)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        hints = typing.get_type_hints(hint)
        return hint(**{name: structure(hints[name], inner) for name, inner in value.items()})
    if origin is tuple:
        items = (args[0],) * len(value) if args[1:] == (Ellipsis,) else args
        return tuple(structure(item, inner) for item, inner in zip(items, value, strict=True))
    if origin is dict:
        return {name: structure(args[1], inner) for name, inner in value.items()}
    return value


@cache
def _hints(cls: type) -> Mapping[str, Any]:
    """Return the types of the fields by name; cached, because Python compiles annotations that are texts."""
    return types.MappingProxyType(typing.get_type_hints(cls))


def _type_name(hint: Any) -> str:
    if get_origin(hint) in (dict, Mapping):
        return "a mapping of keys to values"
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def _check(value: Any, hint: Any, spec: Param, where: str) -> Any:
    if spec.convert is not None:
        return spec.convert(value, where)
    if spec.choices and value not in spec.choices:
        raise UsageError(f"{where}: got {value!r}, expected one of {', '.join(spec.choices)}")
    value = _typed(value, hint, where)
    for item in value if isinstance(value, tuple) else (value,):
        _in_range(item, spec, where)
    return value


def _in_range(value: Any, spec: Param, where: str) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return
    if isinstance(value, float) and math.isnan(value):
        raise UsageError(f"{where}: got NaN, expected a number")
    below, above = spec.low is not None and value < spec.low, spec.high is not None and value > spec.high
    if below or above:
        low = "-inf" if spec.low is None else f"{spec.low:g}"
        high = "inf" if spec.high is None else f"{spec.high:g}"
        unit = f" {spec.unit}" if spec.unit else ""
        raise UsageError(f"{where}: got {value:g}{unit}, expected {low} to {high}{unit}")


def _typed(value: Any, hint: Any, where: str) -> Any:
    origin = get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        options = get_args(hint)
        if value is None and type(None) in options:
            return None
        return _typed(value, next(o for o in options if o is not type(None)), where)
    if origin is tuple:
        return _typed_tuple(value, get_args(hint), where)
    if hint is float and isinstance(value, str) and value in ("inf", "-inf", ".inf", "-.inf"):
        return float(value.replace(".", ""))
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    annotation = origin or hint
    if annotation is Any or (
        isinstance(value, annotation) and not (annotation in (int, float) and isinstance(value, bool))
    ):
        return value
    gloss = _GLOSSES.get(hint, "")
    raise UsageError(f"{where}: got {type(value).__name__} {value!r}, expected {_type_name(hint)}{gloss}")


def _typed_tuple(value: Any, items: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        words = value.split() if isinstance(value, str) else []
        example = f": [{', '.join(words)}]" if words else ""
        raise UsageError(f"{where}: got {value!r}, expected a list{example}")
    if len(items) == 2 and items[1] is Ellipsis:
        return tuple(_typed(v, items[0], f"{where}[{i}]") for i, v in enumerate(value))
    if len(value) != len(items):
        raise UsageError(f"{where}: got {len(value)} values, expected {len(items)}")
    return tuple(_typed(v, h, f"{where}[{i}]") for i, (v, h) in enumerate(zip(value, items, strict=True)))
