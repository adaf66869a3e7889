# SPDX-License-Identifier: Apache-2.0
"""Several LiDARs and cameras at once: which topics play which part, what a bundle holds, and whole runs in process."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recordings import Recorded, camera_info, cloud, image, recorded, stamp, text, write_bag
from several_sensors import CAMERAS, INFOS, INPUTS, LIDARS, bag, drive, fusion
from started_arms import started_arm

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.arguments import role_topics
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.bags.reader import BagReader, Topic
from mt_nodes.data.bags.topic_roles import choose
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.arm import UnansweredInput
from mt_nodes.engine.bag_mutation import mutate_bag
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.engine.evidence import write_evidence
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations.mutations.joint.every_sensor import refuse_out_of_sync
from mt_nodes.relations.mutations.lidar.points_permuted import PointsPermuted
from mt_nodes.relations.mutations.stream.frame_mutations import FramesFrozen
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import JOINT_SHAM
from mt_nodes.runs.replay.execute import execute, in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import Stack, load_stack
from mt_nodes.stacks.topic_sync import MAX_WAITING, Joiner

pytestmark = pytest.mark.usefixtures("stacks_here")

TOPICS = {
    **{topic: Topic(codec.POINT_CLOUD, 3, ()) for topic in LIDARS},
    CAMERAS[0]: Topic(codec.IMAGE, 3, ()),
    CAMERAS[1]: Topic(codec.COMPRESSED_IMAGE, 3, ()),
    **{topic: Topic(codec.CAMERA_INFO, 3, ()) for topic in INFOS},
}
WANTED = {role: tuple(topics) for role, topics in INPUTS.items()}


@pytest.fixture(autouse=True)
def _own_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bag(tmp_path_factory.mktemp("bag"))


# --- which topics play which part


@pytest.mark.parametrize(
    "given_", [{}, {"lidar": "/left/points,/right/points"}, {"lidar": "/right/points, /left/points"}]
)
def test_each_role_takes_as_many_topics_as_the_stack(given_: dict[str, str]) -> None:
    chosen = choose(TOPICS, given_, WANTED, "bag")
    expected = tuple(t.strip() for t in given_["lidar"].split(",")) if given_ else LIDARS
    assert chosen == {"lidar": expected, "camera": CAMERAS, "camera_info": INFOS}


def test_a_role_may_be_named_once_for_each_topic() -> None:
    assert role_topics(["lidar=/a", "camera=/c", "lidar=/b"]) == {"lidar": "/a,/b", "camera": "/c"}


@pytest.mark.parametrize(
    ("given_", "wanted", "says"),
    [
        (
            {},
            {"lidar": ("/a", "/b")},
            r"takes 2 topics as lidar \(/a, /b\), got 0 .*--topic lidar=TOPIC,TOPIC out of /left",
        ),
        ({"lidar": "/left/points"}, {"lidar": LIDARS}, r"takes 2 topics as lidar .*, got 1 \(/left/points\)"),
        ({"lidar": ",".join(LIDARS)}, {"lidar": ("/a",)}, r"takes 1 topics as lidar \(/a\), got 2 "),
        ({"lidar": "/left/points,/left/points"}, {"lidar": LIDARS}, "expected one topic or several different ones"),
        ({"lidar": ","}, {"lidar": LIDARS}, "expected one topic or several different ones"),
        ({"lidar": "/left/points,/front/image"}, {"lidar": LIDARS}, "got type sensor_msgs/msg/Image, expected sensor"),
        ({}, {"lidar": ("/a",)}, "several topics can be the lidar"),
        ({"camera": "/front/image"}, {"camera": ("/c",), "camera_info": INFOS}, r"takes 2 .* as camera_info .*got 1"),
    ],
)
def test_what_is_which_is_never_guessed(given_: dict[str, str], wanted: Mapping[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        choose(TOPICS, given_, wanted, "bag")


def test_an_info_is_found_beside_its_camera_or_by_its_frame(tmp_path: Path) -> None:
    infos = [
        replace(camera_info(0, f"/{name}/camera_info"), frame_id=frame) for name, frame in (("x", "a"), ("y", "b"))
    ]
    images = [replace(image(0, f"/{name}/image"), frame_id=frame) for name, frame in (("front", "b"), ("x", "c"))]
    source = BagSource(
        write_bag(tmp_path / "bag", map(recorded, (*infos, *images))),
        {"camera": "/front/image,/x/image"},
        require={"camera": ("/front/image", "/x/image"), "camera_info": ("/1", "/2")},
    )
    assert source.roles["camera_info"] == ("/y/camera_info", "/x/camera_info"), "by frame, and beside it"


# --- what a bundle holds


def bundles(path: Path, takes: Mapping[str, Any], **rest: Any) -> list[Bundle]:
    with BagSource(path, require=takes, **rest) as source:
        return list(source)


def test_a_bundle_holds_one_message_of_every_topic(several: Path) -> None:
    found = bundles(several, WANTED)
    assert [b.stamp_ns for b in found] == [stamp(i) for i in range(3)]
    for b in found:
        assert [m.topic for m in b.messages] == [*LIDARS, *CAMERAS, *INFOS] and b.extra_clouds == () and b.loose == ()
    sent = [(w.topic, w.cdr) for b in found for w in b.wires]
    assert sent == [(row.topic, row.cdr) for row in drive(3)], "all of it passes as it was recorded"


def test_the_first_of_the_leading_role_leads(several: Path) -> None:
    with BagSource(several, {"lidar": "/right/points,/left/points"}, require=WANTED) as source:
        assert source.lead == "/right/points"


@pytest.mark.parametrize(
    ("takes", "decoded", "beside"),
    [
        ({"lidar": ("/left/points",)}, ["/left/points"], ()),
        ({"camera": ("/front/image",)}, ["/front/image", "/front/camera_info"], LIDARS),
        ({"lidar": LIDARS, "camera": CAMERAS}, [*LIDARS, *CAMERAS, *INFOS], ()),
    ],
    ids=["a LiDAR", "a camera", "all"],
)
def test_what_a_stack_takes_and_its_cameras_need_is_decoded(
    several: Path, takes: dict[str, Any], decoded: list[str], beside: tuple[str, ...]
) -> None:
    topics = {role: ",".join(names) for role, names in takes.items()}
    found = bundles(several, takes, topics=topics)
    first = found[0]
    assert [m.topic for m in first.messages] == decoded
    assert tuple(cloud.topic for cloud in first.extra_clouds) == beside
    assert {cloud.topic for cloud in first.known_clouds} == set(beside) | {t for t in decoded if t in LIDARS}
    assert sum(len(b.wires) for b in found) == len(drive(3)), "what is not taken goes out to whoever listens"


def test_a_bundle_says_how_far_off_each_message_is(tmp_path: Path) -> None:
    first = bundles(bag(tmp_path, late=0.3), WANTED)[0]
    assert first.skew_ns == {**dict.fromkeys(LIDARS, 0), **dict.fromkeys(CAMERAS, 30_000_000)}
    refuse_out_of_sync(first)
    with pytest.raises(
        NotApplicable, match=r"/left/points and /front/image of bundle 0 are 30\.0 ms apart, .*at most 20 ms"
    ):
        refuse_out_of_sync(first, 20_000_000)
    beside = replace(first, clouds=(), camera_infos=(), extra_clouds=first.clouds)
    with pytest.raises(NotApplicable, match="ms apart"):
        refuse_out_of_sync(beside, 20_000_000)


def test_frames_of_no_instant_are_never_passed_in_silence(tmp_path: Path) -> None:
    rows = [*(recorded(cloud(i)) for i in range(3)), *(recorded(image(i / 2)) for i in range(5))]
    path = write_bag(tmp_path / "bag", sorted(rows, key=lambda row: row.received_ns))
    found = bundles(path, {"lidar": ("/points",), "camera": ("/camera/image",)})
    assert [[w.stamp_ns for w in b.loose] for b in found] == [[stamp(0.5)], [stamp(1.5)], []]
    dark = MutationPipeline([FramesFrozen(every=2, of="camera")], 1, "r")
    with pytest.raises(
        NotApplicable, match=r"/camera/image: a frame \+50 ms off the leading sensor's .* would pass as"
    ):
        dark.derive(found[0])
    assert MutationPipeline([FramesFrozen(every=2, of="lidar")], 1, "r").derive(found[0]).broken is None
    assert MutationPipeline([PointsPermuted()], 1, "r").derive(found[0]).broken is None


# --- messages of one instant, put together


class Stamped:
    def __init__(self, stamp_ns: int, name: str = "") -> None:
        self.stamp_ns, self.name = stamp_ns, name


def joined(rows: list[tuple[str, int]], within_ns: int = 2) -> list[dict[str, int]]:
    joiner = Joiner[Stamped](["a", "b"], within_ns)
    found = (joiner.take(topic, Stamped(stamp_ns)) for topic, stamp_ns in rows)
    return [{topic: message.stamp_ns for topic, message in instant.items()} for instant in found if instant]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([("a", 10), ("b", 11)], [{"a": 10, "b": 11}]),
        ([("b", 9), ("a", 10)], [{"a": 10, "b": 9}]),
        ([("a", 10), ("b", 13)], []),
        ([("a", 10), ("a", 20), ("b", 20), ("b", 30)], [{"a": 20, "b": 20}]),
        ([("b", 10), ("b", 11), ("a", 11), ("a", 12)], [{"a": 11, "b": 11}]),
        ([("a", 10), ("b", 10), ("a", 10), ("b", 10)], [{"a": 10, "b": 10}] * 2),
        ([("b", 90), ("a", 90), ("b", 50), ("b", 10), ("a", 10)], [{"a": 90, "b": 90}, {"a": 10, "b": 10}]),
    ],
    ids=["either", "order", "too far", "missed", "each once", "follow-ups of one stamp", "an episode anew"],
)
def test_messages_are_joined_by_stamp(rows: list[tuple[str, int]], expected: list[dict[str, int]]) -> None:
    assert joined(rows) == expected


def test_of_two_with_one_stamp_the_later_counts() -> None:
    joiner = Joiner[Stamped](["a", "b"], 0)
    assert joiner.take("a", Stamped(5, "old")) is None and joiner.take("a", Stamped(5, "new")) is None
    instant = joiner.take("b", Stamped(5))
    assert instant is not None and instant["a"].name == "new"


def test_time_that_goes_back_is_another_episode() -> None:
    joiner = Joiner[Stamped](["a", "b"], 0)
    assert joiner.take("a", Stamped(100, "of the first")) is None
    assert joiner.take("a", Stamped(10)) is None and joiner.take("b", Stamped(10)) is not None
    assert joiner.take("b", Stamped(100)) is None, "what it would be joined with is of another episode"
    assert joiner.take("a", Stamped(100)) is not None


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30), st.randoms(use_true_random=False))
@settings(max_examples=50)
def test_in_whatever_order_they_come_every_instant_is_made_once(skews: list[int], random: Any) -> None:
    instants = [[("a", 100 * i), ("b", 100 * i + skew), ("c", 100 * i - skew)] for i, skew in enumerate(skews)]
    for rows in instants:
        random.shuffle(rows)
    joiner = Joiner[Stamped](["a", "b", "c"], 3)
    made = [joiner.take(topic, Stamped(stamp_ns)) for rows in instants for topic, stamp_ns in rows]
    assert [m["a"].stamp_ns for m in made if m] == [100 * i for i in range(len(skews))]


def test_what_waits_is_bounded() -> None:
    joiner = Joiner[Stamped](["a", "b"], 0)
    for i in range(1000):
        joiner.take("b", Stamped(i))
    assert [joiner.take("a", Stamped(i)) is not None for i in (999 - MAX_WAITING, 1000 - MAX_WAITING)] == [False, True]


# --- a callable that takes several inputs


def arm(place: Path, **rows: Any) -> tuple[CallableArm, list[Bundle]]:
    stack = load_stack(fusion(place, **rows))
    names = [t for topics in stack.topics.values() for t in topics]
    return started_arm("source", stack, dict(zip(names, names, strict=True))), bundles(bag(place, 2), stack.topics)


def test_a_callable_is_given_all_of_an_instant_by_role(tmp_path: Path) -> None:
    made, found = arm(tmp_path)
    for bundle in found:
        said = made.wait(made.send(bundle, frozenset())).output.detections
        assert said is not None and len(said) == 4 and said.frame_id == "base_link"
        means = np.array([[1 - c.points["y"].mean(), 2 + c.points["x"].mean()] for c in bundle.clouds])
        np.testing.assert_allclose(said.center_m[:2, :2], means, atol=1e-5)
        assert said.center_m[2, 1] == pytest.approx(bundle.images[0].pixels.mean() / 100)


def test_late_pieces_belong_to_their_input(tmp_path: Path) -> None:
    made, [bundle, _] = arm(tmp_path)
    whole = made.wait(made.send(bundle, frozenset())).output.detections
    rest, late = replace(bundle, images=()), replace(bundle, clouds=(), camera_infos=())
    parts = made.wait(made.send(rest, frozenset(), late=(late,))).output.detections
    assert whole is not None and parts is not None and np.array_equal(whole.center_m, parts.center_m)


def without(bundle: Bundle, topic: str) -> Bundle:
    kept = {name: tuple(m for m in getattr(bundle, name) if m.topic != topic) for name in ("clouds", "images")}
    return replace(bundle, **kept)


def skewed(bundle: Bundle, by_ns: int) -> Bundle:
    return replace(bundle, images=tuple(replace(m, stamp_ns=m.stamp_ns + by_ns) for m in bundle.images))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda b: without(b, "/left/points"), "no message of /left/points in this input, which stack 'fusion' needs"),
        (lambda b: without(b, "/rear/image"), "no message of /rear/image in this input"),
        (
            lambda b: skewed(b, 40_000_000),
            r"/front/image is \+0\.040 s off /left/points, expected within 0\.02 s \(sync_s",
        ),
        (lambda b: skewed(b, -21_000_000), r"/front/image is -0\.021 s off /left/points"),
    ],
    ids=["no lead", "no image", "late", "early"],
)
def test_an_input_that_lacks_something_is_not_asked_about(tmp_path: Path, change: Any, says: str) -> None:
    made, [bundle, _] = arm(tmp_path)
    ticket = made.send(change(bundle), frozenset())
    assert isinstance(ticket, UnansweredInput)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(made.wait(ticket).reason)


# --- whole runs in process


def ran(place: Path, path: Path, relations: tuple[str, ...], stack: str, **asked: Any) -> tuple[dict[str, Any], Any]:
    request = ReplayRequest((str(path),), relations, stack, transport="inprocess", **asked)
    out = place / "out"
    out.mkdir()
    run = Run.make(request, out)
    run.save()
    summary = execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    lines = (line for line in read_journal(out / "result.jsonl") if line["type"] == "verdict")
    return summary, [Verdict.from_plain(line) for line in lines]


def relation(place: Path, name: str, mutate: Any, requires: tuple[str, ...] = ("lidar", "camera")) -> str:
    about = {"id": name, "kind": "expected", "because": "x", "requires": requires, "check": "obstacle_count_not_less"}
    (place / f"{name}.yaml").write_text(json.dumps({**about, "mutate": [mutate]}))
    return str(place / f"{name}.yaml")


def test_two_lidars_and_two_cameras_are_replayed_and_judged(tmp_path: Path, several: Path) -> None:
    frozen = relation(tmp_path, "frozen", {"frames_frozen": {"every": 2, "of": "camera"}})
    swapped = {"lidar": "/right/points,/left/points"}
    summary, lines = ran(tmp_path, several, (frozen,), fusion(tmp_path), topics=swapped)
    outcomes = {(line.pair.relation, line.judgement.outcome.value) for line in lines}
    assert not {o for _, o in outcomes} & {"ERROR", "INVALID", "SKIPPED"}, summary
    assert {relation for relation, _ in outcomes} == {"frozen", "identity", JOINT_SHAM}
    record = read_result(tmp_path / "out" / "run.json")
    assert record["topics"] == {
        "several": {"lidar": [*reversed(LIDARS)], "camera": [*CAMERAS], "camera_info": [*INFOS]}
    }


BROKEN = {
    "unknown encoding": (codec.IMAGE, {"encoding": "nv12"}, "got image encoding 'nv12', expected one such as bgr8"),
    "no encoding of light": (
        codec.IMAGE,
        {"encoding": "32FC1", "width": 2, "step": 24},
        "'32FC1', expected one of light",
    ),
    "wrong step": (codec.IMAGE, {"step": 9}, "got rows of 9 bytes, expected at least 24"),
    "short data": (codec.IMAGE, {"height": 7}, "got 144 bytes of data, expected 7 rows of 24 = 168"),
    "cut JPEG": (codec.COMPRESSED_IMAGE, None, "bytes of JPEG that are cut off or damaged"),
    "no JPEG": (codec.COMPRESSED_IMAGE, b"\0\0\0\0", "data that begins with .*, expected JPEG or PNG"),
}


def broken(row: Recorded, change: Any) -> Recorded:
    message = codec.decode(row.type, row.cdr)
    if isinstance(change, dict):
        for name, value in change.items():
            setattr(message, name, value)
    else:
        message.data = message.data[:-20] if change is None else np.frombuffer(change, np.uint8)
    return row._replace(cdr=codec.encode(row.type, message))


@pytest.mark.parametrize("case", BROKEN)
def test_an_image_that_cannot_be_understood_ends_its_frame_with_the_reason(case: str, tmp_path: Path) -> None:
    kind, change, says = BROKEN[case]
    rows = drive(3)
    place = next(i for i, row in enumerate(rows) if row.type == kind and row.received_ns == stamp(1))
    rows[place] = broken(rows[place], change)
    path = write_bag(tmp_path / "several", rows)
    frozen = relation(tmp_path, "frozen", {"frames_frozen": {"every": 2, "of": "camera"}})
    _, lines = ran(tmp_path, path, (frozen,), fusion(tmp_path))
    for line in lines:
        assert (line.judgement.outcome.value == "ERROR") == (line.pair.bundle == 1), line
    [reason] = {line.judgement.reason for line in lines if line.pair.bundle == 1}
    topic = rows[place].topic
    with pytest.raises(AssertionError, match=f"bundle 1 at {stamp(1)} ns cannot be read: {topic}: .*{says}"):
        raise AssertionError(reason)


@pytest.mark.parametrize("late", [0.3, 0.7])
def test_images_out_of_sync_end_each_frame_with_the_reason(late: float, tmp_path: Path) -> None:
    frozen = relation(tmp_path, "frozen", {"frames_frozen": {"every": 2, "of": "camera"}})
    _, lines = ran(tmp_path, bag(tmp_path, late=late), (frozen,), fusion(tmp_path))
    reasons = {line.judgement.reason for line in lines if line.judgement.outcome.value == "SKIPPED"}
    assert len(lines) == 9 and {line.judgement.outcome.value for line in lines} <= {"SKIPPED", "NOT_APPLICABLE"}
    # Near enough to join, not near enough for the stack; or nearer to the next instant than to its own.
    assert any("s off /left/points, expected within 0.02 s" in reason for reason in reasons)


def test_a_sensor_that_a_stack_takes_may_be_missing_from_a_bundle(tmp_path: Path) -> None:
    rows = [row for row in drive(3) if not (row.topic == CAMERAS[0] and row.received_ns == stamp(1))]
    frozen = relation(tmp_path, "frozen", {"frames_frozen": {"every": 2, "of": "camera"}})
    _, lines = ran(tmp_path, write_bag(tmp_path / "several", rows), (frozen,), fusion(tmp_path))
    of_one = [line for line in lines if line.pair.bundle == 1]
    assert any("no message of /front/image in this input" in line.judgement.reason for line in of_one)
    assert all(line.judgement.outcome.value in ("SKIPPED", "NOT_APPLICABLE") for line in of_one)


def test_mutate_changes_every_lidar_of_a_bag_and_copies_the_rest(tmp_path: Path, several: Path) -> None:
    out = tmp_path / "permuted"
    done = mutate_bag(several, [PointsPermuted()], out, topics={"lidar": ",".join(LIDARS)})
    assert (done.bundles, done.mutated) == (3, 3)
    with BagSource(out, {"lidar": ",".join(LIDARS)}, require=("lidar",)) as source:
        after = [wire for bundle in source for wire in bundle.wires]
    for was, now in itertools.zip_longest(drive(3), after):
        assert now is not None and was.topic == now.topic
        assert (was.cdr == now.cdr) == (was.topic not in LIDARS), was.topic


def test_a_lidar_stack_does_not_pay_for_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt_nodes.data.bags.bundles.DECODERS", {codec.POINT_CLOUD: ("clouds", codec.cloud_from_msg)})
    path = write_bag(tmp_path / "bag", [recorded(cloud(0)), recorded(image(0)), recorded(camera_info(0))])
    [found] = bundles(path, {"lidar": ("/points",)})
    assert [m.topic for m in found.messages] == ["/points"] and len(found.wires) == 3


def test_evidence_shows_what_the_stack_did_not_take_as_well(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", [recorded(cloud(0)), recorded(image(0)), text(0.1, "no sensor")])
    [found] = bundles(path, {"lidar": ("/points",)})
    write_evidence(tmp_path / "pair.mcap", Pair(0, 0, "r"), found, found, {})
    with BagReader(tmp_path / "pair.mcap") as reader:
        shown = {f"/mt/{arm}{topic}" for arm in ("source", "followup") for topic in ("/points", "/camera/image")}
        assert set(reader.topics) == {*shown, "/mt/intensities", "/mt/pair", "/mt/transforms", "/tf_static"}


def test_a_bundle_that_is_joined_keeps_all(several: Path) -> None:
    first = bundles(several, WANTED)[0]
    halves = replace(first, images=(), camera_infos=()), replace(first, clouds=())
    assert halves[0].joined_with([halves[1]]).messages == first.messages


def test_an_empty_bundle_is_in_sync() -> None:
    refuse_out_of_sync(Bundle(0, 0, 5, transforms=TransformTree()))
    assert Stack(inputs={"lidar": "/a"}).joins is False and Stack(inputs={"lidar": ("/a", "/b")}).joins is True


def test_text_is_no_sensor(tmp_path: Path) -> None:
    path = write_bag(tmp_path / "bag", [recorded(cloud(0)), text(0.1, "hello")])
    [found] = bundles(path, {"lidar": ("/points",)})
    assert found.loose == () and isinstance(found.clouds[0], Cloud)


# --- what mutations of images and clouds refuse


def scene() -> Bundle:
    """A camera and a cloud that is looked at only, of one instant, with all that fog needs."""
    pixels = np.random.default_rng(1).integers(0, 256, (48, 64, 3), dtype=np.uint8)
    points = np.random.default_rng(2).uniform((4, -6, -1.5), (40, 6, 1.0), (3000, 3)).astype(np.float32)
    cloud_ = Cloud("/points", stamp(0), "lidar", points.view([(axis, "<f4") for axis in "xyz"]).reshape(-1))
    k = np.array([[60.0, 0, 32], [0, 60, 24], [0, 0, 1]])
    info = replace(camera_info(0), width=64, height=48, k=k, p=np.hstack([k, np.zeros((3, 1))]))
    optical = Transform("base_link", "camera", pose_matrix((0.6, 0.0, 1.5), (-0.5, 0.5, -0.5, 0.5)))
    known = TransformTree([optical, Transform("base_link", "lidar", pose_matrix((0.5, 0.0, 1.7), (0, 0, 0, 1)))])
    front = replace(image(0), pixels=pixels)
    return Bundle(0, 0, stamp(0), (), (front,), (info,), known, extra_clouds=(cloud_,))


def uncalibrated(bundle: Bundle) -> Bundle:
    return replace(bundle, camera_infos=(replace(bundle.camera_infos[0], k=np.zeros((3, 3))),))


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        (lambda b: replace(b, camera_infos=()), "/camera/image: no CameraInfo of frame 'camera'; got none"),
        (uncalibrated, "/camera/camera_info: got focal lengths 0 and 0, expected above 0"),
        (lambda b: replace(b, extra_clouds=()), "/camera/image: how far away what it shows is, no cloud tells"),
        (
            lambda b: replace(b, extra_clouds=(replace(b.extra_clouds[0], stamp_ns=stamp(0.7)),)),
            "70.0 ms apart, expected at most 50",
        ),
        (lambda b: replace(b, images=(replace(b.images[0], encoding="32SC3"),)), "'32SC3', expected one of light"),
        (lambda b: replace(b, transforms=TransformTree()), "no transform from frame 'lidar' to 'camera'"),
    ],
    ids=["no CameraInfo", "zero CameraInfo", "no depth", "out of sync", "no picture", "no transform"],
)
def test_fog_says_what_of_a_scene_it_lacks(spoilt: Any, says: str) -> None:
    fog = plugins.find("mutations", "fog", "test")()
    assert MutationPipeline([fog], 0, "r").derive(scene()).broken is None
    with pytest.raises(NotApplicable) as refused:
        MutationPipeline([fog], 0, "r").derive(spoilt(scene()))
    assert says in str(refused.value)


def test_a_cloud_that_is_looked_at_is_no_part_of_a_follow_up() -> None:
    fog, source = plugins.find("mutations", "fog", "test")(), scene()
    [(_, made)] = MutationPipeline([fog], 0, "r").derive(source).followup.bundles
    assert made.changed_topics(source) == {"/camera/image"} and made.extra_clouds[0] is source.extra_clouds[0]
