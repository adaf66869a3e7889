# SPDX-License-Identifier: Apache-2.0
"""``import mt_nodes as mt``: replays of callables, their results, frames, mutations and verdicts of single frames."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import cloud, drive, recorded, stamp, write_bag

import mt_nodes as mt
from mt_nodes.base.errors import ExitCode
from mt_nodes.cli.main import main
from mt_nodes.data.messages import Image
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import read_ledger

FRAMES = 21  # a relation needs 20
POINTS = 50
NOISE, OTHER = "noise_outside_roi_1000", "noise_outside_roi_100"
IN_CAR = {"points_frame": "base_link"}
BOXES = [[10.0, 0.0, 0.8, 4.0, 2.0, 1.6, 0.0], [20.0, 3.0, 0.8, 4.0, 2.0, 1.6, 0.0]]


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    others = [row for row in drive(FRAMES) if "camera" not in row.topic]
    rows = sorted([*others, *(recorded(picture(i)) for i in range(FRAMES))], key=lambda row: row.received_ns)
    return write_bag(tmp_path_factory.mktemp("recorded") / "bag", rows)


def picture(i: int) -> Image:
    pixels = np.broadcast_to(np.linspace(40, 200, 160 * 3).reshape(160, 3), (120, 160, 3)).astype(np.uint8)
    return Image("/camera/image", stamp(i), "camera", np.ascontiguousarray(pixels), "rgb8")


def blinded_by(most: int) -> Callable[..., Any]:
    """A closure: it misses the second car among more points than that."""
    return lambda points: BOXES if len(points) <= most else BOXES[:1]


@pytest.fixture(scope="module")
def honest(bag: Path, tmp_path_factory: pytest.TempPathFactory) -> mt.Result:
    return mt.replay(bag, lambda points: BOXES, NOISE, settings=IN_CAR, out=tmp_path_factory.mktemp("honest"))


@pytest.fixture(scope="module")
def faulty(bag: Path, tmp_path_factory: pytest.TempPathFactory) -> mt.Result:
    out = tmp_path_factory.mktemp("faulty")
    return mt.replay(str(bag), blinded_by(POINTS), [NOISE], settings=IN_CAR, out=out, seed=5)


def test_an_honest_callable_passes(honest: mt.Result) -> None:
    assert honest.outcome == "PASS" and honest.exit_code is ExitCode.PASS
    verdict = honest.verdicts[NOISE]
    assert (verdict.outcome, verdict.decided, verdict.violated) == (mt.RelationOutcome.PASS, FRAMES, 0)
    assert verdict.control.decided == verdict.sham.decided == FRAMES
    assert honest.worst is None
    honest.assert_holds()
    assert honest.report_path is not None and honest.report_path.is_file()


def test_every_pair_is_a_row(honest: mt.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(honest.pairs) == 3 * FRAMES and honest.pairs[0].outcome == "HOLDS"
    table = honest.rows()
    assert len(table) == 3 * FRAMES and set(table["relation"]) == {"identity", "points_permuted", NOISE}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert honest.rows() == honest.pairs


def test_what_is_lost_is_said_with_its_place(faulty: mt.Result) -> None:
    assert faulty.outcome == "FAIL" and faulty.verdicts[NOISE].violated == FRAMES
    worst = faulty.worst
    assert worst is not None and (worst.row.lost, worst.frame) == (1, 0)
    ((x_m, y_m, label),) = worst.lost
    assert (x_m, y_m, label) == (20.0, 3.0, "unknown") and not worst.gained


def test_a_failure_names_place_picture_and_command(faulty: mt.Result) -> None:
    with pytest.raises(AssertionError) as raised:
        faulty.assert_holds()
    text = str(raised.value)
    assert f"FAIL (exit code 1): FAIL: {NOISE}" in text and "21 of 21 pairs violated" in text
    assert "(20.0, 3.0) m" in text and str(faulty.report_path) in text
    (picture,) = [Path(line.split(": ", 1)[1]) for line in text.splitlines() if line.startswith("  picture: ")]
    assert picture.read_text().startswith("<svg ")
    assert f"  reproduce: mt reproduce {faulty.directory.resolve()} 0/0/{NOISE}/0" in text


def test_the_command_reproduces_a_closure(
    faulty: mt.Result, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert faulty.worst is not None
    words = faulty.worst.reproduce_command.split()[1:]
    assert main([*words, "--out", str(tmp_path / "again"), "--json"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["same_followup"] and again["now"]["outcome"] == "VIOLATED" and again["differs"] == []


def test_a_notebook_shows_table_and_picture(faulty: mt.Result, honest: mt.Result) -> None:
    page = faulty._repr_html_()
    assert NOISE in page and "21/21" in page and "data:image/svg+xml;base64," in page
    assert "data:image" not in honest._repr_html_() and ">PASS<" in honest._repr_html_()


def test_results_can_be_loaded(faulty: mt.Result) -> None:
    loaded = mt.load(str(faulty.directory))
    assert loaded.verdicts == faulty.verdicts and loaded.pairs == faulty.pairs
    assert str(loaded) == str(faulty)


def test_a_result_is_neither_true_nor_false(honest: mt.Result) -> None:
    for what in (honest, honest.verdicts[NOISE]):
        with pytest.raises(TypeError, match="compare its outcome"):
            bool(what)


def test_too_few_frames_are_no_pass(bag: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"settings": IN_CAR, "out": tmp_path / "out", "limit": 3, "report": False}
    with pytest.raises(AssertionError, match=r"UNDECIDED \(exit code 3\)(.|\n)*INCONCLUSIVE: 3 frames decided"):
        mt.assert_holds(bag, lambda points: BOXES, NOISE, **options)


def test_nothing_demanded_is_no_pass(bag: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"settings": IN_CAR, "out": tmp_path / "out", "report": False}
    with pytest.raises(AssertionError, match=r"0 frames decided(.|\n)*21 NOT_APPLICABLE, such as: 0 obstacles seen"):
        mt.assert_holds(bag, lambda points: [], NOISE, **options)


def test_flicker_is_no_pass(bag: Path, tmp_path: Path) -> None:
    """The stack misses a car in every second answer, whatever it is given."""

    class Flickers:
        def __init__(self) -> None:
            self._answers = 0

        def __call__(self, points: Any) -> Any:
            self._answers += 1
            return BOXES[: 1 + self._answers % 2]

    settings = {**IN_CAR, "stateless": True}  # so one instance serves both arms
    options: dict[str, Any] = {"settings": settings, "out": tmp_path / "out", "report": False}
    with pytest.raises(AssertionError, match="UNSTABLE"):
        mt.assert_holds(bag, Flickers, NOISE, **options)


def test_each_arm_has_an_instance_of_its_own(bag: Path, tmp_path: Path) -> None:
    """It would be violated if source and follow-up changed the same memory."""

    class Remembers:
        def __init__(self, cars: int) -> None:
            self._answers, self._cars = 0, cars

        def __call__(self, points: Any) -> Any:
            self._answers += 1
            return BOXES[: 1 + self._answers % self._cars]

    settings = {**IN_CAR, "params.cars": 2}
    mt.assert_holds(bag, Remembers, NOISE, settings=settings, out=tmp_path / "out", report=False)


def test_a_camera_callable_sees_images(bag: Path, tmp_path: Path) -> None:
    def look(image: Any) -> Any:
        assert image.shape == (120, 160, 3) and image.dtype == np.uint8
        return {"boxes": [[20.0, 5.0, 130.0, 110.0]], "scores": [0.99], "labels": ["car"]}

    settings = {"inputs": "camera", "outputs": "boxes", "stateless": True}
    result = mt.replay(bag, look, settings=settings, out=tmp_path / "out", limit=2, report=False)
    assert result.summary["outcomes"] == {"HOLDS": 2 * 3 * 3} and "brightness_lowered_boxes" in result.verdicts


def test_the_command_line_and_python_judge_alike(bag: Path, tmp_path: Path) -> None:
    file = tmp_path / "stack.yaml"
    file.write_text("callable: mt_stack_of_test:detect\npoints_frame: base_link\nstateless: true\n")
    (tmp_path / "mt_stack_of_test.py").write_text(f"def detect(points):\n    return {BOXES}[: 1 + len(points) % 2]\n")
    typed = ["--stack", str(file), "--relations", NOISE, "--transport", "inprocess", "--limit", "4", "--seed", "3"]
    main(["replay", str(bag), *typed, "--out", str(tmp_path / "typed"), "--json"])
    called = mt.replay(bag, file, NOISE, limit=4, seed=3, out=tmp_path / "called")
    lines = [list(read_journal(tmp_path / name / "result.jsonl")) for name in ("typed", "called")]
    assert lines[0] == lines[1] and len(lines[0]) > 12
    times = {name: called.summary[name] for name in ("latency_ms", "work_s", "cpu_s")}
    assert called.summary == {**mt.load(tmp_path / "typed").summary, **times}


def test_relations_of_a_pattern_that_cannot_judge_the_stack_are_told(bag: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"settings": {**IN_CAR, "stateless": True}, "limit": 1, "report": False}
    with pytest.warns(UserWarning, match=r"left out \d+ relations: .*fog_camera"):
        result = mt.replay(bag, lambda points: BOXES, "fog_*", out=tmp_path / "out", **options)
    assert "fog_keeps_near_obstacles" in result.verdicts and "fog_camera_not_faster" not in result.verdicts


def test_an_interrupted_run_can_be_loaded(bag: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int, violated: int) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="--resume"):
        mt.replay(bag, lambda points: BOXES, NOISE, out=tmp_path / "out", progress=stop, report=False)
    loaded = mt.load(tmp_path / "out")
    assert loaded.outcome == "INTERRUPTED" and 5 <= len(loaded.pairs) < 3 * FRAMES
    with pytest.raises(AssertionError, match="exit code 130"):
        loaded.assert_holds()


def returns(answer: Any) -> Callable[..., Any]:
    return lambda points: answer


def raises(points: Any) -> Any:
    raise RuntimeError("no GPU")


def raises_at_noise(points: Any) -> Any:
    if len(points) > 1000:
        raise RuntimeError("too many")
    return BOXES


def holds_a_lock() -> Callable[..., Any]:
    lock = threading.Lock()
    return lambda points: lock.locked()


@pytest.mark.parametrize(
    ("stack", "kind", "words"),
    [
        (
            returns([[1.0, 2.0]]),
            mt.StackError,
            r"array of shape \(1, 2\), expected \(M, 7\).*; what was judged until then",
        ),
        (returns(None), mt.StackError, "returned None; is a return statement missing"),
        (returns("cars"), mt.StackError, "returned str 'cars', which is no array of numbers"),
        (returns(np.ones((1, 7)) * 1j), mt.StackError, "which is no array of numbers"),
        (returns({"rotation_y": [0.1]}), mt.StackError, "KITTI's angle"),
        (
            raises,
            mt.StackError,
            r"stack 'raises' raised RuntimeError: no GPU \(test_python_api.py:\d+\); nothing",
        ),
        (holds_a_lock(), mt.UsageError, "cannot pickle '_thread.lock' object; make what it needs inside it"),
        (3, mt.UsageError, "got int 3, expected the name of a shipped stack"),
        ("reference_detectr", mt.UsageError, "did you mean 'reference_detector'"),
    ],
    ids=["shape", "none", "text", "complex", "kitti", "raises", "lock", "number", "name"],
)
def test_a_wrong_stack_is_told(stack: Any, kind: type[Exception], words: str, bag: Path, tmp_path: Path) -> None:
    with pytest.raises(kind, match=words):
        mt.replay(bag, stack, NOISE, out=tmp_path / "out", limit=1, report=False)
    if kind is mt.UsageError:
        assert not (tmp_path / "out").exists(), "what cannot run leaves nothing"


def test_a_stack_that_raises_at_followups_gives_a_result_that_does_not_pass(bag: Path, tmp_path: Path) -> None:
    result = mt.replay(bag, raises_at_noise, NOISE, settings=IN_CAR, out=tmp_path / "out", report=False)
    assert result.exit_code is ExitCode.INFRASTRUCTURE and result.summary["relations"][NOISE]["outcome"] != "PASS"
    assert result.summary["outcomes"] == {"HOLDS": 2 * FRAMES, "ERROR": FRAMES}
    assert "raised RuntimeError: too many (test_python_api.py:" in result.summary["exit_why"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"bag": "no_bag"}, "no bag no_bag; expected the path of"),
        ({"relations": "noise_outside_ro"}, "did you mean 'noise_outside_roi_10'"),
        ({"settings": {"statles": True}}, "did you mean 'stateless'"),
        ({"transport": "inproces"}, "got 'inproces', expected ros, inprocess"),
        ({"faults": "grid_index_wrap"}, "--fault: stack .lambda. is not a reference stack"),
        ({"settings": "stateless"}, "settings: got str .stateless., expected a dict"),
        ({"seed": "1"}, "seed: got str .1., expected a whole number"),
        ({"relations": [NOISE, 3]}, "relations: got int 3 among them"),
        ({"bag": len}, "bag: got builtin_function_or_method"),
        ({"bag": []}, "got no bag"),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else "",
)
def test_a_wrong_argument_is_told(arguments: dict[str, Any], words: str, bag: Path, tmp_path: Path) -> None:
    given: dict[str, Any] = {"bag": bag, "stack": returns(BOXES), "relations": NOISE, **arguments}
    with pytest.raises(mt.UsageError, match=words):
        mt.replay(**given, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_thread_may_call_in_process_alone(bag: Path, tmp_path: Path) -> None:
    ended: list[Any] = []

    def call(transport: str) -> None:
        options: dict[str, Any] = {"limit": 1, "report": False, "out": tmp_path / transport, "transport": transport}
        try:
            ended.append(mt.replay(bag, returns(BOXES), NOISE, settings=IN_CAR, **options).outcome)
        except mt.UsageError as error:
            ended.append(str(error))

    for transport in ("inprocess", "ros"):
        thread = threading.Thread(target=call, args=(transport,))
        thread.start()
        thread.join()
    assert ended == ["UNDECIDED", 'transport "ros": got a call from another thread, expected one from the main thread']
    assert not (tmp_path / "ros").exists()


def test_wrong_results_are_told(tmp_path: Path) -> None:
    with pytest.raises(mt.UsageError, match="no such directory, expected a results directory"):
        mt.load(tmp_path / "none")
    with pytest.raises(mt.UsageError, match=r"no result\.jsonl in it"):
        mt.load(tmp_path)


def frame_of(bag: Path, index: int, **options: Any) -> mt.Frame:
    return next(frame for frame in mt.frames(bag, **options) if frame.index == index)


def test_frames_have_points_images_and_stamps(bag: Path) -> None:
    frames = list(mt.frames(bag, limit=3))
    assert [frame.index for frame in frames] == [0, 1, 2] and frames[1].stamp_ns - frames[0].stamp_ns == 100_000_000
    points, image = frames[0].points, frames[0].image
    assert points.shape == (POINTS, 4) and points.dtype == np.float32 and frames[0].frame_id == "lidar"
    assert image.shape == (120, 160, 3) and frames[0].sensors == ("lidar", "camera")
    assert not np.allclose(frames[0].points_in("base_link"), points)
    for array in (points, image, frames[0].points_in("lidar")):
        assert not array.flags.writeable
    assert frame_of(bag, 0, sensors="camera").sensors == ("camera",)


def test_no_frame_is_an_error(bag: Path) -> None:
    wrong = ({"limit": 0}, "expected at least 1"), ({"sensors": ["sonar"]}, "some of lidar, camera, radar")
    for options, words in wrong:
        with pytest.raises(mt.UsageError, match=words):
            mt.frames(bag, **options)  # type: ignore[arg-type]
    with pytest.raises(mt.UsageError, match="no bag no_bag"):
        mt.frames("no_bag")
    with pytest.raises(mt.UsageError, match=r"frame 0 .* has no cloud; it has camera"):
        _ = frame_of(bag, 0, sensors=["camera"]).points


@pytest.fixture(scope="module")
def clouds_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [row for row in drive(12) if "camera" not in row.topic]
    return write_bag(tmp_path_factory.mktemp("recorded") / "clouds", rows)


@pytest.mark.parametrize("relation", [NOISE, "fog_keeps_near_obstacles", "frames_frozen_1_of_10"])
def test_a_changed_frame_is_that_of_a_run(relation: str, clouds_alone: Path, tmp_path: Path) -> None:
    """Of a mutation without memory, of one that begins with the drive, and of one that looks back."""
    mt.replay(clouds_alone, returns(BOXES), relation, settings=IN_CAR, seed=5, out=tmp_path / "out", report=False)
    ran = {line["pair"]: line["sha256"] for line in read_ledger(tmp_path / "out")}
    made = {f"0/{f.index}/{relation}/0": mt.mutate(f, relation, seed=5).sha256 for f in mt.frames(clouds_alone)}
    assert made.items() <= ran.items() and len(made) == 12
    again = {f"0/{f.index}/{relation}/0": mt.mutate(f, relation, seed=6).sha256 for f in mt.frames(clouds_alone)}
    assert again != made


def test_a_mutation_draws_as_the_command_does(clouds_alone: Path, tmp_path: Path) -> None:
    words = ["--mutation", "fog", "--set", "visibility_m=80", "--seed", "2", "--limit", "2"]
    assert main(["mutate", str(clouds_alone), *words, "--out", str(tmp_path / "foggy")]) == 0
    written = frame_of(tmp_path / "foggy", 1).bundle
    made = mt.mutate(frame_of(clouds_alone, 1), "fog", visibility_m=80, seed=2)
    assert written.clouds[0].points.tobytes() == made.bundle.clouds[0].points.tobytes()


def test_mutating_leaves_the_frame(bag: Path) -> None:
    frame = frame_of(bag, 0)
    before = frame.image.copy()
    changed = mt.mutate(frame, "brightness_changed", offset=-0.2)
    assert np.array_equal(frame.image, before) and changed.source is frame
    assert changed.image.mean() < 0.8 * before.mean() and changed.points is not None


def test_a_frame_of_own_arrays_can_be_mutated() -> None:
    frame = mt.Frame.of_arrays(np.random.default_rng(0).uniform(-20, 20, (30, 3)))
    changed = mt.mutate(frame, NOISE)
    assert len(changed.points) == 1030 and len(frame.points) == 30
    with pytest.raises(mt.UsageError, match=r"shape \(3,\), expected \(N, 3\) or \(N, 4\)"):
        mt.Frame.of_arrays([1.0, 2.0, 3.0])
    with pytest.raises(mt.UsageError, match="expected one of them"):
        mt.Frame.of_arrays()


@pytest.mark.parametrize(
    ("name", "parameters", "kind", "words"),
    [
        ("fgo", {}, mt.UsageError, "did you mean 'fog'"),
        ("fog", {"visibilty_m": 80}, mt.UsageError, "did you mean 'visibility_m'"),
        ("fog", {"visibility_m": -1}, mt.UsageError, "visibility_m"),
        (NOISE, {"points": 3}, mt.UsageError, "a relation, which has its own parameters"),
        ("brightness_changed", {}, mt.UsageError, "changes camera; frame 0 has lidar"),
        ("frames_dropped", {"every": 1}, mt.UsageError, "0 frames take its place|expected"),
    ],
)
def test_a_wrong_mutation_is_told(
    name: str, parameters: dict[str, Any], kind: type[Exception], words: str, clouds_alone: Path
) -> None:
    with pytest.raises(kind, match=words):
        mt.mutate(frame_of(clouds_alone, 0), name, **parameters)


@pytest.fixture(scope="module")
def changed(bag: Path) -> mt.ChangedFrame:
    return mt.mutate(frame_of(bag, 0), NOISE)


@pytest.mark.parametrize(
    ("source", "followup", "outcome", "lost"),
    [
        (BOXES, BOXES, "HOLDS", []),
        (BOXES, BOXES[:1], "VIOLATED", [(20.0, 3.0, "unknown")]),
        (np.array(BOXES), [], "VIOLATED", [(10.0, 0.0, "unknown"), (20.0, 3.0, "unknown")]),
        (BOXES, None, "VIOLATED", [(10.0, 0.0, "unknown"), (20.0, 3.0, "unknown")]),
        (None, BOXES, "UNPAIRED_SOURCE", []),
        ([], [], "NOT_APPLICABLE", []),
        (BOXES, [[float("nan")] * 7], "ERROR", []),
    ],
)
def test_two_answers_are_judged(
    source: Any, followup: Any, outcome: str, lost: list[Any], changed: mt.ChangedFrame
) -> None:
    verdict = mt.judge(NOISE, source, followup, changed, settings=IN_CAR)
    assert verdict.outcome == outcome and list(map(tuple, verdict.lost)) == lost
    with pytest.raises(TypeError, match="neither true nor false"):
        bool(verdict)


def test_judging_takes_what_the_change_moved_into_account(bag: Path) -> None:
    """The same boxes are wrong where the scene was mirrored."""
    mirrored = mt.mutate(frame_of(bag, 0, sensors="lidar"), "cloud_mirrored")
    stays = mt.judge("cloud_mirrored", BOXES, BOXES, mirrored, settings=IN_CAR)
    assert stays.outcome == "VIOLATED" and stays.lost
    there = [[x, -y, z, *size, -yaw] for x, y, z, *size, yaw in BOXES]
    assert mt.judge("cloud_mirrored", BOXES, there, mirrored, settings=IN_CAR).outcome == "HOLDS"


def test_a_wrong_judgement_is_told(bag: Path, changed: mt.ChangedFrame) -> None:
    frame: Any = frame_of(bag, 0)
    for relation, given, words in (
        (NOISE, frame, "a frame that was not changed, expected the changed frame that mt_nodes.mutate returns"),
        (NOISE, BOXES, "got list"),
        ("identity", changed, "'identity' is the control"),
        ("noise_outside_roi_100O", changed, "did you mean 'noise_outside_roi_100"),
    ):
        with pytest.raises(mt.UsageError, match=words):
            mt.judge(relation, BOXES, BOXES, given)
    with pytest.raises(mt.InfrastructureError, match=r"array of shape \(2,\)"):
        mt.judge(NOISE, BOXES, [1.0, 2.0], changed)


def test_an_empty_bag_has_no_frame(tmp_path: Path) -> None:
    late = recorded(cloud(0))
    bag = write_bag(tmp_path / "bag", [late])
    assert len(list(mt.frames(bag))) == 1
    empty: Iterator[mt.Frame]
    with pytest.raises(mt.MtError, match=r"lidar|frame"):
        empty = mt.frames(write_bag(tmp_path / "empty", [row for row in drive(1) if row.topic == "/note"]))
        list(empty)
