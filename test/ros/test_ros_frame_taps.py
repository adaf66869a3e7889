# SPDX-License-Identifier: Apache-2.0
"""What is heard of a live system's frames and of the ego's motion."""

from __future__ import annotations

import json
from contextlib import ExitStack
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rclpy.impl.implementation_singleton import rclpy_implementation
from ros_support import Peer, until

from mt_nodes.data.cdr import codec
from mt_nodes.data.ego.published_motion import ODOMETRY_TYPE
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Transform, TransformTree, UnknownTransform, pose_matrix
from mt_nodes.nodes import qos
from mt_nodes.nodes.frame_taps import FrameTaps
from mt_nodes.nodes.mutator import Mutator
from mt_nodes.world.scene.drive import EGO_SPEED_MPS, ODOMETRY_TOPIC, generate_drive


def at(child: str, x_m: float, *, stamp_ns: int = 0, static: bool = True) -> Transform:
    return Transform("base_link", child, pose_matrix((x_m, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0)), stamp_ns, static)


def message(*transforms: Transform, stamp_ns: int = 5) -> bytes:
    return codec.encode_transforms(TransformTree(transforms), stamp_ns)


def test_frames_are_known_when_they_were_told_and_the_users_file_stands_above_them(
    ending: ExitStack, domains: Any
) -> None:
    taps = FrameTaps(Peer(ending, domains[1]).node, TransformTree([at("lidar", 7.0)]))
    with pytest.raises(UnknownTransform):
        taps.at(5).lookup("base_link", "camera")
    taps.take_frames(static=True)(message(at("lidar", 1.0), at("camera", 2.0)))
    taps.take_frames(static=True)(b"no message")
    assert taps.at(5).lookup("base_link", "camera")[0, 3] == 2.0
    assert taps.at(5).lookup("base_link", "lidar")[0, 3] == 7.0
    for stamp_ns, x_m in ((10, 1.0), (20, 2.0)):
        taps.take_frames(static=False)(message(at("cab", x_m), stamp_ns=stamp_ns))
    assert taps.at(15).lookup("base_link", "cab")[0, 3] == pytest.approx(1.5)


def drive(peer: Peer) -> tuple[list[Bundle], Any, Any]:
    """A generated drive, and what publishes its odometry and its clouds."""
    made = list(generate_drive(4))
    odometry = peer.publisher(ODOMETRY_TYPE, ODOMETRY_TOPIC)
    clouds = peer.publisher(codec.POINT_CLOUD, made[0].cloud().topic, qos.REPLAY)
    return made, odometry, clouds


def test_odometry_tells_the_ego_motion_also_when_it_comes_late_but_never_that_of_a_follow_up(
    ending: ExitStack, domains: Any
) -> None:
    taps = FrameTaps(Peer(ending, domains[1]).node, TransformTree())
    peer = Peer(ending, domains[1])
    followups = peer.publisher(ODOMETRY_TYPE, "/mt/followup/odom")
    made, odometry, _ = drive(peer)
    until(odometry.get_subscription_count)
    assert not followups.get_subscription_count()
    for bundle in made:
        odometry.publish(bundle.wires[0].cdr)
    until(lambda: len(taps.track._pending) == len(made))
    motion = [taps.track.at(replace(bundle, track=None)) for bundle in made][-1]
    assert motion is not None and motion.source == f"odometry {ODOMETRY_TOPIC}"
    assert motion.speed_mps == pytest.approx(EGO_SPEED_MPS)


def test_moving_frames_tell_the_ego_motion_and_static_ones_do_not(ending: ExitStack, domains: Any) -> None:
    taps = FrameTaps(Peer(ending, domains[1]).node, TransformTree())
    made = [replace(bundle, wires=(), track=None) for bundle in generate_drive(4)]
    for bundle in made:
        driven_m = EGO_SPEED_MPS * 1e-9 * (bundle.stamp_ns - made[0].stamp_ns)
        pose = pose_matrix((driven_m, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0))
        told = Transform("odom", "base_link", pose, bundle.stamp_ns, static=False)
        taps.take_frames(static=False)(message(told, stamp_ns=bundle.stamp_ns))
    assert len(taps.track._pending) == len(made)
    taps.take_frames(static=True)(message(at("lidar", 1.0)))
    assert len(taps.track._pending) == len(made)
    motion = [taps.track.at(replace(bundle, transforms=taps.at(bundle.stamp_ns))) for bundle in made][-1]
    assert motion is not None and motion.source == "/tf odom → base_link"
    assert motion.speed_mps == pytest.approx(EGO_SPEED_MPS)


def test_odometry_that_a_security_policy_does_not_name_is_told_of(
    ending: ExitStack, domains: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = Peer(ending, domains[1])
    said: list[str] = []
    peer.publisher(ODOMETRY_TYPE, ODOMETRY_TOPIC)

    def refuse(*_: Any, **__: Any) -> None:
        raise rclpy_implementation.RCLError("not allowed")

    node = Peer(ending, domains[1]).node
    monkeypatch.setattr(node, "create_subscription", refuse)
    monkeypatch.setattr(node, "get_logger", lambda: SimpleNamespace(warning=said.append))
    FrameTaps(node, TransformTree())
    until(lambda: said)
    assert said == [f"{ODOMETRY_TOPIC} tells of no ego motion: it cannot be subscribed to: not allowed"]


def test_the_mutator_takes_frames_and_motion_from_the_live_system(made: Any, ending: ExitStack, domains: Any) -> None:
    """Without a file of transforms, and with no cloud registered."""
    peer = Peer(ending, domains[1])
    ledger = peer.listen(codec.STRING, "/mt/ledger", qos.JOURNAL)
    node = made(Mutator, relation="fog_keeps_near_obstacles", output_topic="/out", control_every=0)
    bundles, odometry, clouds = drive(peer)
    peer.listen(codec.POINT_CLOUD, "/out", qos.REPLAY)
    node._frames.take_frames(static=True)(codec.encode_transforms(bundles[0].transforms, 0))
    until(lambda: odometry.get_subscription_count() and clouds.get_subscription_count())
    until(lambda: node._publisher().get_subscription_count() and node._inputs.inputs[0].tap.get_publisher_count())
    for number, bundle in enumerate(bundles):
        odometry.publish(bundle.wires[0].cdr)
        until(lambda: node._frames.track._pending)
        clouds.publish(codec.encode_cloud(bundle.cloud()))
        ledger.wait(number + 1)
    last = json.loads(ledger.messages[-1].data)
    assert "outcome" not in last and last["sha256"]
    motions = [motion for motion, _ in node._frames.track._known.values()]
    assert {motion.source for motion in motions if motion} == {f"odometry {ODOMETRY_TOPIC}"} and None not in motions
