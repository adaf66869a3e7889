# SPDX-License-Identifier: Apache-2.0
"""What a message of any topic of a stack says, in a form in which two of them can be compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from visualization_msgs.msg import Marker

from mt_nodes.base.errors import UsageError
from mt_nodes.data.detections import Detections
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.nodes.convert import cloud_from_message
from mt_nodes.nodes.message_classes import decode
from mt_nodes.runs.blame.divergence import BoxesContent, Content, FieldsContent, PictureContent, PointsContent
from mt_nodes.stacks.message_adapter import adapter_for

CLOUD, IMAGE = "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Image"
_MARKERS = "visualization_msgs/msg/MarkerArray"
#: Fields that are the same for the same input, or names for things.
_LEFT_OUT = ("stamp", "_check_fields")
#: Longer sequences of numbers than that are read, of longer ones of messages only the first.
_MOST_ITEMS = 10_000


def stamp_reader(types: Callable[[], Mapping[str, str]]) -> Callable[[str, bytes], int | None]:
    """Return what reads the stamp of a message of a topic, whose type ``types`` knows; None for none."""

    def read(topic: str, data: bytes) -> int | None:
        type_name = types().get(topic, "")
        if adapter := _boxes_adapter(type_name):
            return adapter.stamp_ns(decode(type_name, data)) or None
        if type_name in (CLOUD, IMAGE):  # large: the header is at the beginning, behind four bytes of encapsulation
            little = data[1] == 1
            second, nano = (int.from_bytes(data[i : i + 4], "little" if little else "big") for i in (4, 8))
            return second * 1_000_000_000 + nano or None
        return stamp_of(decode(type_name, data)) or None

    return read


def content_reader(types: Mapping[str, str]) -> Callable[[str, bytes], Content]:
    """Return what reads the messages of topics, given the message type of each."""
    return lambda topic, data: content_of(types[topic], data)


def content_of(type_name: str, data: bytes) -> Content:
    """Return what a serialised message says; what cannot be read as points, boxes or an image is read by its fields."""
    message = decode(type_name, data)
    if type_name == CLOUD:
        cloud = cloud_from_message("", message)
        return PointsContent(cloud.frame_id, cloud.xyz.astype(np.float64))
    if type_name == IMAGE and (values := _picture(message)) is not None:
        return PictureContent(values)
    adapter = _boxes_adapter(type_name)
    if adapter is not None and (type_name != _MARKERS or _solid(message)):
        try:
            boxes = adapter.decode(message)
        except ValueError:
            return _fields(message)
        if isinstance(boxes, Detections):
            return BoxesContent(boxes)
    return _fields(message)


@cache
def _boxes_adapter(type_name: str) -> Any:
    """Return what reads obstacles from a type that carries nothing else; None for none."""
    if type_name in (CLOUD, ""):
        return None
    try:
        return adapter_for("detections", type_name)
    except UsageError:
        return None


def _solid(message: Any) -> bool:
    """Whether an array of markers has no lines, which would be lanes and paths."""
    lines = (Marker.LINE_STRIP, Marker.ARROW)
    return not any(m.type in lines for m in message.markers if m.action == Marker.ADD)


def _picture(message: Any) -> Any:
    """Return an image of 8 bits a channel as values (H, W, C) from 0 to 1; None for others."""
    data = np.frombuffer(bytes(message.data), np.uint8)
    channels, rest = divmod(message.step, max(1, message.width))
    if rest or not channels or len(data) != message.height * message.step or "16" in message.encoding:
        return None
    return data.reshape(message.height, message.width, channels).astype(np.float32) / 255.0


def _fields(message: Any) -> FieldsContent:
    numbers: dict[str, list[Any]] = {}
    texts: dict[str, list[str]] = {}
    _walk(message, "", numbers, texts)
    arrays = {name: np.concatenate([np.atleast_1d(v) for v in rows]) for name, rows in numbers.items()}
    return FieldsContent(arrays, {name: tuple(rows) for name, rows in texts.items()})


def _walk(value: Any, path: str, numbers: dict[str, list[Any]], texts: dict[str, list[str]]) -> None:
    """Take in all leaves of a message by their paths; those of the items of a list go together."""
    if isinstance(value, (bool, int, float, np.number)):
        numbers.setdefault(path, []).append(float(value))
    elif isinstance(value, str):
        texts.setdefault(path, []).append(value)
    elif hasattr(value, "get_fields_and_field_types"):
        for name in value.get_fields_and_field_types():
            if name not in _LEFT_OUT:
                _walk(getattr(value, name), f"{path}.{name}" if path else name, numbers, texts)
    elif len(value) and isinstance(value[0], (bool, int, float, np.number, bytes)):
        flat = np.frombuffer(b"".join(value), np.uint8) if isinstance(value[0], bytes) else np.asarray(value)
        numbers.setdefault(path, []).append(flat.astype(np.float64))
    else:
        numbers.setdefault(f"len({path})", []).append(float(len(value)))
        for item in value[:_MOST_ITEMS]:
            _walk(item, f"{path}[]", numbers, texts)
