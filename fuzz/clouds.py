# SPDX-License-Identifier: Apache-2.0
"""Clouds: ``PointCloud2`` as its fields say, decoded, changed by every mutation, encoded and decoded again."""

from __future__ import annotations

import json
import struct
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from fuzz.cases import EDGES, Case, Target
from fuzz.invariant import require, told_well
from mt_nodes.base import plugins
from mt_nodes.base.errors import MtError, NotApplicable
from mt_nodes.base.params import build, describe
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.scene.drive import generate_drive

TOPIC = "/points"
TREE = TransformTree([Transform("base_link", "lidar", pose_matrix((0.5, 0.0, 1.7), (0.0, 0.0, 0.1, 1.0)))])
KIND = "PointCloud2"
#: ``sensor_msgs/PointField`` datatype -> code of :mod:`struct`, apart from the package's own table.
CODES = {1: "b", 2: "B", 3: "h", 4: "H", 5: "i", 6: "I", 7: "f", 8: "d"}
NAMES = (
    *("x", "y", "z", "intensity", "i", "ring", "time", "range", "distance", "azimuth", "elevation", "reflectivity"),
    *("rgb", "", "x_0", "é"),
)
NUMBERS = (0.0, -0.0, 1e-45, 1e-7, 3.0, 40.0, 1e4, 1e38, 1e300, float("nan"), float("inf"), -float("inf"))
MOST_POINTS = 48
#: Noise points drawn at most: the largest number takes a second a cloud and shows nothing more.
MOST_DRAWN = 300
REGIONS: tuple[Any, ...] = (
    "front_40m",
    {"frame_id": "base_link", "box_m": {"x": [-1e4, 1e4], "y": [-1e4, 1e4]}},
    {"frame_id": "base_link", "box_m": {"x": [500, 501], "y": [0, 1]}},
    {"frame_id": "base_link", "polygon_m": [[0, 0], [30, -20], [30, 20]], "z_m": [0, 2]},
    {"frame_id": "base_link", "polygon_m": [[[0, 0], [9, 0], [9, 9]], [[20, 0], [29, 0], [29, 9]]]},
    {"frame_id": "lidar", "box_m": {"x": [0, 1e-3], "y": [0, 1e-3]}},
    {"frame_id": "nowhere", "box_m": {"x": [0, 1], "y": [0, 1]}},
    "topic:/roi",
)
Told = dict[str, Any]
#: Of so many messages one is a sweep of a street: what needs a scene (objects, rings, ground) applies to no less.
SWEEP_EVERY = 25
#: In it are every so many rings of the generated drive's LiDAR, and what is so far to both sides of ahead.
RING_EVERY, ASIDE_RAD = 6, 0.8


@st.composite
def messages(draw: st.DrawFn) -> Told:
    """Draw a message as plain data: first one that is sound, then up to three of its statements changed."""
    if draw(st.integers(1, SWEEP_EVERY)) == SWEEP_EVERY:
        return draw(_sweeps())
    told = draw(_sound())
    for name in draw(st.lists(st.sampled_from(sorted(_CHANGES)), unique=True, max_size=3)):
        told[name] = draw(_CHANGES[name](told))
    return told


def _sound() -> st.SearchStrategy[Told]:
    @st.composite
    def made(draw: st.DrawFn) -> Told:
        fields, step = draw(_fields())
        height, width = draw(st.sampled_from((1, 1, 1, 2, 4))), draw(st.integers(0, MOST_POINTS // 4))
        row = width * step + draw(st.sampled_from((0, 0, 0, 1, 12)))
        order = draw(st.booleans())
        data = draw(
            st.integers(0, 2**32 - 1).map(lambda seed: _points(seed, fields, step, (height, width, row), order))
        )
        for at, value in draw(st.lists(st.tuples(st.integers(0, MOST_POINTS), st.sampled_from(NUMBERS)), max_size=4)):
            _put(data, fields[at % 3], step * (at % max(1, width)), value, order)
        return {
            "frame_id": draw(st.sampled_from(("lidar", "lidar", "/lidar", "", "nowhere"))),
            "stamp_ns": draw(st.sampled_from((0, 1_700_000_000_000_000_000, -1))),
            "height": height,
            "width": width,
            "fields": fields,
            "is_bigendian": order,
            "point_step": step,
            "row_step": row,
            "data": data.hex(),
            "is_dense": draw(st.booleans()),
        }

    return made()


def _sweeps() -> st.SearchStrategy[Told]:
    """A sound sweep with a few numbers of a few points replaced; what is random of it is told, not its bytes."""
    number = st.sampled_from((0.0, 1e-7, 3.0, 1e4, float("nan"), float("inf")))
    edits = st.lists(st.tuples(st.integers(0, 10_000), st.sampled_from("xyz"), number).map(list), max_size=6)
    return edits.map(lambda edits: {"sweep": edits})


def _swept(told: Told) -> Told:
    """Return the message that such a case tells of."""
    points = _street().copy()
    for row, axis, number in told["sweep"]:
        points[axis][row % len(points)] = number
    kinds = {"f4": 7, "u2": 4}
    sizes = {"height": 1, "width": len(points), "point_step": points.itemsize, "row_step": points.nbytes}
    layout = sorted((points.dtype.fields or {}).items(), key=lambda item: item[1][1])
    fields = [[name, offset, kinds[kind.str[1:]], 1] for name, (kind, offset, *_) in layout]
    message = {"frame_id": "lidar", "stamp_ns": 0, "fields": fields, "is_bigendian": False, "is_dense": True}
    return {**told, **sizes, **message, "data": points.tobytes().hex()}


@cache
def _street() -> npt.NDArray[Any]:
    points = next(iter(generate_drive(1))).cloud().points
    ahead = np.abs(np.arctan2(points["y"], points["x"])) < ASIDE_RAD
    return np.ascontiguousarray(points[(points["ring"] % RING_EVERY == 0) & ahead])


@st.composite
def _fields(draw: st.DrawFn) -> tuple[list[list[Any]], int]:
    kind = draw(st.sampled_from((7, 7, 7, 8, 3, 5)))
    extra = draw(st.lists(st.sampled_from(NAMES[3:]), unique=True, max_size=4))
    fields, at = [], draw(st.sampled_from((0, 0, 4, 3)))
    for name in ["x", "y", "z", *extra]:
        datatype = kind if name in ("x", "y", "z") else draw(st.sampled_from(sorted(CODES)))
        count = 1 if len(name) == 1 and name in "xyz" else draw(st.sampled_from((1, 1, 1, 0, 2)))
        fields.append([name, at, datatype, count])
        at += struct.calcsize(CODES[datatype]) * max(1, count) + draw(st.sampled_from((0, 0, 1, 4)))
    return fields, at


def _points(seed: int, fields: list[list[Any]], step: int, shape: tuple[int, int, int], order: bool) -> bytearray:
    """Bytes of points around the sensor; every other field and the padding are random."""
    (height, width, row), rng = shape, np.random.default_rng(seed)
    data = bytearray(rng.integers(0, 256, height * row, dtype=np.uint8).tobytes())
    for i in range(height * width):
        for field, value in zip(fields[:3], rng.uniform((-60, -60, -2), (60, 60, 4)), strict=True):
            _put(data, field, i // width * row + i % width * step, value, order)
    return data


def _put(data: bytearray, field: list[Any], at: int, value: float, order: bool) -> None:
    _, offset, datatype, _ = field
    code = (">" if order else "<") + CODES[datatype]
    if at + offset + struct.calcsize(code) > len(data):
        return
    try:
        struct.pack_into(code, data, at + offset, value if datatype > 6 else int(value))
    except (struct.error, ValueError, OverflowError):
        return  # a whole number cannot be NaN, a float not 1e300: the point stays as it was


_NUMBER = st.one_of(st.sampled_from(EDGES), st.integers(0, 100))


def _other_fields(told: Told) -> st.SearchStrategy[list[list[Any]]]:
    row = st.tuples(st.sampled_from(NAMES), _NUMBER, st.integers(0, 10), _NUMBER).map(list)
    rows = st.lists(st.sampled_from([*told["fields"], *told["fields"][:1]]), max_size=6)
    return st.one_of(rows, st.tuples(rows, row).map(lambda two: [*told["fields"], two[1]]), st.lists(row, max_size=4))


def _other_data(told: Told) -> st.SearchStrategy[str]:
    data = bytes.fromhex(told["data"])
    return st.one_of(
        st.integers(0, len(data)).map(lambda n: data[:n].hex()),
        st.binary(min_size=1, max_size=8).map(lambda more: (data + more).hex()),
        st.sampled_from((b"\0", b"\xff", b"\x7f\x80")).map(lambda b: (b * len(data))[: len(data)].hex()),
    )


_CHANGES: dict[str, Any] = {
    **{name: lambda told: _NUMBER for name in ("height", "width", "point_step", "row_step")},
    "fields": _other_fields,
    "data": _other_data,
    "is_bigendian": lambda told: st.just(not told["is_bigendian"]),
}


def mutations() -> st.SearchStrategy[dict[str, Told]]:
    """Draw parameters for every mutation that there is."""
    return st.fixed_dictionaries({name: parameters(cls) for name, cls in plugins.catalogue("mutations").items()})


def parameters(cls: type) -> st.SearchStrategy[Told]:
    """Draw parameters for one mutation."""
    return st.fixed_dictionaries({}, optional={row["name"]: _parameter(row) for row in describe(cls)})


def _parameter(row: Told) -> st.SearchStrategy[Any]:
    if row["choices"]:
        return st.sampled_from(row["choices"])
    if "Region" in row["type"] or row["name"] == "region":
        return st.sampled_from(REGIONS)
    if row["type"] == "int":
        return st.integers(int(row["low"] or 0), int(min(row["high"] or MOST_DRAWN, MOST_DRAWN)))
    return st.one_of(st.just(row["default"]), st.floats(row["low"], row["high"]))


def cases() -> st.SearchStrategy[Case]:
    """Draw a message and what is done to it, as JSON."""
    both = st.tuples(messages(), mutations())
    return both.map(lambda two: Case(KIND, json.dumps({**two[0], "mutations": two[1]}).encode()))


def sound(kind: str) -> bytes:
    """Return three points, as JSON."""
    fields = [["x", 0, 7, 1], ["y", 4, 7, 1], ["z", 8, 7, 1]]
    told = {
        "frame_id": "lidar",
        "stamp_ns": 0,
        "height": 1,
        "width": 3,
        "fields": fields,
        "is_bigendian": False,
        "point_step": 12,
        "row_step": 36,
        "data": _points(0, fields, 12, (1, 3, 36), False).hex(),
        "is_dense": True,
        "mutations": {name: {} for name in plugins.catalogue("mutations")},
    }
    return json.dumps(told).encode()


def check(case: Case, place: Path) -> str:
    """Decode, derive every follow-up, encode and decode."""
    told = json.loads(case.data)
    told = _swept(told) if "sweep" in told else told
    cloud = codec.cloud_from_msg(TOPIC, codec.decode(codec.POINT_CLOUD, encoded(told)))
    _as_told(cloud, told)
    _comes_back(cloud)
    bundle = Bundle(0, 0, cloud.stamp_ns, (cloud,), transforms=TREE)
    ends = {_followed(bundle, name, params) for name, params in told["mutations"].items()}
    return "read; follow-ups " + ", ".join(sorted(ends))


def encoded(told: Told) -> bytes:
    """Return the CDR bytes of a message told as plain data, whether or not it makes sense."""
    types = codec.typestore().types
    field = types["sensor_msgs/msg/PointField"]
    as_they_are = ("height", "width", "point_step", "row_step", "is_bigendian", "is_dense")
    message = types[codec.POINT_CLOUD](
        header=codec.header_of(told["frame_id"], told["stamp_ns"]),
        fields=[field(name=n, offset=o, datatype=d, count=c) for n, o, d, c in told["fields"]],
        data=np.frombuffer(bytes.fromhex(told["data"]), np.uint8),
        **{name: told[name] for name in as_they_are},
    )
    return codec.encode(codec.POINT_CLOUD, message)


def _as_told(cloud: Cloud, told: Told) -> None:
    """Read the message a second time, number by number, and find the same in the cloud."""
    height, width, step, row = (told[name] for name in ("height", "width", "point_step", "row_step"))
    data, order = bytes.fromhex(told["data"]), ">" if told["is_bigendian"] else "<"
    require(len(data) == height * row and (not height or row >= width * step), "sizes that do not fit were accepted")
    require(len(cloud) == height * width, f"{len(cloud)} points of {height} x {width}")
    for axis in "xyz":
        [(offset, datatype)] = [(o, d) for name, o, d, _ in told["fields"] if name == axis]
        for i in {0, len(cloud) // 2, len(cloud) - 1} if len(cloud) else ():
            at = i // width * row + i % width * step + offset
            [expected] = struct.unpack_from(order + CODES[datatype], data, at)
            same = np.array_equal(float(cloud.points[axis][i]), expected, equal_nan=True)
            require(same, f"{axis} of point {i} is {cloud.points[axis][i]}, the message says {expected}")


def _comes_back(cloud: Cloud) -> None:
    """Encode and decode: nothing may have changed."""
    back = codec.cloud_from_msg(TOPIC, codec.decode(codec.POINT_CLOUD, codec.encode_cloud(cloud)))
    for name in ("stamp_ns", "frame_id", "width", "is_dense", "fields"):
        require(getattr(back, name) == getattr(cloud, name), f"{name} came back otherwise")
    require(not len(cloud) or back.height == cloud.height, "height came back otherwise")
    require(back.points.dtype == cloud.points.dtype, f"layout {cloud.points.dtype} came back as {back.points.dtype}")
    require(_raw(back) == _raw(cloud), "points came back otherwise")


def _followed(bundle: Bundle, name: str, params: Told) -> str:
    try:
        mutation: Mutation = build(plugins.find("mutations", name, TOPIC), params, f"{TOPIC}: {name}")
        pipeline = MutationPipeline([mutation], 0, "fuzz")
        derived = pipeline.derive(bundle)
    except NotApplicable as reason:
        require(bool(str(reason)), f"{name} is not applicable without a reason")
        return "none"
    except MtError as error:  # of parameters or frames; the other mutations are tried all the same
        told_well(error, TOPIC)
        return "refused"
    require(derived.broken is None, f"{name} is not what was promised: {derived.broken}")
    for _, made in derived.followup.bundles:
        _comes_back(made.cloud())
    again = pipeline.rebuild(bundle, derived.draws)
    same = [_raw(b.cloud()) for _, b in again.bundles] == [_raw(b.cloud()) for _, b in derived.followup.bundles]
    require(same, f"{name} differs when made again")
    if not derived.followup.bundles:
        return "nothing sent"
    _finds_a_lie(mutation, bundle, derived.followup, derived.draws[0])
    return "proved"


def _finds_a_lie(mutation: Mutation, source: Bundle, followup: Followup, draw: Told) -> None:
    """A follow-up that lost its last point must not be proved."""
    first = followup.first
    if not (cloud := first.cloud()).points.size:
        return
    fewer = first.with_clouds([cloud.with_raw(cloud.raw[:-1], height=cloud.height)])
    told = mutation.guarantee(source, Followup(((0, fewer),), followup.effects), draw)
    require(told is not None, f"{type(mutation).__name__} proved a follow-up that lost a point")


def _raw(cloud: Cloud) -> bytes:
    raw: npt.NDArray[Any] = np.ascontiguousarray(cloud.raw)
    return raw.tobytes()


TARGET = Target("clouds", (KIND,), cases, sound, check, TOPIC)
