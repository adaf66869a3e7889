# SPDX-License-Identifier: Apache-2.0
"""What driving models learn from, and their command line where PyTorch is not installed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recordings import Recorded, image, needs_kitti, recorded, stamp, text, write_bag
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from mt_nodes.base.errors import UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.cdr import codec
from mt_nodes.runs.models.bag_samples import BagReading, frames_of, shown_in_bag
from mt_nodes.runs.models.driving_model import weights_path
from mt_nodes.runs.models.evaluation import errors_of
from mt_nodes.runs.models.network_catalogue import NETWORKS
from mt_nodes.runs.models.preprocessing import Preparation
from mt_nodes.runs.models.recipe import Recipe, augmented, order_of, spread_of
from mt_nodes.runs.models.samples import (
    PARTS,
    Frames,
    PictureSample,
    Sample,
    load_frames,
    read_samples,
    shown_in,
    write_samples,
)
from mt_nodes.stacks.callables import load_callable
from mt_nodes.stacks.stack import load_stack

SMALL = Preparation(height_px=8, width_px=10)


def frames(*lengths: int) -> Frames:
    """Drives of so many frames; each frame's speed is its number, so that what is wanted can be told."""
    count = sum(lengths)
    said = np.column_stack([np.arange(count), np.zeros(count)]).astype(np.float64)
    return Frames(np.zeros((count, 3, 1, 1), np.uint8), said, np.repeat(np.arange(len(lengths)), lengths))


def write_folder(folder: Path, samples: list[Sample]) -> Path:
    """A folder whose pictures are as grey as their number is."""
    folder.mkdir(exist_ok=True)
    for i, sample in enumerate(samples):
        cv2.imwrite(str(folder / sample.image.name), np.full((12, 16, 3), 10 * i, np.uint8))
    write_samples(folder, samples)
    return folder


def samples(folder: Path, *drives: tuple[str, int]) -> list[Sample]:
    rows = [(name, i) for name, count in drives for i in range(count)]
    return [Sample(folder / f"{name}_{i}.png", 1.0 + i, -0.1 * i, name) for name, i in rows]


# --- parts and windows


def test_drives_are_split_in_the_order_of_time() -> None:
    part = frames(20, 9).part
    assert part.tolist() == [0] * 16 + [1] * 2 + [2] * 2 + [0] * 7 + [2] * 2


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 25), min_size=1, max_size=5),
    looks=st.integers(1, 5),
    ahead=st.integers(0, 3),
    part=st.sampled_from(("", *PARTS)),
)
def test_no_window_crosses_a_drive_or_a_part(lengths: list[int], looks: int, ahead: int, part: str) -> None:
    made = frames(*lengths)
    windows = made.windows(looks, ahead, part)
    target = windows.targets[:, 0].astype(int)
    seen = np.column_stack([windows.rows, target]) if len(windows) else np.empty((0, looks + 1), int)
    assert (np.diff(windows.rows, axis=1) == 1).all()
    assert (target == windows.rows[:, -1] + ahead).all()
    assert (made.drive[seen] == made.drive[seen[:, :1]]).all()
    if part:
        assert (made.part[seen] == PARTS.index(part)).all()
    stretches = [np.count_nonzero(made.drive == d) for d in range(len(lengths))]
    if part:
        stretches = [
            np.count_nonzero((made.drive == d) & (made.part == PARTS.index(part))) for d in range(len(lengths))
        ]
    assert len(windows) == sum(max(0, n - looks + 1 - ahead) for n in stretches)


def test_a_window_has_its_pictures_in_order() -> None:
    made = frames(6)
    made.planes[:, 0, 0, 0] = np.arange(6)
    windows = made.windows(4, 1)
    assert windows.pictures(np.array([1]))[0, :, 0, 0, 0].tolist() == [1, 2, 3, 4]
    assert windows.targets[1, 0] == 5.0


def test_other_frames_have_another_sum() -> None:
    made = frames(3)
    other = replace(made, planes=made.planes + np.uint8(1))
    assert made.crc32 == frames(3).crc32 != other.crc32
    assert replace(made, commands=made.commands + 1.0).crc32 != made.crc32


# --- recipe


@settings(max_examples=30)
@example(count=65, batch=64, epoch=0)
@given(count=st.integers(2, 300), batch=st.integers(3, 64), epoch=st.integers(0, 5))
def test_every_window_is_seen_once_an_epoch_and_no_step_is_of_one(count: int, batch: int, epoch: int) -> None:
    recipe = Recipe(batch=batch)
    steps = order_of(recipe, epoch, np.zeros(count))
    assert sorted(np.concatenate(steps).tolist()) == list(range(count))
    assert all(1 < len(step) <= batch for step in steps)
    again = order_of(recipe, epoch, np.zeros(count))
    assert all((a == b).all() for a, b in zip(steps, again, strict=True))


def test_balance_shows_bends_more_often() -> None:
    steering = np.zeros(1000)
    steering[:50] = 0.3
    bends = [np.count_nonzero(np.concatenate(order_of(Recipe(balance=b), 0, steering)) < 50) for b in (0.0, 1.0, 10.0)]
    assert bends[0] == 50 and 350 < bends[1] < 650 and bends[2] > 800


def test_mirrored_windows_steer_the_other_way_and_brightness_changes_luma_alone() -> None:
    planes = np.arange(24, dtype=np.uint8).reshape(2, 1, 3, 1, 4) * 10
    wanted = np.array([[5.0, 0.2], [6.0, -0.1]])
    draws = np.array([[0.5, 1.0], [0.4, 0.6]])
    made, aims = augmented(planes, wanted, Recipe(mirror=True, brightness=0.5), draws)
    assert aims.tolist() == [[5.0, -0.2], [6.0, -0.1]] and wanted[0, 1] == 0.2
    assert made[0].tolist() == planes[0, ..., ::-1].tolist()
    assert made[1, 0, 1:].tolist() == planes[1, 0, 1:].tolist()
    assert made[1, 0, 0, 0].tolist() == np.minimum(planes[1, 0, 0, 0] * 1.5, 255).tolist()
    same, aims = augmented(planes, wanted, Recipe(brightness=0.0), draws)
    assert (same == planes).all() and (aims == wanted).all()


def test_the_spread_is_that_of_what_is_wanted() -> None:
    mean, spread = spread_of(np.array([[2.0, 0.1], [4.0, 0.3]]), mirrored=False)
    assert mean.tolist() == pytest.approx([3.0, 0.2]) and spread.tolist() == pytest.approx([1.0, 0.1])
    mean, spread = spread_of(np.array([[2.0, 0.1], [2.0, 0.3]]), mirrored=True)
    assert mean.tolist() == pytest.approx([2.0, 0.0]) and spread.tolist() == pytest.approx([0.1, np.sqrt(0.05)])


def test_errors_are_set_beside_those_of_who_always_says_the_same() -> None:
    driven = np.array([[0.0, 0.0], [2.0, 0.2], [10.0, 0.4]])
    said = driven + np.array([[1.0, 0.0], [-1.0, 0.0], [4.0, 0.0]])
    speed, steering = errors_of(said, driven)
    assert (speed.mae, speed.bias, speed.constant_mae) == pytest.approx((2.0, 4.0 / 3.0, 10.0 / 3.0))
    assert speed.rmse == pytest.approx(np.sqrt(6.0)) and speed.p95 == pytest.approx(3.7)
    assert (steering.mae, steering.constant_mae) == pytest.approx((0.0, 0.4 / 3.0))
    with pytest.raises(ValueError, match="as many of both"):
        errors_of(said[:0], driven[:0])


# --- pictures


def test_a_picture_is_cropped_then_resized() -> None:
    rgb = np.zeros((40, 20, 3), np.uint8)
    rgb[:20], rgb[30:] = 255, 128
    cropped = Preparation(height_px=8, width_px=8, crop_top=0.5, crop_bottom=0.25).planes(rgb)
    assert cropped.shape == (3, 8, 8) and (cropped[0] == 0).all()
    assert (Preparation(height_px=8, width_px=8, crop_bottom=0.5).planes(rgb)[0] == 255).all()
    both = Preparation(height_px=8, width_px=8).planes(rgb)[0]
    assert (both[:4] == 255).all() and (both[6:] == 128).all()


@pytest.mark.parametrize("how", ["area", "lanczos"])
def test_fine_stripes_become_grey_whatever_the_way(how: str) -> None:
    """A Lanczos that looks at single pixels would let stripes of one pixel through, as other stripes."""
    rgb = np.zeros((64, 256, 3), np.uint8)
    rgb[:, ::2] = 255
    luma = Preparation(height_px=16, width_px=50, resize=how).planes(rgb)[0].astype(int)
    assert np.abs(luma - 128).max() < 40


@pytest.mark.parametrize(
    ("rgb", "yuv"), [((255, 255, 255), (255, 128, 128)), ((255, 0, 0), (76, 90, 255)), ((0, 0, 255), (29, 239, 103))]
)
def test_colours_are_those_of_bt601(rgb: tuple[int, ...], yuv: tuple[int, ...]) -> None:
    planes = SMALL.planes(np.full((8, 10, 3), rgb, np.uint8))
    assert np.abs(planes[:, 0, 0].astype(int) - yuv).max() <= 2


@pytest.mark.parametrize("shape", [(8, 10), (8, 10, 4), (0, 10, 3)])
def test_what_is_no_picture_in_colours_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected \(H, W, 3\)"):
        SMALL.planes(np.zeros(shape, np.uint8))


def test_something_of_the_picture_must_remain() -> None:
    with pytest.raises(UsageError, match="a twentieth"):
        Preparation(crop_top=0.9, crop_bottom=0.1)


# --- folders


def test_a_folder_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = samples(tmp_path, ("a", 3), ("b", 2))
    write_folder(tmp_path, written)
    assert read_samples(tmp_path) == written
    assert (tmp_path / "samples.csv").read_text().splitlines()[:2] == [
        "image,speed_mps,steering_rad,drive",
        "a_0.png,1,-0,a",
    ]
    made = frames_of([tmp_path, tmp_path], SMALL, BagReading())
    assert made.planes[:, 0, 0, 0].tolist() == [0, 10, 20, 30, 40] * 2
    assert made.drive.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3], "drives of two folders are two, equal names or not"
    assert made.commands[2].tolist() == [3.0, -0.2]


HEAD = "image,speed_mps,steering_rad,drive\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "1: got an empty file, expected also image"),
        ("image,speed,steering_rad,drive\n", "expected also speed_mps"),
        (HEAD + "a.png,fast,0,a\n", ":2: .*'fast', expected a number"),
        (HEAD + "a.png,,0,a\n", ":2: speed_mps: got nan, expected a number; leave frames out"),
        (HEAD + "a.png,inf,0,a\n", "speed_mps: got inf"),
        (HEAD + "a.png,130,0,a\n", "is it in km/h"),
        (HEAD + "a.png,10,0.1,a\na.png,10,25,a\n", ":3: steering_rad: got 25, expected at most 1.05; is it in degrees"),
        (HEAD + "a.png,10,0\n", ":2: got 3 values, expected image,"),
        (HEAD + "a.png,1,0,a\nb.png,1,0,b\nc.png,1,0,a\n", ":4: drive 'a' goes on after another"),
        (HEAD + 'a.png,1,0,"a\n', "cannot be read as a table"),
        (HEAD, "got no picture with speed and steering"),
        (HEAD + "a.png,1,0,a\n", "a.png: got no such file; .*samples.csv names it"),
        (HEAD + "samples.csv,1,0,a\n", "got no picture that can be read"),
    ],
)
def test_what_cannot_be_learned_from_is_named_with_its_line(text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(text)
    with pytest.raises(UsageError, match=told):
        load_frames([shown_in(tmp_path)], SMALL)


def test_a_table_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_bytes(b"image\xff\xfe\x00")
    with pytest.raises(UsageError, match="cannot be read as a table"):
        read_samples(tmp_path)


def test_what_is_neither_folder_nor_bag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such folder or bag"):
        frames_of([tmp_path / "gone"], SMALL, BagReading())
    with pytest.raises(UsageError, match=r"got no samples\.csv"):
        frames_of([tmp_path], SMALL, BagReading())


# --- bags


def twist(i: float, speed: float, yaw_rate: float, topic: str = "/twist") -> Recorded:
    types = codec.typestore().types
    vector = types["geometry_msgs/msg/Vector3"]
    parts = {"linear": vector(x=speed, y=0.0, z=0.0), "angular": vector(x=0.0, y=0.0, z=yaw_rate)}
    name = "geometry_msgs/msg/TwistStamped"
    message = types[name](
        header=codec.header_of("base_link", stamp(i)), twist=types["geometry_msgs/msg/Twist"](**parts)
    )
    return Recorded(topic, name, stamp(i), codec.encode(name, message))


def bag_of(path: Path, *rows: Recorded) -> Path:
    return write_bag(path, sorted(rows, key=lambda row: row.received_ns))


def shown(bag: Path, **reading: Any) -> list[PictureSample]:
    return list(shown_in_bag(bag, BagReading(**reading)))


def test_pictures_of_a_bag_get_the_nearest_labels(tmp_path: Path) -> None:
    pictures = [recorded(image(i)) for i in range(5)]
    told = [twist(i + 0.3, 4.0 + i, 0.4) for i in (0, 1, 3, 4)]
    rows = shown(bag_of(tmp_path / "bag", *pictures, *told))
    assert [row.speed_mps for row in rows] == [4.0, 5.0, 7.0, 8.0], "of picture 2 nothing is near"
    assert [row.drive for row in rows] == ["bag/0", "bag/0", "bag/1", "bag/1"], "a drive ends where a picture lacks"
    assert rows[0].steering_rad == pytest.approx(np.arctan(2.7 * 0.4 / 4.0)), "the single-track model"
    rgb = np.asarray(image(0).pixels)[..., ::-1]
    assert (rows[0].rgb == rgb).all()
    assert len(shown(tmp_path / "bag", tolerance_s=0.08)) == 5
    assert not shown(tmp_path / "bag", tolerance_s=0.02)


def test_a_gap_begins_another_drive_and_who_stands_is_left_out(tmp_path: Path) -> None:
    at = [0, 1, 20, 21, 22]
    told = [twist(i, 0.0 if i == 21 else 5.0, 0.0) for i in at]
    rows = shown(bag_of(tmp_path / "bag", *(recorded(image(i)) for i in at), *told))
    assert [row.drive for row in rows] == ["bag/0", "bag/0", "bag/1", "bag/2"]


def test_fields_and_factors_are_taken_as_they_are_named(tmp_path: Path) -> None:
    rows = [recorded(image(i)) for i in range(2)] + [twist(i, 36.0, -0.1) for i in range(2)]
    bag = bag_of(tmp_path / "bag", *rows)
    made = shown(bag, speed="/twist:twist.linear.x*0.277778", steering="/twist:twist.angular.z*-1")
    assert made[0].speed_mps == pytest.approx(10.0, abs=1e-3) and made[0].steering_rad == pytest.approx(0.1)
    with pytest.raises(UsageError, match=r"expected at most 1\.05; is it in degrees"):
        shown(bag, steering="/twist:twist.linear.x")


@pytest.mark.parametrize(
    ("reading", "told"),
    [
        ({}, "several topics tell it: /twist, /twist2; choose with --speed TOPIC"),
        ({"speed": "/gone"}, "--speed /gone: .* has no topic /gone; it has /camera/image"),
        ({"speed": "/camera/image"}, "it is not known where that is; type --speed /camera/image:FIELD"),
        ({"speed": "/twist:twist.linear.w"}, "path twist.linear.w leads nowhere"),
        ({"speed": "/twist:twist.linear"}, "got no number"),
        ({"speed": "/twist:twist.linear.x*fast"}, "got factor 'fast', expected a number"),
        ({"speed": "/twist:1x"}, "expected a path of fields"),
        ({"speed": "/twist", "topics": {"camera": "/other"}}, "has no such topic"),
    ],
)
def test_labels_that_cannot_be_found_are_named(reading: dict[str, Any], told: str, tmp_path: Path) -> None:
    rows = [recorded(image(0)), twist(0, 1.0, 0.0), twist(0, 1.0, 0.0, "/twist2")]
    with pytest.raises(UsageError, match=told):
        shown(bag_of(tmp_path / "bag", *rows), **reading)


def test_a_bag_without_pictures_is_refused_before_labels_are_looked_for(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="camera"):
        shown(bag_of(tmp_path / "blind", text(0, "no picture")))


def test_steering_is_looked_for_where_the_speed_is(tmp_path: Path) -> None:
    rows = [recorded(image(0)), twist(0, 2.0, 0.0), twist(0, 1.0, 0.5, "/twist2")]
    (row,) = shown(bag_of(tmp_path / "bag", *rows), speed="/twist2")
    assert (row.speed_mps, row.steering_rad) == pytest.approx((1.0, np.arctan(2.7 * 0.5)))


ACKERMANN = {
    "ackermann_msgs/msg/AckermannDrive": "float32 steering_angle\nfloat32 speed",
    "ackermann_msgs/msg/AckermannDriveStamped": "std_msgs/Header header\nackermann_msgs/AckermannDrive drive",
}


def test_types_that_only_the_bag_defines_are_read(tmp_path: Path) -> None:
    types = get_typestore(Stores.ROS2_JAZZY)
    for name, fields in ACKERMANN.items():
        types.register(get_types_from_msg(fields, name))
    drive, stamped = ACKERMANN
    with Writer(tmp_path / "bag", version=8, storage_plugin=StoragePlugin.MCAP) as bag:
        pictures = bag.add_connection("/camera/image", codec.IMAGE, typestore=codec.typestore())
        commands = bag.add_connection("/command", stamped, typestore=types)
        for i in range(2):
            said = types.types[drive](steering_angle=-0.25, speed=4.0 + i)
            message = types.types[stamped](header=codec.header_of("base_link", stamp(i)), drive=said)
            bag.write(pictures, stamp(i), recorded(image(i)).cdr)
            bag.write(commands, stamp(i), bytes(types.serialize_cdr(message, stamped)))
    assert [(row.speed_mps, row.steering_rad) for row in shown(tmp_path / "bag")] == [(4.0, -0.25), (5.0, -0.25)]


@needs_kitti
def test_the_recorded_drive_has_no_labels_and_says_so() -> None:
    from recordings import KITTI

    with pytest.raises(UsageError, match="no topic of a known type tells it; type --speed TOPIC:FIELD"):
        shown(KITTI)


# --- stacks and the command line without PyTorch


@pytest.fixture
def without_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "torch", None)
    yield


def test_every_network_has_a_stack_that_answers_a_picture_with_a_command() -> None:
    for name, network in NETWORKS.items():
        if name != "pilotnet_published":  # its weights go with the stack of pilotnet
            stack = load_stack(name)
            assert stack.callable == "mt_nodes.runs.models.driving_model:DrivingModel" and stack.answers == ("control",)
            assert stack.leading_input == "camera" and stack.stateless == (network.frames == 1)
            assert f"MT_WEIGHTS_{name.upper()}" in stack.params["weights"]


@pytest.mark.usefixtures("without_torch")
@pytest.mark.parametrize("words", [["train", "DATA", "--out", "x"], ["evaluate", "w.pt", "DATA"]])
def test_without_torch_it_says_what_to_install(words: list[str], capsys: Any, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "data", samples(tmp_path / "data", ("a", 2)))
    assert main(["models", *(str(folder) if word == "DATA" else word for word in words)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "mt: import of torch halted; None in sys.modules; trained models need the extra: pip install 'mt_nodes[models]'"
    ]


@pytest.mark.usefixtures("without_torch")
def test_without_torch_a_stack_says_what_to_install() -> None:
    with pytest.raises(UsageError, match=r"pip install 'mt_nodes\[models\]'"):
        load_callable(load_stack("vgg16"))


@pytest.mark.usefixtures("without_torch")
def test_networks_are_listed_without_torch(capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine.pt").touch()
    monkeypatch.setenv("MT_WEIGHTS_EPOCH", str(tmp_path / "mine.pt"))
    monkeypatch.delenv("MT_WEIGHTS_VGG16", raising=False)
    assert main(["models", "list", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == set(NETWORKS) and rows["cnn3d"]["features"] == 1728
    assert rows["epoch"]["weights"] == str(tmp_path / "mine.pt") and rows["vgg16"]["weights"] == ""
    assert main(["models", "list"]) == 0
    assert "resnet101" in capsys.readouterr().out


def test_weights_are_named_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mine.pt").touch()
    monkeypatch.delenv("MT_W", raising=False)
    with pytest.raises(UsageError, match=r"MT_W is not set; type `mt models train .*`export MT_W="):
        weights_path("${MT_W}")
    with pytest.raises(UsageError, match="no weight 'gone'"):
        weights_path("${MT_W:-gone}")
    monkeypatch.setenv("MT_W", str(tmp_path / "mine.pt"))
    assert weights_path("${MT_W}") == weights_path("${MT_W:-gone}") == tmp_path / "mine.pt"
    with pytest.raises(UsageError, match=r"no file gone\.pt"):
        weights_path("gone.pt")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["train", "data"], "--out: got none"),
        (["train", "--out", "x"], "got no data; type `mt models train DATA"),
        (["train", "data", "--out", "x", "--network", "pilotnett"], "did you mean 'pilotnet'?"),
        (["train", "data", "--out", "x", "--epochs", "0"], "epochs: got 0, expected 1 to 10000"),
        (["train", "data", "--out", "x", "--crop-top", "2"], "crop_top: got 2, expected 0 to 0.9"),
        (["train", "data", "--out", "x", "--loss", "l3"], "expected one of l1, mse"),
        (["train", "data", "--out", "x", "--tolerance-s", "0"], "--tolerance-s: got 0, expected more than 0"),
        (["train", "data", "--out", "x"], "data: no such folder or bag"),
        (["train", "--resume", "gone"], "--resume gone: no training to go on with"),
        (["train", "data", "--resume", "gone", "--rate", "0.1"], "got DATA, --rate, too; the training goes on"),
    ],
)
def test_what_was_typed_wrongly_is_told(
    words: list[str], told: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "torch", type(sys)("torch"))  # is there, and never asked
    monkeypatch.chdir(tmp_path)
    assert main(["models", *words]) == 2
    assert told in capsys.readouterr().err
