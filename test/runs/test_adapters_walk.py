# SPDX-License-Identifier: Apache-2.0
"""Every adapter, found by itself, on messages that nobody wrote by hand: whatever their fields hold."""

from __future__ import annotations

import array
import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from ros_types import fields_of, installed, make, message_type, wired
from rosbags.interfaces import Nodetype

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.cli import catalogue
from mt_nodes.data.lanes import Lanes, SignalStates
from mt_nodes.data.message_headers import set_stamp
from mt_nodes.data.messages import Odometry
from mt_nodes.data.outputs import Control, Detections, Diagnostics, ImageBoxes, Path
from mt_nodes.data.perception import FreeSpace, PredictedObjects
from mt_nodes.stacks.message_adapter import Adapter

ADAPTERS: dict[str, Any] = plugins.catalogue("adapters")
PUBLISHED = [name for name, cls in ADAPTERS.items() if cls.encode is not Adapter.encode]
OBSTACLES = [name for name in PUBLISHED if ADAPTERS[name].role == "detections"]
BOXES = [name for name in PUBLISHED if ADAPTERS[name].role == "boxes"]
STAMP = 1_700_000_000_123_456_789
FLOATS = (0.0, -0.0, 1.0, -2.5, 0.375, 1e30, -1e30, math.nan, math.inf, -math.inf)
TEXTS = ("", "base_link", "car", "7", "Straße", "a b=c")
PARTS = {
    Detections: ("center_m", "size_m", "yaw_rad", "label", "score", "track_id", "velocity_mps", "covariance"),
    ImageBoxes: ("box_px", "label", "score"),
    Path: ("pose", "speed_mps", "time_s"),
    Control: (),
    Diagnostics: (),
    Odometry: (),
    SignalStates: ("name", "colour", "stop", "score", "box_px"),
    FreeSpace: ("cells",),
    PredictedObjects: ("label", "score", "paths"),
    Lanes: ("name", "direction", "width_m", "point_m"),
}

NONE = Detections.none("base_link", STAMP)
ONE = Detections.make("base_link", STAMP, [[12.0, -3.0, 0.5]], [[4.5, 2.0, 1.5]], [0.7], ["car"], [0.875])
SEVERAL = Detections.make(
    "base_link",
    STAMP,
    [[1.0, 2.0, 3.0], [-40.5, 0.0, 1e-3], [7.0, -8.0, 9.0]],
    [[0.5, 0.5, 1.75], [12.0, 2.5, 3.5], [0.0, 0.0, 0.0]],
    [-math.pi / 2, 3.0, 0.0],
    ["pedestrian", "truck", "unknown"],
    [0.0, 1.0, 0.5],
    ["12", "0123456789abcdef0123456789abcdef", "4294967295"],
    [[1.0, 2.0, 0.25], [-3.0, 0.5, 0.0], [0.0, 0.0, 0.0]],
    [np.eye(6), np.diag(range(1, 7)), np.eye(6) * 0.5],
)


@pytest.fixture(autouse=True, scope="module")
def _packages() -> Iterator[None]:
    with installed():
        yield


def anything(kind: Any, chance: random.Random) -> Any:
    """Some value of a field: numbers of every kind, texts, lists of up to two."""
    node, inner = kind
    if node is Nodetype.NAME:
        return message_type(inner)(**{n: anything(part, chance) for n, part in fields_of(inner).items()})
    if node is Nodetype.BASE:
        return primitive(inner[0], chance)
    if node is Nodetype.ARRAY:
        return [anything(inner[0], chance)] * inner[1]
    rows = [anything(inner[0], chance) for _ in range(chance.randrange(3))]
    return array.array("B", rows) if inner[0] == (Nodetype.BASE, ("uint8", 0)) else rows


def primitive(name: str, chance: random.Random) -> Any:
    if name in ("float32", "float64"):
        return float(np.float32(chance.choice(FLOATS)))
    if name == "string":
        return chance.choice(TEXTS)
    if name == "bool":
        return chance.random() < 0.5
    kind = np.iinfo(name)
    return chance.choice([0, 1, 2, 3, int(kind.min), int(kind.max)])


def same(a: Any, b: Any) -> bool:
    """Whether two outputs say the same, NaN in the same places."""
    if isinstance(a, (Control, Diagnostics, Odometry)):
        return repr(a) == repr(b)
    if isinstance(a, PredictedObjects):
        rows = [
            [(p.probability, p.time_s.tolist(), p.place_m.tolist()) for row in one.paths for p in row] for one in (a, b)
        ]
        return repr(rows[0]) == repr(rows[1]) and same(a.objects, b.objects)
    columns = [(getattr(a, name), getattr(b, name)) for name in PARTS[type(a)]]
    return (a.frame_id, a.stamp_ns) == (b.frame_id, b.stamp_ns) and all(
        x.shape == y.shape and np.array_equal(x, y, equal_nan=x.dtype.kind == "f") for x, y in columns
    )


@pytest.mark.parametrize("name", ADAPTERS)
def test_whatever_the_fields_hold_is_read_or_refused(name: str) -> None:
    """And it is read the same off the wire; refused are only numbers, frames and layouts that contradict each other."""
    adapter, chance, read = ADAPTERS[name](), random.Random(name), 0
    for _ in range(40):
        message = anything((Nodetype.NAME, adapter.type), chance)
        assert adapter.stamp_ns(message) is None or isinstance(adapter.stamp_ns(message), int)
        try:
            said = adapter.decode(message)
        except (ValueError, UsageError) as error:
            assert str(error)
            continue
        read += 1
        assert type(said) in PARTS
        assert len({len(getattr(said, part)) for part in PARTS[type(said)]}) <= 1
        assert same(said, adapter.decode(wired(message)))
        # Diagnostics are of no instant: they are told beside answers.
        assert isinstance(said, Diagnostics) or said.stamp_ns == adapter.stamp_ns(message)
    assert read or name == "point_cloud_clusters", "its clouds are nonsense unless their layout is drawn with care"


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_stamp_is_found_exactly_where_the_type_has_one(name: str) -> None:
    cls = ADAPTERS[name]
    message = make(cls.type)
    holder = getattr(message, "header", message)
    if cls.type == "visualization_msgs/msg/MarkerArray":
        message.markers = [make("visualization_msgs/msg/Marker")]
        holder = message.markers[0].header
    if cls.stamped:
        set_stamp(holder.stamp, STAMP)
    assert cls().stamp_ns(wired(message)) == (STAMP if cls.stamped else None)


@pytest.mark.parametrize("name", OBSTACLES)
@pytest.mark.parametrize("said", [NONE, ONE, SEVERAL], ids=["none", "one", "several"])
def test_obstacles_that_are_published_come_back(name: str, said: Detections) -> None:
    """What a type carries comes back as it was; of what it cannot carry nothing does."""
    adapter = ADAPTERS[name]()
    again = adapter.decode(wired(adapter.encode(said)))
    assert (again.frame_id, again.stamp_ns, len(again)) == ("base_link", STAMP, len(said))
    np.testing.assert_array_equal(again.center_m, said.center_m)
    np.testing.assert_allclose(np.cos(again.yaw_rad - said.yaw_rad), 1.0, atol=1e-12)
    assert np.array_equal(again.size_m, said.size_m) or not again.size_m.any()
    assert np.array_equal(again.label, said.label) or set(again.label) == {"unknown"}
    carried = np.isclose(again.score, said.score, atol=1 / 255)
    assert carried.all() or (again.score == 1.0).all()
    if again.track_id.any():
        assert len(set(again.track_id)) == len(set(said.track_id)), "two tracks stay two"
    for column in ("velocity_mps", "covariance"):
        before, after = getattr(said, column), getattr(again, column)
        known = np.isfinite(before)
        assert np.allclose(after[known], before[known], atol=1e-6) or np.isnan(after).all()
        assert (np.isnan(after[~known]) | (after[~known] == 0.0)).all()


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("count", [0, 1, 3])
def test_boxes_that_are_published_come_back(name: str, count: int) -> None:
    adapter = ADAPTERS[name]()
    edges = np.array([[10.5, 20.0, 30.0, 44.25], [0.0, 0.0, 639.0, 479.0], [-5.0, 3.0, -5.0, 3.0]])[:count]
    said = ImageBoxes.make("camera", STAMP, edges, ["car", "pedestrian", "unknown"][:count], [0.5, 1.0, 0.0][:count])
    assert same(adapter.decode(wired(adapter.encode(said))), said)


def parts_of(message: Any, type_name: str) -> Iterator[Any]:
    """Every message of a type within a message."""
    if type(message) is message_type(type_name):
        yield message
    for slot in getattr(message, "get_fields_and_field_types", dict)():
        value = getattr(message, slot)
        for row in value if isinstance(value, list) else [value]:
            yield from parts_of(row, type_name)


@pytest.mark.parametrize("name", OBSTACLES)
def test_orientations_of_any_length_and_none(name: str) -> None:
    """Scaled quaternions turn alike, all-zero ones, as many tools leave them, not at all; NaN is no number."""
    adapter = ADAPTERS[name]()
    for factor, expected in ((3.0, SEVERAL.yaw_rad), (0.0, np.zeros(3)), (math.nan, np.full(3, math.nan))):
        message = adapter.encode(SEVERAL)
        turns = list(parts_of(message, "geometry_msgs/msg/Quaternion"))
        assert len(turns) >= 3
        for turn in turns:
            turn.x, turn.y, turn.z, turn.w = (factor * part for part in (turn.x, turn.y, turn.z, turn.w))
        read = adapter.decode(wired(message))
        np.testing.assert_allclose(np.cos(read.yaw_rad - expected), np.where(np.isnan(expected), np.nan, 1.0))
        assert read.finite.all() == (not math.isnan(factor))


@pytest.mark.parametrize("name", OBSTACLES)
def test_a_place_that_is_no_number_is_read_and_marked(name: str) -> None:
    adapter = ADAPTERS[name]()
    message = adapter.encode(SEVERAL)
    for place in parts_of(message, "geometry_msgs/msg/Point"):
        place.y = math.nan
    read = adapter.decode(wired(message))
    assert len(read) == 3 and not read.finite.any()


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_catalogue_says_how_an_adapter_is_used(name: str) -> None:
    row = next(row for row in catalogue.rows("adapters") if row["name"] == name)
    assert row["confidence"] == ("stamped" if ADAPTERS[name].stamped else "headerless")
    assert row["use"] == ("read, publish" if name in PUBLISHED else "read")
    assert row["package"].startswith(("ros-jazzy-", "https://"))
    if name not in PUBLISHED:
        with pytest.raises(UsageError, match="can be read but not published"):
            ADAPTERS[name]().encode(NONE)
