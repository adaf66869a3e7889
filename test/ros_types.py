# SPDX-License-Identifier: Apache-2.0
"""Messages of packages that are not on PyPI, as rclpy would give them, built from their definitions.

``ros_definitions/<package>.txt`` holds one type a paragraph: its name, a colon, its fields and constants, parted by
semicolons or new lines. Their classes have what those of rclpy have: keyword arguments, defaults, constants, refused
values of a wrong kind, ``get_fields_and_field_types``, arrays where rclpy has arrays. What such a type is made of and
is installed (``geometry_msgs`` …) is rclpy's own.

    message = make("vision_msgs/msg/Detection3DArray")     # or message_type(…)(header=…)
    message = wired(message)                                # through CDR bytes and back
    with installed(): ...                                   # `import vision_msgs.msg` works
"""

from __future__ import annotations

import array
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from mt_nodes.nodes.message_classes import message_class

DEFINITIONS = Path(__file__).with_name("ros_definitions")
PACKAGES = tuple(sorted(path.stem for path in DEFINITIONS.glob("*.txt")))
#: Python types of the primitive types of ROS, and what rclpy calls those that it names otherwise.
PYTHON_TYPES = {"bool": bool, "string": str, "float32": float, "float64": float}
RCLPY_NAMES = {"bool": "boolean", "float32": "float", "float64": "double"}
ARRAY_CODES = {"int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q"} | {
    "uint64": "Q",
    "float32": "f",
    "float64": "d",
}


@lru_cache
def store() -> Typestore:
    """The types of ROS 2 Jazzy and those of the definitions."""
    types = get_typestore(Stores.ROS2_JAZZY)
    for package in PACKAGES:
        for name, fields in definitions(package).items():
            types.register(get_types_from_msg(fields, f"{package}/msg/{name}"))
    return types


def definitions(package: str) -> dict[str, str]:
    """Read a package's types: name -> its message definition."""
    text = re.sub(r"#.*\n", "", (DEFINITIONS / f"{package}.txt").read_text(encoding="utf-8"))
    rows = re.findall(r"^(\w+):((?:.*\n)(?:[ ]+.*\n)*)", text, re.MULTILINE)
    return {name: "\n".join(part.strip() for part in re.split(r"[;\n]", fields)) for name, fields in rows}


def defined() -> tuple[str, ...]:
    """Every type of the definitions."""
    return tuple(f"{package}/msg/{name}" for package in PACKAGES for name in definitions(package))


def fields_of(type_name: str) -> dict[str, Any]:
    """Fields of a type with their kinds, as ``rosbags`` tells them."""
    return {name: kind for name, kind in store().fielddefs[type_name][1] if not name.startswith("structure_needs")}


@lru_cache
def message_type(type_name: str) -> Any:
    """The class of ``package/msg/Name``: rclpy's own, or one made of the definition."""
    package, _, name = type_name.split("/")
    if package not in PACKAGES:
        return getattr(importlib.import_module(f"{package}.msg"), name)
    constants = {name: value for name, _, value in store().fielddefs[type_name][0]}
    body = constants | {"_type": type_name, "_fields": fields_of(type_name)}
    return type(name, (_Message,), body | {"__module__": f"{package}.msg"})


def make(type_name: str, **fields: Any) -> Any:
    """A message with its defaults, some fields set."""
    return message_type(type_name)(**fields)


def wired(message: Any) -> Any:
    """The message as it comes off the wire: written as CDR bytes and read again."""
    return from_bytes(type_name_of(message), to_bytes(message))


def to_bytes(message: Any) -> bytes:
    """CDR bytes of a message of any kind."""
    name = type_name_of(message)
    return bytes(store().serialize_cdr(_bare(message, (Nodetype.NAME, name)), name))


def from_bytes(type_name: str, data: bytes) -> Any:
    """The message of CDR bytes, as rclpy gives it."""
    return _dressed(store().deserialize_cdr(data, type_name), (Nodetype.NAME, type_name))


def type_name_of(message: Any) -> str:
    """``package/msg/Name`` of a message."""
    return f"{type(message).__module__.split('.')[0]}/msg/{type(message).__name__}"


@contextmanager
def installed(*packages: str) -> Iterator[None]:
    """While it lasts, the packages (all that are defined, when none is named) can be imported."""
    before = {name: sys.modules.get(name) for p in packages or PACKAGES for name in (p, f"{p}.msg")}
    for package in packages or PACKAGES:
        messages = ModuleType(f"{package}.msg")
        vars(messages).update({name: message_type(f"{package}/msg/{name}") for name in definitions(package)})
        sys.modules[package] = ModuleType(package)
        sys.modules[f"{package}.msg"] = vars(sys.modules[package])["msg"] = messages
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
        message_class.cache_clear()  # which would go on knowing them


class _Message:
    """What the classes made of definitions have in common."""

    _type: ClassVar[str]
    _fields: ClassVar[dict[str, Any]]

    def __init__(self, **given: Any) -> None:
        for name, kind in self._fields.items():
            setattr(self, name, _default(kind))
        for name, value in given.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._fields:
            raise AttributeError(f"{self._type} has no field '{name}'")
        kind = self._fields[name]
        assert _fits(value, kind), f"{self._type}.{name}: got {value!r}, expected {_written(kind)}"
        if kind[0] is Nodetype.ARRAY:
            value = np.array(value, _default(kind).dtype)
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and to_bytes(self) == to_bytes(other)

    def __repr__(self) -> str:
        return f"{self._type}({', '.join(f'{n}={getattr(self, n)!r}' for n in self._fields)})"

    __hash__ = None  # type: ignore[assignment]

    @classmethod
    def get_fields_and_field_types(cls) -> dict[str, str]:
        return {name: _written(kind) for name, kind in cls._fields.items()}


def _default(kind: Any) -> Any:
    node, inner = kind
    if node is Nodetype.NAME:
        return message_type(inner)()
    if node is Nodetype.BASE:
        return PYTHON_TYPES.get(inner[0], int)()
    element, size = inner
    primitive = element[1][0] if element[0] is Nodetype.BASE else ""
    if node is Nodetype.ARRAY:
        return np.zeros(size, primitive)
    return array.array(ARRAY_CODES[primitive]) if primitive in ARRAY_CODES else []


def _fits(value: Any, kind: Any) -> bool:
    node, inner = kind
    if node is Nodetype.NAME:
        return type_name_of(value) == inner
    if node is Nodetype.BASE:
        wanted = PYTHON_TYPES.get(inner[0], int)
        return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    if isinstance(value, (array.array, np.ndarray)):
        return node is Nodetype.SEQUENCE or len(value) == inner[1]
    return isinstance(value, (list, tuple)) and all(_fits(v, inner[0]) for v in value)


def _written(kind: Any) -> str:
    node, inner = kind
    if node is Nodetype.NAME:
        return str(inner).replace("/msg/", "/")
    if node is Nodetype.BASE:
        return str(RCLPY_NAMES.get(inner[0], inner[0]))
    element, size = _written(inner[0]), inner[1]
    if node is Nodetype.ARRAY:
        return f"{element}[{size}]"
    return f"sequence<{element}, {size}>" if size else f"sequence<{element}>"


def _bare(value: Any, kind: Any) -> Any:
    """What ``rosbags`` writes."""
    node, inner = kind
    if node is Nodetype.NAME:
        return store().types[inner](**{n: _bare(getattr(value, n), part) for n, part in fields_of(inner).items()})
    if node is Nodetype.BASE:
        return value
    if inner[0][0] is Nodetype.BASE and inner[0][1][0] in ARRAY_CODES:
        return np.array(value, inner[0][1][0])
    return [_bare(v, inner[0]) for v in value]


def _dressed(value: Any, kind: Any) -> Any:
    """What rclpy gives in place of what ``rosbags`` read."""
    node, inner = kind
    if node is Nodetype.NAME:
        return message_type(inner)(**{n: _dressed(getattr(value, n), part) for n, part in fields_of(inner).items()})
    if node is Nodetype.BASE:
        return value
    primitive = inner[0][1][0] if inner[0][0] is Nodetype.BASE else ""
    if primitive in ARRAY_CODES:
        return np.array(value) if node is Nodetype.ARRAY else array.array(ARRAY_CODES[primitive], value.tolist())
    return [_dressed(v, inner[0]) for v in value]
