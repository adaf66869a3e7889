# SPDX-License-Identifier: Apache-2.0
"""Pictures with speed and steering to learn from: of a bag that has them beside, and of several bags and folders."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys import Stores, TypesysError, get_types_from_msg, get_typestore

from mt_nodes.base.arrays import Floats, Ints
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.bags.recording import RecordingReader, open_recording
from mt_nodes.data.datasets.dataset_name import exists, is_dataset
from mt_nodes.data.field_paths import FieldPath
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.outputs import Control
from mt_nodes.relations.checks.controls import steering_rad
from mt_nodes.runs.models.preprocessing import Preparation
from mt_nodes.runs.models.samples import FILE, Frames, PictureSample, load_frames, refuse_other_unit, shown_in

SPEED, STEERING, YAW_RATE = "speed_mps", "steering_rad", "yaw_rate_radps"
#: Message type -> where it has what.
KNOWN = {
    "geometry_msgs/msg/TwistStamped": {SPEED: "twist.linear.x", YAW_RATE: "twist.angular.z"},
    "geometry_msgs/msg/Twist": {SPEED: "linear.x", YAW_RATE: "angular.z"},
    "nav_msgs/msg/Odometry": {SPEED: "twist.twist.linear.x", YAW_RATE: "twist.twist.angular.z"},
    "ackermann_msgs/msg/AckermannDriveStamped": {SPEED: "drive.speed", STEERING: "drive.steering_angle"},
    "ackermann_msgs/msg/AckermannDrive": {SPEED: "speed", STEERING: "steering_angle"},
    "autoware_vehicle_msgs/msg/VelocityReport": {SPEED: "longitudinal_velocity", YAW_RATE: "heading_rate"},
    "autoware_vehicle_msgs/msg/SteeringReport": {STEERING: "steering_tire_angle"},
}
#: Pictures farther apart are of two drives, as the stack has it.
_GAP_NS = 1_000_000_000


@dataclass(frozen=True)
class BagReading:
    """How the labels of a bag's pictures are found.

    Attributes:
        topics: role -> topic, as of ``mt replay --topic``; ``camera`` where there are several.
        speed, steering: ``TOPIC``, ``TOPIC:FIELD`` or ``TOPIC:FIELD*FACTOR``; empty: the only topic of a known type.
        tolerance_s: how far from a picture's stamp its labels may be.
        wheelbase_m: by which a yaw rate is turned into steering, where nothing tells steering itself.
    """

    topics: Mapping[str, str] = field(default_factory=dict)
    speed: str = ""
    steering: str = ""
    tolerance_s: float = 0.05
    wheelbase_m: float = 2.7


#: Stamps in ns (K,), rising, and values (K,).
_Series = tuple[Ints, Floats]


@dataclass(frozen=True)
class _Column:
    """One number of the messages of a topic."""

    topic: str
    path: FieldPath
    factor: float


def shown_in_bag(bag: Path, reading: BagReading) -> Iterator[PictureSample]:
    """Yield the pictures of a bag with the labels that are nearest in time.

    A picture without labels is left out, as is one of a vehicle that stands, where steering is known by its yaw rate
    only; another drive begins there, and where the stamps step by more than a second.
    Raises UsageError: no such bag or topic, several that could be meant, a label in another unit. InfrastructureError:
    the bag is damaged.
    """
    number, before_ns, interrupted = 0, None, False
    # A bag without pictures is refused before labels are looked for.
    with BagSource(bag, reading.topics, require=("camera",), pictures=True) as source:
        with open_recording(bag) as reader:
            columns = {role: _values(reader, column) for role, column in _columns(reader, reading).items()}
        for bundle in source:
            speed, steering = _labels(columns, bundle.stamp_ns, reading)
            if math.isnan(speed) or math.isnan(steering):
                interrupted = True
                continue
            if interrupted or (before_ns is not None and not 0 <= bundle.stamp_ns - before_ns <= _GAP_NS):
                number += 1
            before_ns, interrupted = bundle.stamp_ns, False
            refuse_other_unit(speed, steering, f"{bag}: picture at {bundle.stamp_ns} ns")
            image = next(i for i in bundle.images if i.topic == source.lead)
            yield PictureSample(decode(image).rgb8(), speed, steering, f"{bag.name}/{number}")


def _labels(columns: Mapping[str, _Series], stamp_ns: int, reading: BagReading) -> tuple[float, float]:
    found = {role: _nearest(series, stamp_ns, reading.tolerance_s) for role, series in columns.items()}
    command = Control(None, **found)
    return command.speed_mps, steering_rad(command, reading.wheelbase_m)


def _nearest(series: _Series, stamp_ns: int, tolerance_s: float) -> float:
    """Return the value nearest in time, NaN where none is near enough."""
    stamps_ns, values = series
    after = int(np.searchsorted(stamps_ns, stamp_ns))
    near = [i for i in (after - 1, after) if 0 <= i < len(stamps_ns)]
    best = min(near, key=lambda i: abs(stamps_ns[i] - stamp_ns), default=None)
    if best is None or abs(stamps_ns[best] - stamp_ns) > tolerance_s * 1e9:
        return math.nan
    return float(values[best])


def _columns(reader: RecordingReader, reading: BagReading) -> dict[str, _Column]:
    """Return where speed is, and steering or, where nothing tells that, the yaw rate."""
    speed = _column(reader, reading.speed, "--speed", (SPEED,))
    steering = _column(reader, reading.steering, "--steering", (STEERING, YAW_RATE), preferred=speed[1].topic)
    return dict((speed, steering))


def _column(
    reader: RecordingReader, spec: str, option: str, roles: tuple[str, ...], preferred: str = ""
) -> tuple[str, _Column]:
    topic, _, rest = spec.partition(":")
    path, _, factor = rest.partition("*")
    topics = reader.topics
    if topic and topic not in topics:
        raise UsageError(f"{option} {spec}: {reader.path} has no topic {topic}; it has {', '.join(sorted(topics))}")
    if not topic:
        topic = _only(reader, option, roles, preferred)
    if path:
        try:
            return roles[0], _Column(topic, FieldPath.parse(path, option), float(factor or 1.0))
        except ValueError:
            raise UsageError(f"{option} {spec}: got factor '{factor}', expected a number such as 0.2778") from None
    known = KNOWN.get(topics[topic].type, {})
    role = next((role for role in roles if role in known), None)
    if role is None:
        kind = topics[topic].type
        raise UsageError(f"{option} {spec}: of {kind} it is not known where that is; type {option} {topic}:FIELD")
    return role, _Column(topic, FieldPath.parse(known[role], option), 1.0)


def _only(reader: RecordingReader, option: str, roles: Collection[str], preferred: str) -> str:
    """Return the only topic that tells the first of the roles that any does; that of the speed stands above others."""
    found: list[str] = []
    for role in roles:
        found = [name for name, t in sorted(reader.topics.items()) if role in KNOWN.get(t.type, {}) and t.count]
        if preferred in found or len(found) == 1:
            return preferred if preferred in found else found[0]
        if found:
            raise UsageError(f"{reader.path}: several topics tell it: {', '.join(found)}; choose with {option} TOPIC")
    choices = ", ".join(f"{name} ({t.type})" for name, t in sorted(reader.topics.items()))
    raise UsageError(f"{reader.path}: no topic of a known type tells it; type {option} TOPIC:FIELD, of {choices}")


def _values(reader: RecordingReader, column: _Column) -> _Series:
    """Return a column's values and when they were, without those that are not finite."""
    stamps, values = [], []
    types = _types(reader, column.topic)
    for wire in reader.wires({column.topic}):
        try:
            message = types.deserialize_cdr(memoryview(wire.cdr), wire.type)
        except Exception as error:
            where = f"{reader.path}: {column.topic} received at {wire.received_ns} ns"
            raise InfrastructureError(f"{where} cannot be read: {error}") from error
        try:
            values.append(float(column.path.of(message)) * column.factor)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{column.topic}: {column.path}: got no number: {error}") from error
        stamps.append(_stamp_ns(message, wire.received_ns))
    order = np.argsort(np.array(stamps, dtype=np.int64), kind="stable")
    times, numbers = np.array(stamps, dtype=np.int64)[order], np.array(values, dtype=np.float64)[order]
    finite = np.isfinite(numbers)
    return times[finite], numbers[finite]


def _stamp_ns(message: Any, received_ns: int) -> int:
    stamp = getattr(getattr(message, "header", message), "stamp", None)
    return received_ns if stamp is None else int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def _types(reader: RecordingReader, topic: str) -> Any:
    """Return the message types of ROS 2 Jazzy and, where a topic's is none of them, that of its definition."""
    types = get_typestore(Stores.ROS2_JAZZY)
    connection = next(c for c in reader.connections if c.topic == topic)
    name = reader.topics[topic].type
    if name in types.fielddefs:
        return types
    text, _ = reader.definition(connection)
    try:
        types.register(get_types_from_msg(text, name))
    except (TypesysError, KeyError, SyntaxError) as error:
        raise UsageError(f"{reader.path}: {topic}: type {name} is not defined in the bag: {error}") from error
    return types


def frames_of(
    paths: Sequence[Path],
    prepared: Preparation,
    reading: BagReading,
    progress: Callable[[int], None] = lambda read: None,
) -> Frames:
    """Return the prepared frames of folders and bags, one after the other.

    Raises MtError: one is neither, or holds nothing that can be learned from, see the modules of each.
    """
    for path in paths:
        if not exists(str(path)):
            raise UsageError(f"{path}: no such folder or bag")
    return load_frames([_shown(path, reading) for path in paths], prepared, progress)


def _shown(path: Path, reading: BagReading) -> Iterator[PictureSample]:
    """Yield the frames of a folder or a bag; a folder without the files of a bag is asked for its ``samples.csv``."""
    if is_dataset(path):
        yield from shown_in_bag(path, reading)
        return
    bag = path.is_file() or any(path.glob("*.mcap")) or any(path.glob("*.db3")) or (path / "metadata.yaml").is_file()
    yield from shown_in_bag(path, reading) if bag and not (path / FILE).is_file() else shown_in(path)
