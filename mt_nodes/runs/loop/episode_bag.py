# SPDX-License-Identifier: Apache-2.0
"""Drives as MCAP files: the ego, everybody else and the commands as standard messages, to look at or to play.

Under a prefix of its own each: ``/ego/odometry`` (``nav_msgs/Odometry``), ``/actors`` (``MarkerArray``), ``/command``
(``TwistStamped``: commanded speed and, from the commanded steering at the present speed, yaw rate) and
``/command/acceleration`` (``AccelStamped``) where those are told, and ``/episode`` (``std_msgs/String``, JSON: the
scenario, why it ended, collisions). ``/tf`` has the ego in ``map``. What sensors saw goes out under its own topics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from math import isfinite, tan
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.data.bags.writer import SENSOR_QOS, STATIC_QOS, open_writer
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.markers import MARKERS, TWIST, encode_control, encode_detections
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.cdr.world_messages import encode_odometry
from mt_nodes.data.messages import Bundle, Odometry, Wire
from mt_nodes.data.outputs import Control, Detections
from mt_nodes.data.rotations import quaternion_of_yaw
from mt_nodes.data.stack_topics import WORLD_TYPES
from mt_nodes.data.transforms import EGO_FRAME, MAP_FRAME, Transform, TransformTree, pose_matrix
from mt_nodes.runs.loop.episode import Side
from mt_nodes.world.drive.bodies import size_of
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.scene.objects import KINDS

ACCELERATION = "geometry_msgs/msg/AccelStamped"


def write_drives(path: Path, name: str, sides: Mapping[str, tuple[Side, Sequence[Bundle]]]) -> None:
    """Write one MCAP file (zstd); an existing one is replaced.

    ``name``: of the episode or pair, kept as ``/mt/pair``. ``sides``: by prefix of its topics each drive, and what was
    given to the stack at some of its instants.
    """
    path.unlink(missing_ok=True)
    with open_writer(path, compress=True) as bag:
        begin_ns = min(side.played.stamp_ns for side, _ in sides.values())
        bag.write(bag.add("/mt/pair", codec.STRING, [STATIC_QOS]), begin_ns, codec.encode_text(name))
        for prefix, (side, bundles) in sides.items():
            for wire in (*_driven(side), *_fixed(bundles), *(w for bundle in bundles for w in wires_of_bundle(bundle))):
                qos = STATIC_QOS if wire.topic == "/tf_static" else SENSOR_QOS
                bag.write(bag.add(f"{prefix}{wire.topic}", wire.type, [qos]), wire.stamp_ns, wire.cdr)


def _driven(side: Side) -> Iterator[Wire]:
    """Yield the messages of a drive, instant by instant."""
    played, driven = side.played, side.played.driven
    stamps = [played.stamp_ns + round(time_s * 1e9) for time_s in driven.trace.time_s.tolist()]
    about: dict[str, Any] = {"scenario": driven.scenario.name, "ended": driven.trace.ended, "reason": played.reason}
    about["collisions"] = [asdict(collision) for collision in driven.trace.collisions]
    if stamps:
        yield Wire("/episode", codec.STRING, stamps[0], codec.encode_text(json.dumps(about)))
    for row, (stamp_ns, command) in enumerate(zip(stamps, played.commands, strict=True)):
        ego = _odometry(driven, row, stamp_ns)
        yield Wire("/tf", codec.TF, stamp_ns, codec.encode_transforms(_tree(ego), stamp_ns))
        yield Wire("/ego/odometry", WORLD_TYPES["odometry"], stamp_ns, encode_odometry(ego))
        yield Wire("/actors", MARKERS, stamp_ns, encode_detections(_actors(driven, row, stamp_ns)))
        if command is not None:
            yield from _commanded(command, driven, ego, stamp_ns)


def _odometry(driven: ScenarioTrace, row: int, stamp_ns: int) -> Odometry:
    x, y, yaw, speed, _, steering = driven.trace.ego[row].tolist()
    turn = speed * tan(steering) / driven.scenario.ego.vehicle.wheelbase_m
    return Odometry(MAP_FRAME, stamp_ns, x, y, yaw, speed, turn, EGO_FRAME)


def _tree(ego: Odometry) -> TransformTree:
    pose = pose_matrix((ego.x_m, ego.y_m, 0.0), quaternion_of_yaw(ego.yaw_rad))
    return TransformTree([Transform(MAP_FRAME, EGO_FRAME, pose, static=False)])


def _actors(driven: ScenarioTrace, row: int, stamp_ns: int) -> Detections:
    poses, actors = driven.trace.actors[row], driven.scenario.actors
    sizes = np.array([size_of(actor) for actor in actors]).reshape(-1, 3)
    middles = np.column_stack([poses[:, :2], sizes[:, 2] / 2.0])
    labels, names = [KINDS[actor.kind].label for actor in actors], [actor.name for actor in actors]
    return Detections.make(MAP_FRAME, stamp_ns, middles, sizes, poses[:, 2], labels, track_id=names)


def _commanded(command: Control, driven: ScenarioTrace, ego: Odometry, stamp_ns: int) -> Iterator[Wire]:
    """Yield a command: what it does not hold is left out, or 0 in a message that holds more."""
    turn = command.yaw_rate_radps
    if isfinite(command.steering_rad):
        turn = ego.speed_mps * tan(command.steering_rad) / driven.scenario.ego.vehicle.wheelbase_m
    stamped = replace(command, stamp_ns=stamp_ns, yaw_rate_radps=turn)
    yield Wire("/command", TWIST, stamp_ns, encode_control(stamped))
    if isfinite(command.acceleration_mps2):
        yield Wire("/command/acceleration", ACCELERATION, stamp_ns, _acceleration(command.acceleration_mps2, stamp_ns))


def _acceleration(along_mps2: float, stamp_ns: int) -> bytes:
    types = codec.typestore().types
    vector = types["geometry_msgs/msg/Vector3"]
    accel: Any = types["geometry_msgs/msg/Accel"](
        linear=vector(x=along_mps2, y=0.0, z=0.0), angular=vector(x=0.0, y=0.0, z=0.0)
    )
    return codec.encode(ACCELERATION, types[ACCELERATION](header=codec.header_of(EGO_FRAME, stamp_ns), accel=accel))


def _fixed(bundles: Sequence[Bundle]) -> Iterator[Wire]:
    """Yield where the sensors are on the ego, if any saw anything."""
    if bundles and (tree := TransformTree(t for t in bundles[0].transforms.transforms if t.static)).transforms:
        yield Wire("/tf_static", codec.TF, bundles[0].stamp_ns, codec.encode_transforms(tree, bundles[0].stamp_ns))
