# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import gc
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from recordings import (
    KITTI,
    PERIOD_NS,
    Recorded,
    bundles,
    camera_info,
    cloud,
    drive,
    image,
    needs_kitti,
    recorded,
    stamp,
    text,
    torn_copy,
    tree,
    write_bag,
)
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2.enums import CompressionMode
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.bags.bundles import BagSource, write_bundles
from mt_nodes.data.bags.reader import BagReader, RecordedWire
from mt_nodes.data.bags.writer import STATIC_QOS
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.wire import encode_message, wire_for
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import LidarModel

LIDAR = LidarModel((-0.2, -0.1), 30, 0.9, 100.0, 0.02, 0.06)

MCAP, SQLITE = StoragePlugin.MCAP, StoragePlugin.SQLITE3


def read(path: Path, **kwargs: object) -> list[Bundle]:
    with BagSource(path, **kwargs) as source:  # type: ignore[arg-type]
        return list(source)


def notes(bundle: Bundle) -> list[str]:
    return [codec.decode(w.type, w.cdr).data for w in bundle.wires if w.type == codec.STRING]


def same(wires: list[Wire], rows: list[Recorded]) -> bool:
    return [(w.topic, w.type, w.received_ns, w.cdr) for w in wires] == [tuple(row) for row in rows]  # type: ignore


@pytest.mark.parametrize(
    ("storage", "compression", "file"),
    [
        (MCAP, CompressionMode.NONE, ""),
        (MCAP, CompressionMode.STORAGE, "*.mcap"),
        (MCAP, CompressionMode.FILE, ""),
        (MCAP, CompressionMode.MESSAGE, ""),
        (SQLITE, CompressionMode.NONE, "*.db3"),
        (SQLITE, CompressionMode.MESSAGE, ""),
        (SQLITE, CompressionMode.FILE, ""),
    ],
)
def test_every_message_comes_with_its_bundle(
    tmp_path: Path, storage: StoragePlugin, compression: CompressionMode, file: str
) -> None:
    bag = write_bag(tmp_path / "bag", drive(5), storage, compression)
    found = read(next(bag.glob(file)) if file else bag, episode=3)
    assert [(b.episode, b.index, b.stamp_ns) for b in found] == [(3, i, stamp(i)) for i in range(5)]
    for i, b in enumerate(found):
        assert codec.encode_cloud(b.cloud()) == codec.encode_cloud(cloud(i))
        assert np.array_equal(b.images[0].pixels, image(i).pixels)
        assert np.array_equal(b.camera_infos[0].k, camera_info(i).k)
        assert notes(b) == [f"before {i}"]
        assert np.allclose(b.transforms.lookup("base_link", "lidar"), tree().lookup("base_link", "lidar"))
    assert same([w for b in found for w in b.wires], drive(5))


def test_info(tmp_path: Path) -> None:
    with BagSource(write_bag(tmp_path / "bag", drive(3), qos=[STATIC_QOS])) as source:
        assert source.lead == "/points"
        assert source.roles["camera_info"] == ("/camera/camera_info",)
        assert {name: (t.type, t.count) for name, t in source.info.items()} == {
            "/tf_static": (codec.TF, 1),
            "/note": (codec.STRING, 3),
            "/points": (codec.POINT_CLOUD, 3),
            "/camera/image": (codec.IMAGE, 3),
            "/camera/camera_info": (codec.CAMERA_INFO, 3),
        }
        assert source.info["/points"].qos == (STATIC_QOS,)
        assert len(list(source)) == len(list(source)) == 3


def test_ros1(tmp_path: Path) -> None:
    """A bag with the messages of ROS 1: other header, other field names, ``tf/tfMessage``, a type nobody knows."""
    noetic = get_typestore(Stores.ROS1_NOETIC)
    noetic.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms\n", "tf/msg/tfMessage"))
    own = "Header header\nstring name\nuint8[] data\n" + "=" * 80 + "\nMSG: std_msgs/Header\nuint32 seq\ntime stamp\n"
    with Writer1(tmp_path / "old.bag") as bag:
        points = bag.add_connection("/points", codec.POINT_CLOUD, typestore=noetic)
        frames = bag.add_connection("/tf_static", "tf/msg/tfMessage", typestore=noetic)
        thing = bag.add_connection("/thing", "my_msgs/msg/Thing", msgdef=own + "string frame_id\n", md5sum="0")
        bag.write(frames, stamp(0), codec.typestore().cdr_to_ros1(codec.encode_transforms(tree(), 0), codec.TF))
        for i in range(3):
            bag.write(points, stamp(i), codec.typestore().cdr_to_ros1(codec.encode_cloud(cloud(i)), codec.POINT_CLOUD))
        header = bytes([1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0]) + b"f"
        bag.write(thing, stamp(2), header + bytes([2, 0, 0, 0]) + b"hi" + bytes([1, 0, 0, 0, 9]))
    found = read(tmp_path / "old.bag")
    assert [codec.encode_cloud(b.cloud()) for b in found] == [codec.encode_cloud(cloud(i)) for i in range(3)]
    assert found[0].transforms.frames == {"base_link", "lidar"}
    (wire,) = [w for w in found[-1].wires if w.topic == "/thing"]
    assert wire.type == "my_msgs/msg/Thing"
    expected = bytes([0, 1, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0]) + b"f\0" + bytes([0, 0, 3, 0, 0, 0]) + b"hi\0\0"
    assert wire.cdr == expected + bytes([1, 0, 0, 0, 9])


def test_sensors_join_by_nearest_stamp_even_when_recorded_late(tmp_path: Path) -> None:
    late = int(1.3 * PERIOD_NS)
    rows = [recorded(cloud(i)) for i in range(4)]
    rows += [recorded(image(i + 0.2), late) for i in range(4)]  # nearest to cloud i, recorded after cloud i + 1
    rows += [recorded(image(i + 0.7)) for i in range(4)]  # nearer to cloud i + 1, but there is a better one
    rows += [recorded(camera_info(2.45))]
    rows.sort(key=lambda r: r.received_ns)
    found = read(write_bag(tmp_path / "bag", rows))
    assert [b.images[0].stamp_ns for b in found] == [stamp(i + 0.2) for i in range(4)]
    assert [len(b.camera_infos) for b in found] == [0, 0, 1, 0]
    everything = [w for b in found for w in b.wires]
    assert sorted((w.topic, w.cdr) for w in everything) == sorted((r.topic, r.cdr) for r in rows)
    joined = {b.images[0].stamp_ns for b in found}
    assert {w.received_ns - w.stamp_ns for w in everything if w.stamp_ns in joined} == {late}


def test_a_sensor_too_far_off_joins_nothing(tmp_path: Path) -> None:
    rows = [recorded(cloud(i)) for i in range(3)] + [replaced(image(100 + i), stamp(i + 0.1)) for i in range(3)]
    found = read(write_bag(tmp_path / "bag", sorted(rows, key=lambda r: r.received_ns)))
    assert [b.images for b in found] == [(), (), ()]
    # Not held back for a cloud that may have such a stamp one day: a clock can be an hour off.
    assert [len(b.wires) for b in found] == [1, 2, 3]


def replaced(message: object, received_ns: int) -> Recorded:
    return recorded(message)._replace(received_ns=received_ns)  # type: ignore[arg-type]


def test_the_first_and_the_last_messages_are_not_lost(tmp_path: Path) -> None:
    rows = [text(-2, "first"), recorded(cloud(0)), text(0.5, "middle"), recorded(cloud(1)), text(9, "last")]
    assert [notes(b) for b in read(write_bag(tmp_path / "bag", rows))] == [["first"], ["middle", "last"]]


def test_limit_and_streaming(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(40))
    assert len(read(bag, limit=2)) == 2
    assert read(bag, limit=0) == []
    with BagSource(bag) as source:
        taken = []
        wires = source.reader.wires
        source.reader.wires = lambda *a: (taken.append(w) or w for w in wires(*a))  # type: ignore[method-assign]
        next(iter(source))
        assert len(taken) < 20 < len(drive(40))


def test_the_camera_leads_when_no_lidar_is_asked_for(tmp_path: Path) -> None:
    rows = [
        row for i in range(6) for row in (recorded(image(i / 2)), *([recorded(cloud(i / 2))] if i % 2 == 0 else []))
    ]
    found = read(write_bag(tmp_path / "bag", rows), require=("camera",))
    assert [len(b.clouds) for b in found] == [1, 0, 1, 0, 1, 0]


def test_several_candidates_need_a_choice(tmp_path: Path) -> None:
    rows = [recorded(cloud(i, topic)) for i in range(2) for topic in ("/front/points", "/rear/points")]
    bag = write_bag(tmp_path / "bag", rows)
    listed = r"/front/points \(sensor_msgs/msg/PointCloud2\), /rear/points .*choose with --topic lidar=TOPIC"
    with pytest.raises(UsageError, match=listed):
        BagSource(bag)
    assert [b.clouds[0].topic for b in read(bag, topics={"lidar": "/rear/points"})] == ["/rear/points"] * 2


@pytest.mark.parametrize(
    ("kwargs", "says"),
    [
        (
            {"require": ("camera",)},
            r"no messages of type sensor_msgs/msg/Image or .* for the camera; .* /points \(sens",
        ),
        ({"topics": {"lidar": "/pionts"}}, "--topic lidar=/pionts: .* has no such topic; did you mean '/points'"),
        ({"topics": {"lidar": "/note"}}, "got type std_msgs/msg/String, expected sensor_msgs/msg/PointCloud2"),
        ({"topics": {"ladar": "/points"}}, "no role 'ladar'; did you mean"),
        ({"require": ("region",)}, "for the region"),
        ({"require": ()}, "expected lidar or camera or radar among them"),
    ],
)
def test_roles_that_cannot_be_filled(tmp_path: Path, kwargs: dict[str, object], says: str) -> None:
    bag = write_bag(tmp_path / "bag", [recorded(cloud(0)), text(0, "hello")])
    with pytest.raises(UsageError, match=says):
        BagSource(bag, **kwargs)  # type: ignore[arg-type]


def test_the_camera_info_beside_the_camera_is_taken(tmp_path: Path) -> None:
    rows = [recorded(cloud(0)), recorded(image(0, "/left/image"))]
    rows += [recorded(camera_info(0, f"/{side}/camera_info")) for side in ("left", "right")]
    (found,) = read(write_bag(tmp_path / "bag", rows))
    assert [c.topic for c in found.camera_infos] == ["/left/camera_info"]


def test_only_required_sensors_must_be_understood(tmp_path: Path) -> None:
    msg = codec.decode(codec.IMAGE, codec.encode_image(image(0)))
    msg.encoding = "nv12"
    rows = [recorded(cloud(0)), Recorded("/camera/image", codec.IMAGE, stamp(0), codec.encode(codec.IMAGE, msg))]
    bag = write_bag(tmp_path / "bag", rows)
    (found,) = read(bag)
    assert found.images == () and len(found.wires) == 2
    with pytest.raises(UsageError, match="nv12"):
        read(bag, require=("lidar", "camera"))


def moving(i: float, x: float, yaw: float) -> Recorded:
    pose = pose_matrix((x, 0, 0), (0, 0, np.sin(yaw / 2), np.cos(yaw / 2)))
    frames = TransformTree([Transform("map", "base_link", pose)])
    return Recorded("/tf", codec.TF, stamp(i), codec.encode_transforms(frames, stamp(i)))


def test_moving_transforms_are_taken_at_the_instant(tmp_path: Path) -> None:
    rows = [recorded(cloud(i)) for i in range(3)] + [moving(-0.25, 0, 0), moving(0.75, 4, 1), moving(1.75, 8, 0)]
    rows.append(Recorded("/tf_static", codec.TF, stamp(2.5), codec.encode_transforms(tree(), 0)))  # late, yet for all
    found = read(write_bag(tmp_path / "bag", sorted(rows, key=lambda r: r.received_ns)))
    poses = [b.transforms.lookup("map", "base_link") for b in found]
    assert [p[0, 3] for p in poses] == pytest.approx([1, 5, 8], abs=1e-6)
    assert [np.arctan2(p[1, 0], p[0, 0]) for p in poses] == pytest.approx([0.25, 0.75, 0], abs=1e-6)
    assert all(b.transforms.frames == {"map", "base_link", "lidar"} for b in found)


def test_the_users_transforms_stand_above_those_of_the_bag(tmp_path: Path) -> None:
    users = TransformTree([Transform("base_link", "lidar", pose_matrix((9, 0, 0), (0, 0, 0, 1)))])
    (found,) = read(write_bag(tmp_path / "bag", drive(1)), transforms=users)
    assert found.transforms.lookup("base_link", "lidar")[0, 3] == 9


def polygon(i: float, x: float) -> Recorded:
    types = codec.typestore().types
    corners = [types["geometry_msgs/msg/Point32"](x=x, y=y, z=0.0) for y in (0.0, 1.0, 2.0)]
    shape = types["geometry_msgs/msg/Polygon"](points=corners)
    message = types[codec.POLYGON](header=codec.header_of("base_link", stamp(i)), polygon=shape)
    return Recorded("/region", codec.POLYGON, stamp(i), codec.encode(codec.POLYGON, message))


def test_regions(tmp_path: Path) -> None:
    rows = [recorded(cloud(0)), polygon(0.1, 5), recorded(cloud(1)), polygon(1.5, 7), recorded(cloud(2))]
    found = read(write_bag(tmp_path / "bag", rows))
    assert [b.regions["/region"][1][0, 0] for b in found] == [5, 5, 7]
    assert found[0].regions["/region"][0] == "base_link"
    assert all(sum(w.topic == "/region" for w in b.wires) == n for b, n in zip(found, (0, 1, 1), strict=True))


@pytest.mark.parametrize("metadata", [False, True])
def test_a_torn_recording_gives_what_it_has_and_says_so(tmp_path: Path, metadata: bool) -> None:
    rows = [recorded(cloud(i, count=30000)) for i in range(12)]
    torn = torn_copy(write_bag(tmp_path / "bag", rows), tmp_path / "torn", 0.7, metadata)
    found = []
    with (
        pytest.raises(InfrastructureError, match=r"torn: bag is damaged after \d+ messages.*ends at byte \d+ of \d+"),
        BagSource(torn) as source,
    ):
        for bundle in source:
            found.append(bundle)
    assert 5 < len(found) < 12
    assert [b.cloud().stamp_ns for b in found] == [stamp(i) for i in range(len(found))]


def test_a_recording_without_metadata_is_read(tmp_path: Path) -> None:
    bag = write_bag(tmp_path / "bag", drive(3))
    (bag / "metadata.yaml").unlink()
    assert len(read(bag)) == 3


@pytest.mark.parametrize("storage", [MCAP, SQLITE])
def test_a_corrupt_middle_gives_what_comes_before(tmp_path: Path, storage: StoragePlugin) -> None:
    mode = CompressionMode.STORAGE if storage is MCAP else CompressionMode.NONE
    bag = write_bag(tmp_path / "bag", [recorded(cloud(i, count=30000)) for i in range(12)], storage, mode)
    file = next(p for p in bag.iterdir() if p.suffix != ".yaml")
    data = bytearray(file.read_bytes())
    middle = int(len(data) * 0.6)
    data[middle : middle + 20000] = bytes(20000)
    file.write_bytes(data)
    found = []
    with (
        pytest.raises(InfrastructureError, match=re.escape(str(bag)) + ": bag is damaged after [1-9]"),
        BagSource(bag) as source,
    ):
        for bundle in source:
            found.append(bundle)
    assert 2 < len(found) < 12


def test_what_is_no_bag(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no bag .*nothing"):
        BagSource(tmp_path / "nothing")
    with pytest.raises(UsageError, match=r"no bag: it has no metadata\.yaml"):
        BagSource(tmp_path)
    for name in ("a.bag", "a.mcap", "a.db3", "a.txt"):
        (tmp_path / name).write_bytes(b"this is no bag at all" * 10)
        with pytest.raises(InfrastructureError, match=name):
            BagSource(tmp_path / name)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_made_bundles_come_back(tmp_path: Path, storage: str) -> None:
    write_bundles(tmp_path / "bag", iter(bundles(4)), storage)
    found = read(tmp_path / "bag")
    for made, back in zip(bundles(4), found, strict=True):
        assert back.stamp_ns == made.stamp_ns
        assert [encode_message(m) for m in back.messages] == [encode_message(m) for m in made.messages]
        assert back.transforms.frames == {"base_link", "lidar"}
    with BagReader(tmp_path / "bag") as reader:
        assert {t: len(i.qos) for t, i in reader.topics.items()} == dict.fromkeys(reader.topics, 1)
    with pytest.raises(UsageError, match="exists already"):
        write_bundles(tmp_path / "bag", [])


@pytest.mark.parametrize("name", ["bag", "bag.mcap"])
def test_a_bag_tells_of_every_byte_that_changed_in_its_messages(tmp_path: Path, name: str) -> None:
    write_bundles(tmp_path / name, bundles(3))
    [file] = [tmp_path / name] if name.endswith(".mcap") else (tmp_path / name).glob("*.mcap")
    whole = file.read_bytes()
    head = 8 + 9 + int.from_bytes(whole[9:17], "little")  # magic, and the first record with its code and length
    begin, size = head + 9, int.from_bytes(whole[head + 1 : head + 9], "little")
    assert whole[head] == 0x06, "a chunk"
    for at in np.linspace(begin + 48, begin + size - 1, 20, dtype=int):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        with BagReader(tmp_path / name) as bag, pytest.raises(InfrastructureError, match="bag is damaged"):
            list(bag.wires())


def test_a_bag_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    def broken() -> object:
        yield bundles(1)[0]
        assert not (tmp_path / "bag").exists()
        raise RuntimeError("the generator fails")

    with pytest.raises(RuntimeError):
        write_bundles(tmp_path / "bag", broken())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_frame_names_of_ros1_with_a_slash_are_found() -> None:
    assert np.array_equal(tree().lookup("/base_link", "/lidar"), tree().lookup("base_link", "lidar"))
    msg = codec.decode(codec.TF, codec.encode_transforms(tree(), 0))
    msg.transforms[0] = replace(msg.transforms[0], child_frame_id="/lidar")
    assert codec.transforms_from_msg(msg, static=True)[0].child == "lidar"


@needs_kitti
def test_a_recorded_drive(tmp_path: Path) -> None:
    with BagSource(KITTI) as source:
        found = list(source)
        whole = list(source.reader.wires())
    assert len(found) == 26
    assert [w.cdr for b in found for w in b.wires] == [w.cdr for w in whole]
    for b in found:
        assert (len(b.clouds), len(b.images), len(b.camera_infos)) == (1, 1, 1)
        assert all(m.stamp_ns == b.stamp_ns for m in b.messages)
        assert b.transforms.lookup("base_link", "velodyne")[2, 3] == pytest.approx(1.73)
        for m in b.messages:
            wire = wire_for(m, b.wires)
            assert wire is not None and encode_message(m, wire) == wire.cdr


@pytest.mark.parametrize("storage", [MCAP, SQLITE])
def test_a_bag_that_nobody_closes_is_closed_with_its_reader(tmp_path: Path, storage: StoragePlugin) -> None:
    """Workers of campaigns read one bag after the other; rosbags' readers are in cycles, which are collected later."""

    def is_open() -> bool:
        return any(str(tmp_path) in str(link.resolve()) for link in Path("/proc/self/fd").iterdir())

    source = BagSource(write_bag(tmp_path / "bag", drive(2), storage=storage))
    gc.disable()
    try:
        assert len(list(source)) == 2 and is_open()
        del source
        assert not is_open()
    finally:
        gc.enable()


def test_a_source_that_was_read_holds_none_of_its_messages(tmp_path: Path) -> None:
    """The sources of a run last as long as it; what is held of each of its bags is memory that grows with every bag."""

    def count() -> int:
        return sum(isinstance(one, RecordedWire) for one in gc.get_objects())

    write_bundles(tmp_path / "bag", generate_drive(4, 1, LIDAR))
    gc.collect()
    before, source = count(), BagSource(tmp_path / "bag")
    bundles = list(source)
    assert count() > before, "a bundle brings its own, and the odometry from which its motion may be estimated"
    assert (motion := bundles[0].track.at(bundles[0])) is not None and motion.pose is not None
    bundles = list(source)
    assert repr(bundles[0].track.at(bundles[0])) == repr(motion), "whoever reads it anew gets the same motion"
    gc.collect()
    gc.disable()  # cycles are collected seldom
    try:
        bundles = list(source)
        bundles.clear()
        assert count() == before, "also where nobody asked for motion"
    finally:
        gc.enable()
