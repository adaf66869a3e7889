# SPDX-License-Identifier: Apache-2.0
"""Taps of live topics whose type is known only once somebody publishes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import rclpy
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import Image, PointCloud2

from mt_nodes.base.errors import UsageError
from mt_nodes.base.processes import wait_until
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Wire
from mt_nodes.data.transform_buffer import TransformBuffer
from mt_nodes.nodes.live_inputs import InstantReader, LiveInputs
from mt_nodes.world.scene.drive import EGO_SPEED_MPS, ODOMETRY_TOPIC, generate_drive

TOPIC = "/bench/sensor"


@pytest.fixture
def nodes(domains: tuple[int, ...]) -> Iterator[tuple[Node, Node]]:
    """Who taps and who publishes, participants of their own."""
    with ExitStack() as ending:
        made = []
        for name in ("taps", "publishes"):
            context = Context()
            rclpy.init(context=context, domain_id=domains[0])
            ending.callback(rclpy.try_shutdown, context=context)
            made.append(rclpy.create_node(name, context=context))
            ending.callback(made[-1].destroy_node)
        yield made[0], made[1]


def test_what_was_taken_for_clouds_is_tapped_as_what_it_is_also_while_the_executor_holds_the_first_tap(
    nodes: tuple[Node, Node],
) -> None:
    node, sensor_node = nodes
    inputs = LiveInputs(node, [TOPIC], 0, lambda wires: None)
    (sensor,) = inputs.inputs
    first = sensor.tap
    assert first is not None and first.msg_type is PointCloud2
    sensor_node.create_publisher(Image, TOPIC, 1)
    assert wait_until(lambda: bool(node.get_publishers_info_by_topic(TOPIC)), 150.0)
    with ExitStack() as executor:
        executor.enter_context(first.handle)  # as while it waits: what is destroyed meanwhile goes when it lets go
        assert inputs.look() is False
    assert inputs.look() is True
    assert sensor.tap is not None and sensor.tap.msg_type is Image
    assert sensor.type == "sensor_msgs/msg/Image" and sensor.offered is not None


def test_odometry_of_an_instant_tells_the_ego_motion_and_what_else_comes_passes_along() -> None:
    """The drive's odometry comes before the cloud; the cloud leads all the same."""
    reader, made = InstantReader(TransformBuffer(next(iter(generate_drive(1))).transforms).at), list(generate_drive(3))
    diagnostics = Wire("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", 0, b"")
    read = [reader.read(i, (diagnostics, *wires_of_bundle(bundle))) for i, bundle in enumerate(made)]
    assert [wire.topic for wire in read[0].wires][:2] == ["/diagnostics", ODOMETRY_TOPIC]
    assert [bundle.stamp_ns for bundle in read] == [bundle.stamp_ns for bundle in made]
    motion = [reader.track.at(bundle) for bundle in read][-1]
    assert motion is not None and motion.origin == "odometry" and motion.speed_mps == pytest.approx(EGO_SPEED_MPS)
    with pytest.raises(UsageError, match=r"an instant: got /diagnostics \(diagnostic_msgs/msg/DiagnosticArray\)"):
        reader.read(0, (diagnostics,))
