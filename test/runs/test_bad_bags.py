# SPDX-License-Identifier: Apache-2.0
"""Bags that are damaged, unclear or none: what can be read is judged, and then it is said what is wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import snapshots
from bad_bags import bag, message, replay, scan, scans, static, typed
from recordings import image, recorded, stamp, text, torn_copy, write_bag
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import StoragePlugin
from rosbags.rosbag2.enums import CompressionMode
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from mt_nodes.data.cdr import codec

CLOUDS = 120


def made(place: Path) -> Path:
    """A bag of several chunks."""
    return write_bag(place / "bag", [static(), *scans(CLOUDS)])


def sqlite(place: Path) -> Path:
    return write_bag(place / "bag", [static(), *scans(20)], StoragePlugin.SQLITE3)


def ros1(place: Path) -> Path:
    noetic, jazzy = get_typestore(Stores.ROS1_NOETIC), codec.typestore()
    noetic.register(get_types_from_msg("geometry_msgs/TransformStamped[] transforms\n", codec.TF))
    with Writer1(place / "whole.bag") as writer:
        points = writer.add_connection("/points", codec.POINT_CLOUD, typestore=noetic)
        frames = writer.add_connection("/tf_static", codec.TF, typestore=noetic)
        writer.write(frames, stamp(0), jazzy.cdr_to_ros1(static().cdr, codec.TF))
        for row in scans(20):
            writer.write(points, row.received_ns, jazzy.cdr_to_ros1(row.cdr, codec.POINT_CLOUD))
    return place / "whole.bag"


def cut(file: Path, share: float) -> None:
    with file.open("r+b") as opened:
        opened.truncate(int(file.stat().st_size * share))


def zeroed(file: Path, at: float, count: int) -> None:
    data = bytearray(file.read_bytes())
    begin = int(len(data) * at)
    data[begin : begin + count] = bytes(count)
    file.write_bytes(data)


def torn(share: float, metadata: bool) -> Callable[[Path], Path]:
    return lambda place: torn_copy(made(place), place / "torn", share, metadata)


def sqlite_cut(place: Path) -> Path:
    path = sqlite(place)
    cut(next(path.glob("*.db3")), 0.6)
    return path


def sqlite_zeroed(place: Path) -> Path:
    rows = [message(i, scan(i, 30_000)) for i in range(12)]  # so large that the page is one of a message's middle
    path = write_bag(place / "bag", [static(), *rows], StoragePlugin.SQLITE3)
    zeroed(next(path.glob("*.db3")), 0.6, 20_000)
    return path


def chunk_zeroed(place: Path) -> Path:
    path = write_bag(place / "bag", [static(), *scans(CLOUDS)], compression=CompressionMode.STORAGE)
    zeroed(next(path.glob("*.mcap")), 0.6, 20_000)
    return path


def ros1_cut(place: Path) -> Path:
    path = ros1(place)
    cut(path, 0.9)
    return path


def ros1_zeroed(place: Path) -> Path:
    path = ros1(place)
    zeroed(path, 0.5, 3000)
    return path


def metadata(change: Callable[[str], str]) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        path = bag(place / "bag", scans(3))
        file = path / "metadata.yaml"
        file.write_text(change(file.read_text()))
        return path

    return make


def without_metadata(place: Path) -> Path:
    path = bag(place / "bag", scans(3))
    (path / "metadata.yaml").unlink()
    return path


def without_file(place: Path) -> Path:
    path = bag(place / "bag", scans(3))
    next(path.glob("*.mcap")).unlink()
    return path


def empty_file(name: str) -> Callable[[Path], Path]:
    def make(place: Path) -> Path:
        (place / name).touch()
        return place / name

    return make


def empty_directory(place: Path) -> Path:
    (place / "bag").mkdir()
    return place / "bag"


def two_lidars(place: Path) -> Path:
    rows = [message(i)._replace(topic=topic) for i in range(2) for topic in ("/points", "/rear/points")]
    return bag(place / "bag", [*rows, text(0, "hello")])


def bad_transform(place: Path) -> Path:
    msg = codec.decode(codec.TF, static().cdr)
    msg.transforms[0].transform.rotation.w = 0.0
    wrong = static(1)._replace(topic="/tf", cdr=codec.encode(codec.TF, msg))
    return bag(place / "bag", [*scans(3), wrong])


#: Bags of which something is judged -> what, whether all of it, and the exit code.
READ: dict[str, tuple[Callable[[Path], Path], bool, int]] = {
    "an MCAP file torn in its data": (torn(0.7, True), False, 4),
    "the same without metadata": (torn(0.7, False), False, 4),
    "an MCAP file torn in its index": (torn(0.999, True), True, 4),
    "an MCAP file with a corrupt chunk": (chunk_zeroed, False, 4),
    "an SQLite file with a corrupt page": (sqlite_zeroed, False, 4),
    "a ROS 1 bag with a corrupt chunk": (ros1_zeroed, True, 4),
    "metadata of another format": (metadata(lambda text: "hello: ["), True, 4),
    "empty metadata": (metadata(lambda text: ""), True, 4),
    "metadata that names a file more": (
        metadata(lambda text: text.replace("- bag.mcap", "- bag.mcap\n  - bag_1.mcap")),
        True,
        4,
    ),
    "no metadata": (without_metadata, True, 3),
}


@pytest.mark.parametrize("name", READ)
def test_what_can_be_read_is_judged_and_then_it_says_where_it_broke(tmp_path: Path, name: str) -> None:
    make, whole, code = READ[name]
    ended = replay(tmp_path / "out", make(tmp_path))
    assert ended.code == code and not ended.error
    assert ended.reconciles(len(ended.lines)) and set(ended.outcomes) == {"HOLDS"} and len(ended.lines) >= 9
    if not whole:
        assert len(ended.lines) < 3 * CLOUDS
    if code == 4:
        assert ended.summary is not None and "bag is damaged after" in ended.summary["infrastructure"]
        assert "bag is damaged after" in (ended.directory / "report.html").read_text() and "damaged" in ended.out
    assert snapshots.matches(f"bag: {name}", ended.told, tmp_path)


#: What is no bag, or none of use: words to type after it, and the exit code.
REFUSED: dict[str, tuple[Callable[[Path], Path], tuple[str, ...], int]] = {
    "a path that is not there": (lambda place: place / "nothing", (), 2),
    "a directory without a bag": (empty_directory, (), 2),
    "metadata without its file": (without_file, (), 2),
    "a text file": (lambda place: Path(shutil.copy(__file__, place / "bag")), (), 4),
    "an empty MCAP file": (empty_file("bag.mcap"), (), 4),
    "an empty SQLite file": (empty_file("bag.db3"), (), 4),
    "an empty ROS 1 file": (empty_file("empty.bag"), (), 4),
    "an MCAP file torn before its first topic": (torn(0.001, True), (), 4),
    "an SQLite file cut short": (sqlite_cut, (), 4),
    "a ROS 1 bag without its index": (ros1_cut, (), 4),
    "a bag without messages": (lambda place: write_bag(place / "bag", []), (), 2),
    "a bag without clouds": (lambda place: bag(place / "bag", [text(0, "hello"), recorded(image(0))]), (), 2),
    "a topic without messages": (two_lidars, ("--topic", "lidar=/front/points"), 2),
    "a topic of another type": (two_lidars, ("--topic", "lidar=/note"), 2),
    "a role that is none": (two_lidars, ("--topic", "lidr=/points"), 2),
    "a role without a topic": (two_lidars, ("--topic", "lidar="), 2),
    "several candidates": (two_lidars, (), 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_of_no_use_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    make, words, code = REFUSED[name]
    ended = replay(tmp_path / "out", make(tmp_path), *words)
    assert ended.code == code and ended.summary is None and not ended.lines
    assert ended.error.startswith("mt: ") and ended.error.count("\n") == 1
    assert snapshots.matches(f"bag: {name}", ended.told, tmp_path)


def test_a_frame_that_cannot_be_read_is_not_shown_and_the_bag_is_named_once(tmp_path: Path) -> None:
    path = bag(tmp_path / "bag", [message(0), message(1, point_step=3)])
    code, _, error = typed("show", "points_permuted", "--bag", path, "--frame", 1, "--out", tmp_path / "picture.png")
    assert code == 2 and error.startswith(f"mt: {path}: bundle 1 at ") and error.count(str(path)) == 1, error


def test_one_of_several_candidates_can_be_chosen(tmp_path: Path) -> None:
    assert replay(tmp_path / "out", two_lidars(tmp_path), "--topic", "lidar=/rear/points").reconciles(6)


def test_the_other_bags_are_judged_all_the_same(tmp_path: Path) -> None:
    """Also for a stack that remembers, which is given each drive once for each relation."""
    whole, broken = bag(tmp_path / "whole", scans(3)), torn(0.7, True)(tmp_path)
    ended = replay(tmp_path / "out", broken, whole, "--stack", "reference_tracker", "--limit", "100")
    episodes = {e: [line for line in ended.lines if line["pair"].startswith(f"{e}/")] for e in (0, 1)}
    assert ended.code == 4 and len(episodes[1]) == 9 and len(episodes[0]) > 9
    assert len(episodes[0]) % 3 == 0, "each relation saw all that is readable"


def test_a_transform_that_is_none_is_named(tmp_path: Path) -> None:
    ended = replay(tmp_path / "out", bad_transform(tmp_path))
    assert ended.code == 4 and not ended.error and ended.reconciles(6), "those before it"
    assert snapshots.matches("bag: a transform that is none", ended.told, tmp_path)


def test_no_snapshot_is_left_over() -> None:
    names = (*READ, *REFUSED, "a transform that is none")
    assert not snapshots.stale("bag", (f"bag: {name}" for name in names))
