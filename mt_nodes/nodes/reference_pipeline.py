# SPDX-License-Identifier: Apache-2.0
"""The reference pipeline as five nodes in one process, each with topics of its own.

Started by :mod:`mt_nodes.nodes.callable_stack` for the stack file ``reference_pipeline``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import TwistStamped
from nav_msgs.msg import Path as PathMessage
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header
from visualization_msgs.msg import MarkerArray

from mt_nodes.base.processes import wait_until
from mt_nodes.data.message_headers import set_stamp, stamp_of
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.nodes import qos
from mt_nodes.nodes.convert import cloud_from_message, own_create_cloud
from mt_nodes.nodes.node_main import run_node
from mt_nodes.stacks.callable_host import as_points
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.message_adapter import adapter_for
from mt_nodes.stacks.reference.node_pipeline import Pipeline
from mt_nodes.stacks.stack import Stack, load_stack

POINTS, CLUSTERS = "/perception/points_above_ground", "/perception/clusters"
_COLUMNS = ("x", "y", "z", "height")
#: See :data:`mt_nodes.nodes.callable_stack.MEET_S`.
MEET_S = 3.0


@dataclass(frozen=True)
class _Topic:
    """A topic: how its messages are read and written."""

    name: str
    kind: Any
    read: Callable[[Any], Any]
    write: Callable[[Any, int | None], Any] = lambda value, stamp_ns: value


class PipelineNode(Node):
    """Calls a step with the messages of one instant, and publishes what it returns."""

    def __init__(self, name: str, step: Callable[..., Any], inputs: Sequence[_Topic], output: _Topic) -> None:
        super().__init__(name)
        self._step, self._inputs, self._output = step, inputs, output
        self._waiting: dict[str, tuple[int | None, Any]] = {}
        self._met = False
        self._out = self.create_publisher(output.kind, output.name, qos.ANSWERS)
        for topic in inputs:
            self.create_subscription(topic.kind, topic.name, self._taker(topic), qos.ANSWERS)

    def _taker(self, topic: _Topic) -> Callable[[Any], None]:
        return lambda message: self._take(topic, message)

    def _take(self, topic: _Topic, message: Any) -> None:
        stamp_ns = (
            adapter_for("detections", MARKERS).stamp_ns(message) if topic.kind is MarkerArray else stamp_of(message)
        )
        self._waiting[topic.name] = (stamp_ns, topic.read(message))
        instant = [self._waiting.get(t.name) for t in self._inputs]
        if any(part is None or part[0] != stamp_ns for part in instant):
            return
        self._waiting.clear()  # the same instant may come again
        said = self._output.write(self._step(*(part[1] for part in instant if part), stamp_ns=stamp_ns), stamp_ns)
        if not self._met:  # whoever subscribes may have found us while we have not found him yet
            self._met = wait_until(lambda: self._out.get_subscription_count() > 0, MEET_S) or True
        self._out.publish(said)


MARKERS = "visualization_msgs/msg/MarkerArray"


def pipeline_nodes(pipeline: Pipeline, stack: Stack, transforms: TransformTree, prefix: str) -> list[PipelineNode]:
    """Return the five nodes of the pipeline, the first one first."""
    steps, frame = pipeline.steps, pipeline.frame_id
    boxes, path, control = (
        adapter_for(role, kind)
        for role, kind in (
            ("detections", MARKERS),
            ("path", "nav_msgs/msg/Path"),
            ("control", "geometry_msgs/msg/TwistStamped"),
        )
    )

    def cloud(message: PointCloud2) -> Any:
        return as_points(cloud_from_message("", message), frame, transforms)

    def standing(points: Any, stamp_ns: int | None) -> PointCloud2:
        header = Header(frame_id=frame)
        set_stamp(header.stamp, stamp_ns or 0)
        fields = [
            PointField(name=n, offset=4 * i, datatype=PointField.FLOAT32, count=1) for i, n in enumerate(_COLUMNS)
        ]
        rows = np.ascontiguousarray(points, np.float32).view([(name, "<f4") for name in _COLUMNS]).reshape(-1)
        return own_create_cloud(header, fields, rows)

    def columns(message: PointCloud2) -> Any:
        points = cloud_from_message("", message).points
        return np.column_stack([points[name] for name in _COLUMNS])

    named = {role: prefix + topic for role, topic in stack.output_topics.items()}
    given = _Topic(prefix + stack.leading_topic, PointCloud2, cloud)
    kept = _Topic(prefix + POINTS, PointCloud2, columns, standing)
    clusters = _Topic(prefix + CLUSTERS, MarkerArray, boxes.decode, lambda value, _: boxes.encode(value))
    tracks = _Topic(named["detections"], MarkerArray, boxes.decode, lambda value, _: boxes.encode(value))
    way = _Topic(named["path"], PathMessage, path.decode, lambda value, _: path.encode(value))
    command = _Topic(named["control"], TwistStamped, control.decode, lambda value, _: control.encode(value))
    return [
        PipelineNode("filter", lambda points, stamp_ns: steps.filtered(points), [given], kept),
        PipelineNode("cluster", steps.clustered, [kept], clusters),
        PipelineNode("track", lambda found, stamp_ns: steps.tracked(found), [clusters], tracks),
        PipelineNode("plan", lambda found, stamp_ns: steps.planned(found), [tracks], way),
        PipelineNode("control", lambda path, found, stamp_ns: steps.commanded(path, found), [way, tracks], command),
    ]


def run_pipeline(stack_file: str, transforms: Path | None, prefix: str, ros_args: list[str]) -> None:
    """Run the five nodes until the context is shut down; an exception in one ends the process, as a crash would."""
    others: list[PipelineNode] = []

    def make() -> PipelineNode:
        stack = load_stack(stack_file)
        tree = load_transforms(transforms) if transforms else TransformTree()
        pipeline = load_callable(stack)
        assert isinstance(pipeline, Pipeline), "the stack file names it"
        first, *more = pipeline_nodes(pipeline, stack, tree, prefix)
        others.extend(more)
        return first

    def executor() -> SingleThreadedExecutor:
        made = SingleThreadedExecutor()
        for node in others:
            made.add_node(node)
        return made

    run_node(make, ros_args, executor)
