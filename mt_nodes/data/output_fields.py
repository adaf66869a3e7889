# SPDX-License-Identifier: Apache-2.0
"""``fields:`` of an output in a stack file: paths to the values in a message of any type.

    detections: {each: objects, center: pose.position, size: dimensions, yaw: pose.orientation, label: class_name}
    control: {steering_rad: {path: steer_deg, scale: 0.0174533}, speed_mps: drive.speed}
    signals: {each: lights, name: id, state: {path: color, names: {1: red, 2: yellow, 3: green}}}
    lanes: {each: lines, name: side, line: points, point: .}
    predictions: {each: objects, center: position, paths: ways, probability: p, line: points, point: pose, time_s: t}
    free_space: {cells: data, width: info.width, height: info.height, resolution_m: info.resolution, origin: corner}

A value is a path, or ``{path: …, scale: …}`` for other units and signs, or ``{path: …, names: {1: car}}`` for classes
that are numbers. What has several numbers is a path to something with x, y and z, to a list of numbers, or a list of
paths, one each: ``size: [length, width, height]``. Scaled values are in metres, radians, m/s, pixels, seconds, in the
frame that ``frame_id`` leads to or ``frame`` names (else the header's). All paths but ``stamp``, ``frame_id`` and
``each`` start from the items of the list at ``each``, where the role has one; ``.`` is the item itself. Lists may lie
in items: ``paths`` in those of ``each``, ``line`` in those of ``paths`` (without it, of ``each``); ``probability`` and
``step_s`` start from the items of ``paths``, ``point`` and ``time_s`` from those of ``line``. A message whose stamp is
a number matches its input to the nanosecond only where the number is whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from numbers import Number
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import Param, build, param
from mt_nodes.base.yaml_files import refuse_unknown
from mt_nodes.data.field_paths import FieldPath, FieldsOf, element_of
from mt_nodes.data.output_field_keys import KEYS, NEEDED, NESTED, NESTING, OUTSIDE, SIZES, FieldKind

#: Types of numbers and texts, as in rclpy.
NUMBERS = frozenset(("float", "double", "boolean", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64))))
TEXTS = frozenset(("string", "wstring"))
UUID = "unique_identifier_msgs/UUID"


def _path(value: Any, where: str) -> FieldPath:
    return FieldPath.parse(value, where)


def _names(value: Any, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value.values()):
        raise UsageError(f"{where}: got {value!r}, expected texts by value, such as {{1: car, 2: pedestrian}}")
    return {str(key): name for key, name in value.items()}


@dataclass(frozen=True)
class FieldSource:
    """Path of a value, its factor, and the names of its classes."""

    path: FieldPath = field(metadata={"param": Param(convert=_path)})
    scale: float = param(1.0)
    names: dict[str, str] = param({}, convert=_names)

    def number(self, of: Any) -> float:
        """Read a number."""
        return float(self.path.of(of)) * self.scale

    def numbers(self, of: Any, count: int) -> list[float]:
        """Read ``count`` numbers, from something with x, y and z or from a list.

        Raises:
            ValueError: there are fewer or more.
        """
        value = self.path.of(of)
        row = [getattr(value, axis) for axis in "xyz"[:count]] if hasattr(value, "x") else list(value)
        if len(row) != count:
            raise ValueError(f"path {self.path}: got {len(row)} numbers, expected {count}")
        return [float(number) * self.scale for number in row]

    def text(self, of: Any) -> str:
        """Read a text, number or UUID as text; return its name, if it has one."""
        value = self.path.of(of)
        value = getattr(value, "uuid", value)
        text = str(value) if isinstance(value, (str, Number)) else bytes(value).hex()
        return self.names.get(text, text)

    def nanoseconds(self, of: Any) -> int:
        """Read a time; a scaled number is in seconds, and exact if it is whole."""
        value = self.path.of(of)
        if hasattr(value, "nanosec"):
            return int(value.sec) * 1_000_000_000 + int(value.nanosec)
        return round(Fraction(value) * Fraction(str(self.scale)) * 1_000_000_000)


@dataclass(frozen=True)
class OutputFields:
    """``fields:`` of one output: one source by key, or one for each number."""

    role: str
    sources: dict[str, FieldSource | tuple[FieldSource, ...]]
    frame: str = ""

    @classmethod
    def parse(cls, role: str, given: Mapping[str, Any], where: str) -> OutputFields:
        """Read ``fields:`` of a stack file.

        Raises:
            UsageError: an unknown key, a value that is no path, or a missing key.
        """
        keys = KEYS[role]
        refuse_unknown(given, keys, where)
        for options in NEEDED[role]:
            if not any(key in given for key in options):
                raise UsageError(f"{where}: got {', '.join(given) or 'nothing'}, expected also {' or '.join(options)}")
        frame = given.get("frame", "")
        if not isinstance(frame, str) or (frame and "frame_id" in given):
            raise UsageError(f"{where}: frame: got {frame!r}, expected a frame's name, and no frame_id beside it")
        paths = {key: value for key, value in given.items() if keys[key] is not FieldKind.FIXED}
        return cls(role, {key: _source(value, keys[key], f"{where}.{key}") for key, value in paths.items()}, frame)

    def has(self, key: str) -> bool:
        """Whether the stack file has this key."""
        return key in self.sources

    def one(self, key: str) -> FieldSource | None:
        """Return the source of a value; None without."""
        source = self.sources.get(key)
        return None if isinstance(source, tuple) else source

    def rows(self, key: str, items: Sequence[Any]) -> Floats:
        """Read a place, a vector or edges of each item: (K, 2), (K, 3) or (K, 4).

        Raises:
            ValueError: an item has more numbers or fewer.
        """
        source, width = self.sources[key], SIZES[KEYS[self.role][key]]
        if isinstance(source, tuple):
            rows = [[part.number(item) for part in source] for item in items]
        else:
            rows = [source.numbers(item, width) for item in items]
        return np.array(rows, dtype=np.float64).reshape(-1, width)

    def check(self, type_name: str, fields_of: FieldsOf, where: str) -> None:
        """Check every path against a message type, given as ``pkg/Name``.

        Raises:
            UsageError: naming the path, the type found there and what was expected.
        """
        item, each = type_name, self.one("each")
        if each is not None:
            found = each.path.type_in(type_name, fields_of, f"{where}.each")
            element = element_of(found)
            if element is None:
                raise UsageError(f"{where}.each: {each.path} is {found}, expected {FieldKind.LIST.value}")
            item = element
        starts = self._starts(type_name, item, fields_of, where)
        for key, sources in self.sources.items():
            kind, several = KEYS[self.role][key], isinstance(sources, tuple)
            for source in sources if isinstance(sources, tuple) else (sources,):
                found = source.path.type_in(starts[key], fields_of, f"{where}.{key}")
                if not _fits(FieldKind.NUMBER if several else kind, found, fields_of):
                    expected = FieldKind.NUMBER if several else kind
                    raise UsageError(f"{where}.{key}: {source.path} is {found}, expected {expected.value}")

    def _starts(self, type_name: str, item: str, fields_of: FieldsOf, where: str) -> dict[str, str]:
        """Return the type from which the paths of each key start."""
        starts = {key: type_name if key in OUTSIDE else item for key in KEYS[self.role]}
        for name, keys in NESTED.items() if self.role in NESTING else ():
            starts[name] = item
            if (source := self.one(name)) is not None:
                found = source.path.type_in(item, fields_of, f"{where}.{name}")
                if (element := element_of(found)) is None:
                    raise UsageError(f"{where}.{name}: {source.path} is {found}, expected {FieldKind.LIST.value}")
                item = element
            starts.update(dict.fromkeys(keys, item))
        return starts


def _source(value: Any, kind: FieldKind, where: str) -> FieldSource | tuple[FieldSource, ...]:
    if isinstance(value, list):
        if len(value) != SIZES.get(kind):
            raise UsageError(f"{where}: got a list of {len(value)}, expected {kind.value}")
        return tuple(_single(part, f"{where}[{i}]") for i, part in enumerate(value))
    return _single(value, where)


def _single(value: Any, where: str) -> FieldSource:
    return build(FieldSource, value if isinstance(value, Mapping) else {"path": value}, where)


def _fits(kind: FieldKind, found: str, fields_of: FieldsOf) -> bool:
    if kind in (FieldKind.TIME, FieldKind.DURATION):
        return found in NUMBERS or found == f"builtin_interfaces/{kind.name.capitalize()}"
    if kind is FieldKind.TEXT:
        return found in NUMBERS | TEXTS | {UUID, "uint8[16]"}
    if kind is FieldKind.LIST:
        return element_of(found) is not None
    if kind is FieldKind.NUMBER:
        return found in NUMBERS
    if kind is FieldKind.NUMBERS:
        return element_of(found) in NUMBERS
    if kind is FieldKind.TURN:
        return found in NUMBERS or _has(found, "xyzw", fields_of)
    listed = element_of(found) in NUMBERS
    return listed or (kind is not FieldKind.EDGES and _has(found, "xyz"[: SIZES[kind]], fields_of))


def _has(found: str, names: str, fields_of: FieldsOf) -> bool:
    known = fields_of(found)
    return all(known.get(name) in NUMBERS for name in names)
