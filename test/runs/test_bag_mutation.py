# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from mutations_for_tests import Echo, Nothing, Shuffle
from recordings import KITTI, PERIOD_NS, cloud, drive, image, needs_kitti, recorded, stamp, text, torn_copy, write_bag
from rosbags.rosbag1 import Reader as Reader1
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.typesys import Stores, get_typestore

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.bags.reader import BagReader, RecordedWire
from mt_nodes.data.bags.writer import STATIC_QOS
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message
from mt_nodes.engine.bag_mutation import mutate_bag
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.stream.calibration_drift import CalibrationDrifted
from mt_nodes.relations.mutations.stream.frame_mutations import FramesDelayed, FramesReordered, RateReduced

Rows = list[tuple[str, str, int, bytes]]


def rows(wires: list[RecordedWire]) -> Rows:
    return [(w.topic, w.type, w.received_ns, w.cdr) for w in wires]


def read(path: Path, topics: set[str] | None = None) -> Rows:
    with BagReader(path) as reader:
        return rows(list(reader.wires(topics)))


OTHERS = {"/tf_static", "/note", "/camera/image", "/camera/camera_info"}


@pytest.mark.parametrize(("storage", "stored"), [("mcap", StoragePlugin.SQLITE3), ("sqlite3", StoragePlugin.MCAP)])
def test_only_what_is_mutated_changes(tmp_path: Path, storage: str, stored: StoragePlugin) -> None:
    bag, out, told = write_bag(tmp_path / "bag", drive(6), stored, qos=[STATIC_QOS]), tmp_path / "out", []
    counts = {"progress": lambda done, total: told.append((done, total))}
    summary = mutate_bag(bag, [Shuffle(drop=5)], out, 7, storage=storage, **counts)
    assert (summary.bundles, summary.mutated, summary.messages) == (6, 4, 25)
    assert summary.not_applicable == Counter({"a third bundle": 2})
    assert told == [(done, 6) for done in range(1, 7)]
    assert read(out, OTHERS) == read(bag, OTHERS)
    assert [row[:3] for row in read(out)] == [row[:3] for row in read(bag)]
    for i, (_, kind, _, data) in enumerate(read(out, {"/points"})):
        made = codec.cloud_from_msg("/points", codec.decode(kind, data))
        source = cloud(i)
        assert (made.stamp_ns, len(made)) == (source.stamp_ns, 50 if i % 3 == 2 else 45)
        assert {made.raw.tobytes()[k : k + 16] for k in range(0, 720, 16)} <= {r.tobytes() for r in source.raw}
    with BagReader(bag) as a, BagReader(out) as b:
        assert a.topics == b.topics
        definitions = [{c.topic: r.definition(c) for c in r.connections} for r in (a, b)]
        assert definitions[0] == definitions[1]


def test_the_same_seed_makes_the_same_bag(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(3))
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        mutate_bag(bag, [Shuffle()], tmp_path / name, seed)
    assert read(tmp_path / "a") == read(tmp_path / "b") != read(tmp_path / "c")


def test_delays_and_losses_reach_the_bag(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(3))
    mutate_bag(bag, [Echo(30_000_000)], tmp_path / "echo")
    delayed = [stamp(i) + late for i in range(3) for late in (0, 30_000_000)]
    made = read(tmp_path / "echo", {"/points"})
    assert [row[2] for row in made] == delayed
    assert [codec.cloud_from_msg("", codec.decode(row[1], row[3])).stamp_ns for row in made] == delayed
    assert [row[2] for row in read(tmp_path / "echo", {"/camera/image"})] == delayed
    mutate_bag(bag, [Nothing()], tmp_path / "nothing")
    assert read(tmp_path / "nothing") == read(bag, {"/tf_static", "/note"})


def test_a_stream_is_changed_in_the_bag_and_the_rest_stays(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(9))

    def clouds(name: str, mutation: Mutation) -> list[tuple[int, int]]:
        """Number and time of reception of each cloud, in periods."""
        mutate_bag(bag, [mutation], tmp_path / name)
        made = read(tmp_path / name, {"/points"})
        assert read(tmp_path / name, {"/tf_static", "/note"}) == read(bag, {"/tf_static", "/note"})
        stamps = [codec.cloud_from_msg("", codec.decode(row[1], row[3])).stamp_ns for row in made]
        pairs = zip(stamps, made, strict=True)
        return [((s - stamp(0)) // PERIOD_NS, (row[2] - stamp(0)) // PERIOD_NS) for s, row in pairs]

    assert clouds("half", RateReduced(one_of=2.0)) == [(i, i) for i in range(0, 9, 2)]
    assert clouds("late", FramesDelayed(every=1, delay_s=0.2)) == [(i, i + 2) for i in range(9)]
    swapped = clouds("swapped", FramesReordered(every=9))
    [held] = [i for i, at in swapped if at != i]
    assert swapped == [(i, i) for i in range(held)] + [(held + 1, held + 1), (held, held + 1)] + [
        (i, i) for i in range(held + 2, 9)
    ]


def test_limit(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(5))
    assert mutate_bag(bag, [Shuffle()], tmp_path / "out", limit=2).bundles == 2
    assert [row[:3] for row in read(tmp_path / "out")] == [row[:3] for row in read(bag)][:9]


def test_from_ros2_to_ros1_and_back(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(3), qos=[STATIC_QOS])
    mutate_bag(bag, [Shuffle(drop=5, every_third=False)], tmp_path / "old.bag")
    with Reader1(tmp_path / "old.bag") as old:
        assert {c.topic: c.digest for c in old.connections}["/points"] == "1158d486dd51d683ce2f1be655c3c181"
        assert all(c.ext.latching for c in old.connections)  # type: ignore[union-attr]
    mutate_bag(tmp_path / "old.bag", [Shuffle(every_third=False)], tmp_path / "new")
    assert sorted(read(tmp_path / "new", OTHERS)) == sorted(read(bag, OTHERS))
    clouds = [codec.cloud_from_msg("", codec.decode(row[1], row[3])) for row in read(tmp_path / "new", {"/points"})]
    assert [len(made) for made in clouds] == [45] * 3


def test_ros1_messages_are_copied_byte_for_byte(tmp_path: Path) -> None:
    noetic = get_typestore(Stores.ROS1_NOETIC)
    with Writer1(tmp_path / "a.bag") as bag:
        points = bag.add_connection("/points", codec.POINT_CLOUD, typestore=noetic)
        images = bag.add_connection("/image", codec.IMAGE, typestore=noetic, callerid="/driver", latching=1)
        for i in range(2):
            for connection, made in ((points, cloud(i)), (images, image(i, "/image"))):
                raw = bytearray(codec.typestore().cdr_to_ros1(encode_message(made), codec.type_of(made)))
                raw[0] = 40 + i  # header.seq, which ROS 2 does not have
                bag.write(connection, stamp(i), bytes(raw))
    mutate_bag(tmp_path / "a.bag", [Shuffle(drop=5)], tmp_path / "b.bag")
    with Reader1(tmp_path / "a.bag") as a, Reader1(tmp_path / "b.bag") as b:
        assert [c[1:5] + c[6:7] for c in a.connections] == [c[1:5] + c[6:7] for c in b.connections]
        old, new = ([(c.topic, t, bytes(raw)) for c, t, raw in r.messages()] for r in (a, b))
    assert [row for row in old if row[0] == "/image"] == [row for row in new if row[0] == "/image"]
    assert [len(row[2]) for row in old if row[0] == "/points"] == [
        len(row[2]) + 5 * 16 for row in new if row[0] == "/points"
    ]


def test_types_that_nobody_defines_pass(tmp_path: Path) -> None:
    """Bags of Humble and older carry no definitions."""
    bag = write_bag(tmp_path / "bag", [recorded(cloud(0)), text(0, "hello")], StoragePlugin.SQLITE3)
    database = sqlite3.connect(next(bag.glob("*.db3")))
    database.execute("UPDATE topics SET type = 'my_msgs/msg/Note', type_description_hash = '' WHERE name = '/note'")
    database.execute("DELETE FROM message_definitions")
    database.commit()
    database.close()
    (bag / "metadata.yaml").unlink()
    mutate_bag(bag, [Shuffle()], tmp_path / "out")
    assert read(tmp_path / "out", {"/note"}) == [("/note", "my_msgs/msg/Note", stamp(0), codec.encode_text("hello"))]
    with pytest.raises(UsageError, match=r"'my_msgs/msg/Note' cannot go into a ROS 1 bag"):
        mutate_bag(bag, [Shuffle()], tmp_path / "out.bag")


def test_a_broken_guarantee_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(3))
    with pytest.raises(InfrastructureError, match=rf"bundle 0 at {stamp(0)} ns: guarantee broken: shuffle: 0 points"):
        mutate_bag(bag, [Shuffle(lie=True)], tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["bag"]


def test_a_torn_bag_is_mutated_as_far_as_it_goes(tmp_path: Path) -> None:
    whole = write_bag(tmp_path / "bag", [recorded(cloud(i, count=30000)) for i in range(8)])
    torn = torn_copy(whole, tmp_path / "torn", keep=0.6)
    with pytest.raises(InfrastructureError, match=r"damaged after .* what was readable \(\d bundles\) is in .*out"):
        mutate_bag(torn, [Shuffle(every_third=False)], tmp_path / "out")
    assert 2 < len(read(tmp_path / "out")) < 8


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        ({"out": "bag"}, "exists already"),
        ({"storage": "hdf5"}, "got storage 'hdf5', expected one of mcap, sqlite3"),
        ({"topics": {"lidar": "/nothing"}}, "has no such topic"),
    ],
)
def test_wrong_use(tmp_path: Path, kwargs: dict[str, object], says: str) -> None:
    bag = write_bag(tmp_path / "bag", drive(1))
    values = {"out": "out", **kwargs}
    with pytest.raises(UsageError, match=says):
        mutate_bag(bag, [Shuffle()], tmp_path / str(values.pop("out")), **values)  # type: ignore[arg-type]
    assert [p.name for p in tmp_path.iterdir()] == ["bag"]


def test_a_mutation_of_several_sensors_takes_those_that_are_there(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", [recorded(image(i)) for i in range(2)])
    assert mutate_bag(bag, [Echo()], tmp_path / "out").messages == 4
    with pytest.raises(UsageError, match="for the lidar"):
        mutate_bag(bag, [Shuffle()], tmp_path / "other")


@needs_kitti
def test_a_recorded_drive(tmp_path: Path) -> None:
    summary = mutate_bag(KITTI, [Shuffle(drop=100, every_third=False)], tmp_path / "out", 7)
    assert (summary.bundles, summary.mutated, summary.messages) == (26, 26, 79)
    others = {"/sensing/camera/image", "/sensing/camera/camera_info", "/tf_static"}
    assert read(tmp_path / "out", others) == read(KITTI, others)
    source, made = (
        [codec.cloud_from_msg("", codec.decode(r[1], r[3])) for r in read(bag, {"/sensing/lidar/points"})]
        for bag in (KITTI, tmp_path / "out")
    )
    assert [len(c) - 100 for c in source] == [len(c) for c in made]
    assert np.isin(made[3].raw.view("V16"), source[3].raw.view("V16")).all()


def test_a_wrong_transform_is_published_in_place_of_the_recorded_one(tmp_path: Path) -> None:
    bag, out = write_bag(tmp_path / "bag", drive(4)), tmp_path / "out"
    mutate_bag(bag, [CalibrationDrifted(yaw_deg=90.0)], out)
    assert read(out, OTHERS - {"/tf_static"} | {"/points"}) == read(bag, OTHERS - {"/tf_static"} | {"/points"})

    def yaws(path: Path) -> list[tuple[str, float]]:
        rows = [
            codec.transforms_from_msg(codec.decode(kind, data), True) for _, kind, _, data in read(path, {"/tf_static"})
        ]
        return [
            (t.child, round(float(np.degrees(np.arctan2(t.matrix[1, 0], t.matrix[0, 0]))), 3))
            for row in rows
            for t in row
        ]

    before, after = dict(yaws(bag)), dict(yaws(out))
    [wrong] = [child for child in before if before[child] != after[child]]
    assert after[wrong] - before[wrong] == pytest.approx(90.0)
    with BagSource(out) as source:
        trees = [bundle.transforms for bundle in source]
    given = [next(t.matrix for t in tree.transforms if t.child == wrong) for tree in trees]
    assert [np.degrees(np.arctan2(m[1, 0], m[0, 0])) for m in given] == pytest.approx([after[wrong]] * 4)


def test_a_transform_that_drifts_is_published_again(tmp_path: Path) -> None:
    bag, out = write_bag(tmp_path / "bag", drive(4)), tmp_path / "out"
    summary = mutate_bag(bag, [CalibrationDrifted(yaw_deg=10.0, over="ramp", duration_s=1.0)], out)
    assert (summary.mutated, len(read(out, {"/tf_static"}))) == (3, 3 + len(read(bag, {"/tf_static"})))
    with pytest.raises(UsageError, match="data set has in files"):
        mutate_bag(bag, [CalibrationDrifted()], Path(f"folder:{tmp_path / 'folder'}"))
