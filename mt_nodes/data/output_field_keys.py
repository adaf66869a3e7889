# SPDX-License-Identifier: Apache-2.0
"""Keys of ``fields:`` by role of output, and what kind of field each leads to."""

from __future__ import annotations

from enum import Enum


class FieldKind(Enum):
    """Kind of a field; the value is its description in error texts."""

    TIME = "a builtin_interfaces/Time, or a number of seconds"
    DURATION = "a builtin_interfaces/Duration, or a number of seconds"
    TEXT = "a text, a number or a UUID"
    FIXED = "a text that is no path"
    LIST = "a list"
    NUMBER = "a number"
    TURN = "a number (yaw), or a quaternion with x, y, z and w"
    PLACE = "something with x and y, two numbers, or a list of two paths"
    VECTOR = "something with x, y and z, three numbers, or a list of three paths"
    EDGES = "four numbers, or a list of four paths"
    NUMBERS = "a list of numbers"


#: Numbers per kind.
SIZES = {FieldKind.PLACE: 2, FieldKind.VECTOR: 3, FieldKind.EDGES: 4}
_ALL = {"stamp": FieldKind.TIME}
_FRAME = {**_ALL, "frame_id": FieldKind.TEXT, "frame": FieldKind.FIXED}
#: Keys by role.
KEYS: dict[str, dict[str, FieldKind]] = {
    "detections": {
        **_FRAME,
        "each": FieldKind.LIST,
        "center": FieldKind.VECTOR,
        "size": FieldKind.VECTOR,
        "yaw": FieldKind.TURN,
        "label": FieldKind.TEXT,
        "score": FieldKind.NUMBER,
        "track": FieldKind.TEXT,
        "velocity": FieldKind.VECTOR,
    },
    "boxes": {
        **_FRAME,
        "each": FieldKind.LIST,
        "edges": FieldKind.EDGES,
        "center": FieldKind.PLACE,
        "size": FieldKind.PLACE,
        "label": FieldKind.TEXT,
        "score": FieldKind.NUMBER,
    },
    "path": {
        **_FRAME,
        "each": FieldKind.LIST,
        "position": FieldKind.PLACE,
        "yaw": FieldKind.TURN,
        "speed_mps": FieldKind.NUMBER,
        "time_s": FieldKind.DURATION,
    },
    "signals": {
        **_FRAME,
        "each": FieldKind.LIST,
        "name": FieldKind.TEXT,
        "state": FieldKind.TEXT,
        "score": FieldKind.NUMBER,
        "position": FieldKind.PLACE,
        "edges": FieldKind.EDGES,
    },
    "lanes": {
        **_FRAME,
        "each": FieldKind.LIST,
        "name": FieldKind.TEXT,
        "width_m": FieldKind.NUMBER,
        "line": FieldKind.LIST,
        "point": FieldKind.PLACE,
    },
    "free_space": {
        **_FRAME,
        "cells": FieldKind.NUMBERS,
        "width": FieldKind.NUMBER,
        "height": FieldKind.NUMBER,
        "resolution_m": FieldKind.NUMBER,
        "origin": FieldKind.PLACE,
        "yaw": FieldKind.TURN,
    },
    "control": {
        **_ALL,
        "steering_rad": FieldKind.NUMBER,
        "speed_mps": FieldKind.NUMBER,
        "acceleration_mps2": FieldKind.NUMBER,
        "yaw_rate_radps": FieldKind.NUMBER,
        "throttle": FieldKind.NUMBER,
        "brake": FieldKind.NUMBER,
    },
}
KEYS["tracks"] = KEYS["detections"]
KEYS["predictions"] = {
    **KEYS["detections"],
    "paths": FieldKind.LIST,
    "probability": FieldKind.NUMBER,
    "step_s": FieldKind.DURATION,
    "line": FieldKind.LIST,
    "point": FieldKind.PLACE,
    "time_s": FieldKind.DURATION,
}
#: Required keys by role; one of several alternatives is enough.
NEEDED = {
    "detections": (("each",), ("center",)),
    "boxes": (("each",), ("edges", "center"), ("edges", "size")),
    "path": (("each",), ("position",)),
    "control": (tuple(key for key in KEYS["control"] if key not in _ALL),),
    "tracks": (("each",), ("center",), ("track",)),
    "predictions": (("each",), ("center",), ("line",), ("point",), ("step_s", "time_s")),
    "signals": (("each",), ("state",), ("name", "edges", "position")),
    "lanes": (("each",), ("line",), ("point",)),
    "free_space": (("cells",), ("width",), ("height",), ("resolution_m",), ("origin",)),
}
#: Keys whose paths start from the message; others start from the items of ``each``, where there is one.
OUTSIDE = frozenset((*_FRAME, "each"))
#: List within items -> the keys whose paths start from its items; each list lies in the one before, if that is given.
NESTED = {"paths": ("probability", "step_s"), "line": ("point", "time_s")}
#: Roles that have such lists.
NESTING = ("lanes", "predictions")
