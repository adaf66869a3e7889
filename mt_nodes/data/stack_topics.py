# SPDX-License-Identifier: Apache-2.0
"""Topics that a stack subscribes and publishes, from its file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param
from mt_nodes.base.yaml_files import refuse_unknown
from mt_nodes.data.output_fields import OutputFields
from mt_nodes.data.outputs import ROLES

SENSOR_ROLES = ("lidar", "camera", "camera_info", "radar")
#: Role of a world input -> default message type.
WORLD_TYPES = {
    "objects": "visualization_msgs/msg/MarkerArray",
    "odometry": "nav_msgs/msg/Odometry",
    "route": "nav_msgs/msg/Path",
    "signals": "visualization_msgs/msg/MarkerArray",
    "lanes": "visualization_msgs/msg/MarkerArray",
}
INPUT_ROLES = (*SENSOR_ROLES, *WORLD_TYPES)
#: Roles that bundles can follow; the first that a stack takes counts.
LEADING_ROLES = ("lidar", "camera", "radar", "objects")
#: Role of an output that is no answer.
DIAGNOSTICS = "diagnostics"
OUTPUT_ROLES = (*ROLES, DIAGNOSTICS)
#: Those of perception beside obstacles and boxes.
PERCEPTION = frozenset({"tracks", "predictions", "signals", "lanes", "free_space"})
DEFAULT_INPUTS = {
    "lidar": "/sensing/lidar/points",
    "camera": "/sensing/camera/image",
    "camera_info": "/sensing/camera/camera_info",
    "radar": "/sensing/radar/points",
    "objects": "/perception/ground_truth/objects",
    "odometry": "/localization/odometry",
    "route": "/planning/route",
    "signals": "/perception/traffic_lights",
    "lanes": "/map/lanes",
}
DEFAULT_OUTPUTS: dict[str, dict[str, Any]] = {
    "detections": {"topic": "/perception/obstacles", "type": "visualization_msgs/msg/MarkerArray"},
    "control": {"topic": "/control/command", "type": "geometry_msgs/msg/TwistStamped"},
    "boxes": {"topic": "/perception/image_boxes", "type": "visualization_msgs/msg/ImageMarker"},
    "path": {"topic": "/planning/path", "type": "nav_msgs/msg/Path"},
    "tracks": {"topic": "/perception/tracks", "type": "visualization_msgs/msg/MarkerArray"},
    "predictions": {"topic": "/perception/predictions", "type": "visualization_msgs/msg/MarkerArray"},
    "signals": {"topic": "/perception/signals", "type": "visualization_msgs/msg/ImageMarker"},
    "lanes": {"topic": "/perception/lanes", "type": "visualization_msgs/msg/MarkerArray"},
    "free_space": {"topic": "/perception/free_space", "type": "nav_msgs/msg/OccupancyGrid"},
    DIAGNOSTICS: {"topic": "/diagnostics", "type": "diagnostic_msgs/msg/DiagnosticArray"},
}


@dataclass(frozen=True)
class OutputTopic:
    """One output of the stack: topic, message type, and its adapter.

    That is the adapter of the type or, where there are several, the one named, with ``params``; or ``fields``: where
    in the message everything is, by paths (:mod:`mt_nodes.data.output_fields`). ``beside`` are further topics that tell
    parts of the same command (:mod:`mt_nodes.stacks.command_merger`).
    """

    topic: str
    type: str
    adapter: str = ""
    params: dict[str, Any] = param({})
    fields: dict[str, Any] = param({})
    beside: tuple[OutputTopic, ...] = param(())

    @property
    def rows(self) -> tuple[OutputTopic, ...]:
        """All its topics, the leading one first."""
        return (self, *self.beside)


@dataclass(frozen=True)
class WorldTopic:
    """Topic and message type of a world input; an adapter must read and write the type."""

    topic: str
    type: str


Input = str | tuple[str, ...] | WorldTopic
"""For a sensor one topic or several, the leading one first."""


def read_inputs(value: Any, where: str) -> dict[str, Input]:
    """Read ``inputs`` of a stack file by role: a topic, a list, or ``{topic: …, type: …}`` for a world input.

    Raises UsageError: naming the key, what was got and what was expected.
    """
    roles = {value: DEFAULT_INPUTS.get(value, "")} if isinstance(value, str) else value
    if not isinstance(roles, Mapping) or not roles:
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{lidar: /points}}")
    refuse_unknown(roles, INPUT_ROLES, where)
    inputs = {role: _input(role, given, f"{where}.{role}") for role, given in roles.items()}
    topics = [topic for given in inputs.values() for topic in topics_of(given)]
    if twice := sorted({topic for topic in topics if topics.count(topic) > 1}):
        raise UsageError(f"{where}: got {twice[0]} more than once, expected each topic once")
    return inputs


def topics_of(given: Input) -> tuple[str, ...]:
    """Return the topics of one role of ``inputs``."""
    if isinstance(given, WorldTopic):
        return (given.topic,)
    return (given,) if isinstance(given, str) else tuple(given)


def _input(role: str, value: Any, where: str) -> Input:
    if role in SENSOR_ROLES:
        return _one_or_more(value or DEFAULT_INPUTS[role], where)
    if isinstance(value, WorldTopic):
        return value
    given = {"topic": value} if isinstance(value, str) else value or {}
    if not isinstance(given, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a topic or {{topic: …, type: …}}")
    row = build(WorldTopic, {"topic": DEFAULT_INPUTS[role], "type": WORLD_TYPES[role], **given}, where)
    read_topic(row.topic, f"{where}.topic")
    return row


def _one_or_more(value: Any, where: str) -> str | tuple[str, ...]:
    """Read a topic, or a list of several that play one role, the leading one first."""
    if not isinstance(value, (list, tuple)):
        return read_topic(value, where)
    topics = tuple(read_topic(topic, f"{where}[{i}]") for i, topic in enumerate(value))
    return topics[0] if len(topics) == 1 else topics


def read_outputs(named: Any, where: str) -> dict[str, OutputTopic]:
    """Read ``outputs`` of a stack file, by role. Raises UsageError."""
    roles = {named: None} if isinstance(named, str) else named
    if not isinstance(roles, Mapping) or not roles:
        raise UsageError(f"{where}: got {named!r}, expected a mapping such as {{detections: {{topic: …, type: …}}}}")
    refuse_unknown(roles, OUTPUT_ROLES, where)
    return {role: _output(role, value, f"{where}.{role}") for role, value in roles.items()}


def _output(role: str, value: Any, where: str) -> OutputTopic:
    """Read the output of one role, on one topic or, for a command, on several."""
    if role == "control" and isinstance(value, (list, tuple)) and value:
        return _several_outputs(role, value, where)
    given = {"topic": value} if isinstance(value, str) else {} if value is None else value
    if not isinstance(given, Mapping):
        several = " or, as only control may, a list of several" if isinstance(given, (list, tuple)) else ""
        raise UsageError(f"{where}: got {given!r}, expected a topic or {{topic: …, type: …}}{several}")
    if more := given.get("beside"):
        if not isinstance(more, (list, tuple)):
            raise UsageError(
                f"{where}.beside: got {more!r}, expected a list of outputs such as [{{topic: …, type: …}}]"
            )
        return _output(role, [{key: part for key, part in given.items() if key != "beside"}, *more], where)
    row = build(OutputTopic, {**DEFAULT_OUTPUTS[role], **given}, where)
    read_topic(row.topic, f"{where}.topic")
    if row.fields:
        _by_fields(role, row, "type" in given, where)
    return row


def _several_outputs(role: str, values: Sequence[Any], where: str) -> OutputTopic:
    rows = [_output(role, value, f"{where}[{i}]") for i, value in enumerate(values)]
    topics = [row.topic for row in rows]
    if twice := [topic for topic in topics if topics.count(topic) > 1]:
        raise UsageError(f"{where}: got {twice[0]} more than once, expected each topic once")
    return replace(rows[0], beside=tuple(rows[1:]))


def _by_fields(role: str, row: OutputTopic, typed: bool, where: str) -> None:
    if not typed or row.adapter or row.params:
        raise UsageError(f"{where}: got fields, expected a type beside them, and neither adapter nor params")
    OutputFields.parse(role, row.fields, f"{where}.fields")


def read_topic(value: Any, where: str) -> str:
    """Return an absolute topic. Raises UsageError: it is none."""
    if isinstance(value, str) and value.startswith("/") and not value.endswith("/"):
        return value
    raise UsageError(f"{where}: got {value!r}, expected an absolute topic such as /points")
