# SPDX-License-Identifier: Apache-2.0
"""Which topics a stack takes and says, as its file has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mt_nodes.errors import UsageError
from mt_nodes.output_fields import OutputFields
from mt_nodes.params import build, param
from mt_nodes.yaml_files import refuse_unknown

INPUT_ROLES = ("lidar", "camera", "camera_info")
#: What a stack tells beside its answers.
DIAGNOSTICS = "diagnostics"
OUTPUT_ROLES = ("detections", "control", "boxes", "path", DIAGNOSTICS)
DEFAULT_INPUTS = {
    "lidar": "/sensing/lidar/points",
    "camera": "/sensing/camera/image",
    "camera_info": "/sensing/camera/camera_info",
}
DEFAULT_OUTPUTS: dict[str, dict[str, Any]] = {
    "detections": {"topic": "/perception/obstacles", "type": "visualization_msgs/msg/MarkerArray"},
    "control": {"topic": "/control/command", "type": "geometry_msgs/msg/TwistStamped"},
    "boxes": {"topic": "/perception/image_boxes", "type": "visualization_msgs/msg/ImageMarker"},
    "path": {"topic": "/planning/path", "type": "nav_msgs/msg/Path"},
    DIAGNOSTICS: {"topic": "/diagnostics", "type": "diagnostic_msgs/msg/DiagnosticArray"},
}


@dataclass(frozen=True)
class OutputTopic:
    """One thing the stack says: topic, message type, and what reads it.

    That is the adapter of the type or, where there are several, the one named, with ``params``; or ``fields``: where
    in the message everything is, by paths (:mod:`mt_nodes.output_fields`).
    """

    topic: str
    type: str
    adapter: str = ""
    params: dict[str, Any] = param({})
    fields: dict[str, Any] = param({})


def read_inputs(value: Any, where: str) -> dict[str, str | tuple[str, ...]]:
    """Read ``inputs`` of a stack file: a topic, or a list of several, by role.

    Raises:
        UsageError: naming the key, what was got and what was expected.
    """
    roles = {value: DEFAULT_INPUTS.get(value, "")} if isinstance(value, str) else value
    if not isinstance(roles, Mapping) or not roles:
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{lidar: /points}}")
    refuse_unknown(roles, INPUT_ROLES, where)
    inputs = {role: _one_or_more(topic or DEFAULT_INPUTS[role], f"{where}.{role}") for role, topic in roles.items()}
    topics = [topic for given in inputs.values() for topic in ((given,) if isinstance(given, str) else given)]
    if twice := sorted({topic for topic in topics if topics.count(topic) > 1}):
        raise UsageError(f"{where}: got {twice[0]} more than once, expected each topic once")
    return inputs


def _one_or_more(value: Any, where: str) -> str | tuple[str, ...]:
    """Read a topic, or a list of several that play one role, the leading one first."""
    if not isinstance(value, (list, tuple)):
        return read_topic(value, where)
    topics = tuple(read_topic(topic, f"{where}[{i}]") for i, topic in enumerate(value))
    return topics[0] if len(topics) == 1 else topics


def read_outputs(named: Any, where: str) -> dict[str, OutputTopic]:
    """Read ``outputs`` of a stack file: what says what, by role.

    Raises:
        UsageError: naming the key, what was got and what was expected.
    """
    roles = {named: None} if isinstance(named, str) else named
    if not isinstance(roles, Mapping) or not roles:
        raise UsageError(f"{where}: got {named!r}, expected a mapping such as {{detections: {{topic: …, type: …}}}}")
    refuse_unknown(roles, OUTPUT_ROLES, where)
    outputs = {}
    for role, value in roles.items():
        given = {"topic": value} if isinstance(value, str) else value or {}
        if not isinstance(given, Mapping):
            raise UsageError(f"{where}.{role}: got {given!r}, expected a topic or {{topic: …, type: …}}")
        row = build(OutputTopic, {**DEFAULT_OUTPUTS[role], **given}, f"{where}.{role}")
        read_topic(row.topic, f"{where}.{role}.topic")
        if row.fields:
            _by_fields(role, row, "type" in given, f"{where}.{role}")
        outputs[role] = row
    return outputs


def _by_fields(role: str, row: OutputTopic, typed: bool, where: str) -> None:
    if not typed or row.adapter or row.params:
        raise UsageError(f"{where}: got fields, expected a type beside them, and neither adapter nor params")
    OutputFields.parse(role, row.fields, f"{where}.fields")


def read_topic(value: Any, where: str) -> str:
    """Return an absolute topic.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, str) and value.startswith("/") and not value.endswith("/"):
        return value
    raise UsageError(f"{where}: got {value!r}, expected an absolute topic such as /points")
