# SPDX-License-Identifier: Apache-2.0
"""Reads a message of any type by the paths that a stack file names; see :mod:`mt_nodes.data.output_fields`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.lanes import OWN, Lanes, SignalStates, Strip
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.data.output_fields import FieldSource, OutputFields
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Path
from mt_nodes.data.perception import FreeSpace, PredictedObjects, PredictedPath
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.orientation import yaws
from mt_nodes.stacks.message_adapter import Adapter, OutputPart


class ByFields(Adapter):
    """An adapter made of paths; read only.

    The stamp, where no path to it is named, is that of the message's header or the message's own ``stamp``; without
    either the answer is paired by its arrival. An empty list says that nothing was seen.
    """

    def __init__(self, role: str, type_name: str, fields: Mapping[str, Any]) -> None:
        """Look every path up in the type. Raises UsageError: the type is not installed, or it has no such fields."""
        where = f"outputs.{role}.fields"
        self.type, self.role = type_name, role  # type: ignore[misc]
        self._fields = OutputFields.parse(role, fields, where)
        message_class(type_name)
        name = type_name.replace("/msg/", "/")
        self._fields.check(name, fields_of, where)
        self.stamped = self._fields.has("stamp") or bool({"header", "stamp"} & set(fields_of(name)))  # type: ignore[misc]

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp at the path, or the message's own; None where it has none."""
        source = self._fields.one("stamp")
        return stamp_of(message) if source is None else source.nanoseconds(message)

    def decode(self, message: Any) -> OutputPart:
        """Read what the paths lead to. Raises ValueError: one leads beyond the end of a list."""
        if self.role == "control":
            return self._control(message)
        if self.role == "free_space":
            return self._free_space(message)
        each = self._fields.one("each")
        assert each is not None, "without which no fields are accepted"
        items = list(each.path.of(message))
        readers: dict[str, Callable[[Any, list[Any]], OutputPart]] = {
            **dict.fromkeys(("detections", "tracks"), self._detections),
            "boxes": self._boxes,
            "path": self._path,
            "signals": self._signals,
            "lanes": self._lanes,
            "predictions": self._predictions,
        }
        return readers[self.role](message, items)

    def _free_space(self, message: Any) -> FreeSpace:
        number = {key: self._fields.one(key) for key in ("width", "height", "resolution_m")}
        width, height, resolution_m = (source.number(message) for source in number.values() if source)
        cells = self._fields.one("cells")
        assert cells is not None, "without which no fields are accepted"
        values = np.array(cells.path.of(message), dtype=np.float64) * cells.scale
        if len(values) != width * height:
            raise ValueError(f"got {len(values)} cells, expected width x height = {width:g} x {height:g}")
        x, y = self._fields.rows("origin", [message])[0].tolist()
        yaws_of = self._yaws([message])
        origin = (x, y, 0.0 if yaws_of is None else float(yaws_of[0]))
        grid = np.rint(values).clip(-128, 127).astype(np.int8).reshape(int(height), int(width))
        return FreeSpace(self._frame_id(message), self.stamp_ns(message), resolution_m, origin, grid)

    def _signals(self, message: Any, items: list[Any]) -> SignalStates:
        places = self._fields.rows("position", items) if self._fields.has("position") else None
        return SignalStates.make(
            self._frame_id(message),
            self.stamp_ns(message),
            self._texts("name", items) or [""] * len(items),
            self._texts("state", items) or [],
            None if places is None else np.column_stack([places, np.zeros(len(items))]),
            self._numbers("score", items),
            self._fields.rows("edges", items) if self._fields.has("edges") else None,
        )

    def _lanes(self, message: Any, items: list[Any]) -> Lanes:
        names = self._texts("name", items) or [""] * len(items)
        widths = self._numbers("width_m", items)
        lines = [self._places(item) for item in items]
        strips = [
            Strip(names[row], OWN, 0.0 if widths is None else float(widths[row]), line)
            for row, line in enumerate(lines)
            if len(line)
        ]
        return Lanes.make(self._frame_id(message), self.stamp_ns(message), strips)

    def _predictions(self, message: Any, items: list[Any]) -> PredictedObjects:
        objects, paths = self._detections(message, items), self._fields.one("paths")
        rows = [[item] if paths is None else list(paths.path.of(item)) for item in items]
        return PredictedObjects(
            objects.frame_id,
            objects.stamp_ns,
            objects,
            tuple(tuple(path for path in map(self._predicted, row) if len(path.time_s)) for row in rows),
        )

    def _predicted(self, item: Any) -> PredictedPath:
        probability, step = self._fields.one("probability"), self._fields.one("step_s")
        places, points = self._places(item), self._points(item)
        times = self._seconds("time_s", points)
        if times is None:
            assert step is not None, "one of both is accepted"
            times = np.asarray(np.arange(len(points)) * (step.nanoseconds(item) * 1e-9), dtype=np.float64)
        return PredictedPath(1.0 if probability is None else probability.number(item), times, places)

    def _points(self, item: Any) -> list[Any]:
        line = self._fields.one("line")
        assert line is not None, "without which no fields are accepted"
        return list(line.path.of(item))

    def _places(self, item: Any) -> Floats:
        return self._fields.rows("point", self._points(item))

    def _control(self, message: Any) -> Control:
        sources = {key: self._fields.one(key) for key in self._fields.sources if key != "stamp"}
        return Control(self.stamp_ns(message), **{key: s.number(message) for key, s in sources.items() if s})

    def _detections(self, message: Any, items: list[Any]) -> Detections:
        return Detections.make(
            self._frame_id(message),
            self.stamp_ns(message),
            self._fields.rows("center", items),
            self._fields.rows("size", items) if self._fields.has("size") else None,
            self._yaws(items),
            self._labels(items),
            self._numbers("score", items),
            self._texts("track", items),
            self._fields.rows("velocity", items) if self._fields.has("velocity") else None,
        )

    def _boxes(self, message: Any, items: list[Any]) -> ImageBoxes:
        if self._fields.has("edges"):
            edges = self._fields.rows("edges", items)
        else:
            center, size = self._fields.rows("center", items), self._fields.rows("size", items)
            edges = np.column_stack([center - size / 2, center + size / 2])
        labels, scores = self._labels(items), self._numbers("score", items)
        return ImageBoxes.make(self._frame_id(message), self.stamp_ns(message), edges, labels, scores)

    def _path(self, message: Any, items: list[Any]) -> Path:
        turns, speeds, times = self._yaws(items), self._numbers("speed_mps", items), self._seconds("time_s", items)
        places = self._fields.rows("position", items)
        path = Path.make(
            self._frame_id(message),
            self.stamp_ns(message),
            np.column_stack([places, np.zeros(len(items)) if turns is None else turns]),
        )
        path = path if speeds is None else replace(path, speed_mps=speeds)
        return path if times is None else replace(path, time_s=times)

    def _frame_id(self, message: Any) -> str:
        source = self._fields.one("frame_id")
        if source is not None:
            return source.text(message)
        return self._fields.frame or str(getattr(getattr(message, "header", None), "frame_id", ""))

    def _numbers(self, key: str, items: list[Any]) -> Floats | None:
        source = self._fields.one(key)
        return None if source is None else np.array([source.number(item) for item in items], dtype=np.float64)

    def _seconds(self, key: str, items: list[Any]) -> Floats | None:
        source = self._fields.one(key)
        return None if source is None else np.array([source.nanoseconds(item) * 1e-9 for item in items])

    def _texts(self, key: str, items: list[Any]) -> list[str] | None:
        source = self._fields.one(key)
        return None if source is None else [source.text(item) for item in items]

    def _labels(self, items: list[Any]) -> list[str] | None:
        names = self._texts("label", items)
        return None if names is None else [name or "unknown" for name in names]

    def _yaws(self, items: list[Any]) -> Floats | None:
        source = self._fields.one("yaw")
        return None if source is None else np.array([_yaw(source, item) for item in items], dtype=np.float64)


def _yaw(source: FieldSource, item: Any) -> float:
    turn = source.path.of(item)
    if hasattr(turn, "w"):
        return float(yaws(np.array([[turn.x, turn.y, turn.z, turn.w]]))[0]) * source.scale
    return float(turn) * source.scale


def fields_of(type_name: str) -> dict[str, str]:
    """Return the fields of ``pkg/Name`` with their types as rclpy tells them; none of what is no message.

    Raises UsageError: its package is not installed.
    """
    package, slash, name = type_name.partition("/")
    if not slash or not name.isidentifier():
        return {}
    return dict(message_class(f"{package}/msg/{name}").get_fields_and_field_types())
