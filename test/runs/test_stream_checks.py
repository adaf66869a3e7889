# SPDX-License-Identifier: Apache-2.0
"""Checks of one stream: each holds on an honest stack, and a planted fault violates each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mt_nodes.base import plugins
from mt_nodes.base.params import build
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.ego.ego_track import EgoTrack
from mt_nodes.data.messages import Bundle, CameraInfo
from mt_nodes.data.outputs import Control, Detections, ImageBoxes, Output
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.engine.summary.watch_sums import CONDITION, watch_summary
from mt_nodes.relations.stream_checks.base import LastingDisagreements, StreamCheck, StreamFinding, WatchedInstant
from mt_nodes.relations.stream_checks.scene_facts import CalibratedCamera
from mt_nodes.runs.watch.stream_watch import StreamWatch
from mt_nodes.runs.watch.watch_request import watch_settings
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.reference.radar_detector import joined_detections
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e
from mt_nodes.world.scene.radar_model import front_radar

FRAMES = 26
KITTI = Path(__file__).parents[3] / "shared" / "data" / "kitti_drive"
PERIOD_NS = 100_000_000


@cache
def drive() -> tuple[Bundle, ...]:
    thin = replace(hdl_64e(), azimuths=900)
    track, rows = EgoTrack(), []
    for bundle in generate_drive(FRAMES, lidar=thin, radar=front_radar()):
        for wire in bundle.wires:
            track.take(wire)
        rows.append(replace(bundle, track=track))
    return tuple(rows)


@cache
def answers(stack: str, *faults: str, **params: float) -> tuple[WatchedInstant, ...]:
    """What a reference stack answers on the drive, which is watched as it comes."""
    loaded = load_stack(stack)
    host = CallableHost.make(with_faults(replace(loaded, params={**loaded.params, **params}), faults))
    told = host.stack
    rows = []
    for bundle in drive():
        by_role = {"lidar": bundle.clouds, "radar": bundle.radars}
        sensors = {topic: by_role[role][0] for role, topics in told.topics.items() for topic in topics}
        given = sensors if told.joins else sensors[told.leading_topic]
        rows.append(WatchedInstant(bundle, host(given, bundle.transforms)))
    return tuple(rows)


def looks(name: str, instants: Iterable[WatchedInstant], **parameters: Any) -> list[StreamFinding]:
    """Every finding of a check."""
    check: StreamCheck = build(plugins.find("stream_checks", name, "test"), parameters, name)
    memory = check.begin()
    return [memory.look(moving(instant)) for instant in instants]


def moving(instant: WatchedInstant) -> WatchedInstant:
    """The instant with the ego's motion, as the drive publishes it."""
    bundle = instant.bundle
    if bundle.motion is not None or bundle.track is None:
        return instant
    return replace(instant, bundle=replace(bundle, motion=bundle.track.at(replace(bundle, clouds=()))))


def judged(name: str, instants: Iterable[WatchedInstant], **parameters: Any) -> tuple[int, int]:
    """How many instants there was something to watch in, and in how many there was a breach."""
    found = looks(name, instants, **parameters)
    return sum(bool(each.ranges_m) for each in found), sum(bool(each.breaches) for each in found)


def tracked(
    instants: Iterable[WatchedInstant], change: Callable[[int, Detections], Detections]
) -> Iterator[WatchedInstant]:
    """The instants with their tracks changed by a fault, which is told the number of the instant."""
    for number, instant in enumerate(instants):
        found = instant.output.detections
        assert found is not None
        yield replace(instant, output=replace(instant.output, detections=change(number, found)))


def victim(found: Detections) -> np.ndarray[Any, Any]:
    """The track that faults are planted in: a parked car in plain sight, 12 m away in the middle of the drive."""
    return np.asarray(found.track_id == "8")


# --- tracks in time


@pytest.mark.parametrize("name", ["tracks_do_not_blink", "boxes_agree_with_ego_motion"])
def test_tracks_of_an_honest_tracker_hold(name: str) -> None:
    watched, breached = judged(name, answers("reference_tracker"))
    assert watched > 10 and breached == 0


def test_tracks_of_an_honest_tracker_hold_on_a_recorded_drive() -> None:
    if not KITTI.exists():
        pytest.skip(f"the recorded drive is not in {KITTI}")
    host = CallableHost.make(load_stack("reference_tracker"))
    with BagSource(KITTI, limit=16) as source:
        instants = [WatchedInstant(bundle, host(bundle.clouds[0], bundle.transforms)) for bundle in source]
    watched, breached = judged("tracks_do_not_blink", instants)
    assert watched > 8 and breached == 0


@pytest.mark.parametrize("missing", [1, 2])
def test_a_track_that_blinks_is_found_once_an_absence(missing: int) -> None:
    def blink(number: int, found: Detections) -> Detections:
        return found.take(~victim(found)) if number in range(15, 15 + missing) else found

    found = looks("tracks_do_not_blink", tracked(answers("reference_tracker"), blink))
    [breach] = [breach for each in found for breach in each.breaches]
    assert breach.measured == pytest.approx(0.1 * (missing + 1)) and breach.unit == "s"
    assert f"missing in {missing} outputs" in breach.reason and breach.since_ns == drive()[14].stamp_ns


def test_a_track_that_comes_back_under_another_id_has_blinked() -> None:
    def blink(number: int, found: Detections) -> Detections:
        if number == 15:
            return found.take(~victim(found))
        ids = np.where(victim(found), "900", found.track_id) if number > 15 else found.track_id
        return replace(found, track_id=ids)

    found = looks("tracks_do_not_blink", tracked(answers("reference_tracker"), blink))
    assert any("came back as 900" in breach.reason for each in found for breach in each.breaches)


def test_a_track_that_may_be_hidden_is_not_demanded() -> None:
    """The same absence without a return from its place: something stands before it, or it is gone."""

    def blink(number: int, found: Detections) -> Detections:
        return found.take(~victim(found)) if number == 15 else found

    instants = list(tracked(answers("reference_tracker"), blink))
    [cloud] = instants[15].bundle.clouds
    empty = replace(instants[15].bundle, clouds=(cloud.with_raw(cloud.raw[:0]),))
    instants[15] = replace(instants[15], bundle=empty)
    assert judged("tracks_do_not_blink", instants)[1] == 0


def test_a_track_that_another_one_has_taken_in_is_not_missing() -> None:
    """What was published in two parts, and is now in one, whose box has the returns of both."""

    def joined(number: int, found: Detections) -> Detections:
        if number != 15:
            return found
        taken = replace(found, track_id=np.where(victim(found), "900", found.track_id))
        return replace(taken, size_m=taken.size_m + 0.5 * victim(found)[:, None])

    assert judged("tracks_do_not_blink", tracked(answers("reference_tracker"), joined))[1] == 0


def test_a_track_that_was_being_hidden_is_not_demanded() -> None:
    """At last it had few returns, as many as now, but lately many: the tracker only went on with it."""

    def blink(number: int, found: Detections) -> Detections:
        return found.take(~victim(found)) if number == 15 else found

    def thinned(instant: WatchedInstant) -> WatchedInstant:
        [cloud] = instant.bundle.clouds
        return replace(instant, bundle=replace(instant.bundle, clouds=(cloud.with_raw(cloud.raw[::3]),)))

    instants = list(tracked(answers("reference_tracker"), blink))
    assert judged("tracks_do_not_blink", instants)[1] == 1
    instants[13:] = [thinned(each) for each in instants[13:]]
    assert judged("tracks_do_not_blink", instants)[1] == 0
    # It had no more for as long as is looked back at.
    assert judged("tracks_do_not_blink", instants, recent_s=0.1)[1] == 1


def test_a_track_that_is_away_for_long_has_left() -> None:
    def leave(number: int, found: Detections) -> Detections:
        return found.take(~victim(found)) if 12 <= number < 17 else found

    assert judged("tracks_do_not_blink", tracked(answers("reference_tracker"), leave))[1] == 0


def test_without_clouds_nothing_is_watched() -> None:
    blind = [replace(each, bundle=replace(each.bundle, clouds=())) for each in answers("reference_tracker")]
    found = looks("tracks_do_not_blink", blind)
    assert not any(each.ranges_m for each in found) and all("no cloud" in each.why for each in found)


@pytest.mark.parametrize("velocities", ["unused", "relative"])
def test_boxes_that_jump_disagree_with_ego_motion(velocities: str) -> None:
    def jump(number: int, found: Detections) -> Detections:
        ahead = np.where(victim(found), 7.0 * (number >= 18), 0.0)
        return replace(found, center_m=found.center_m + ahead[:, None] * [1.0, 0.0, 0.0])

    instants = list(tracked(answers("reference_tracker"), jump))
    assert judged("boxes_agree_with_ego_motion", instants, velocities=velocities)[1] > 0


def test_velocities_that_are_wrong_disagree_with_the_places() -> None:
    """The planted fault has the tracker believe that half as much time passes."""
    honest = judged("boxes_agree_with_ego_motion", answers("reference_perception"), velocities="relative")
    assert honest[0] > 10 and honest[1] == 0
    slow = answers("reference_perception", "time_from_point_count:points_per_s=1000000.0")
    assert judged("boxes_agree_with_ego_motion", slow, velocities="relative")[1] > 0


def test_what_is_no_road_user_may_move_as_it_likes() -> None:
    """Of a wall the part in sight changes; what counts is said, and nothing else passes for watched."""

    def unknown(number: int, found: Detections) -> Detections:
        ahead = np.where(victim(found), 7.0 * (number >= 18), 0.0)
        label = np.where(victim(found), "unknown", found.label)
        return replace(found, label=label, center_m=found.center_m + ahead[:, None] * [1.0, 0.0, 0.0])

    instants = list(tracked(answers("reference_tracker"), unknown))
    assert judged("boxes_agree_with_ego_motion", instants)[1] == 0
    assert judged("boxes_agree_with_ego_motion", instants, ignored=[])[1] > 0
    [found] = looks("boxes_agree_with_ego_motion", instants[-1:], ignored=["unknown", "car", "pedestrian", "cyclist"])
    assert found.why == "no track of a class that counts"


def test_without_ego_motion_nothing_is_watched() -> None:
    found = looks(
        "boxes_agree_with_ego_motion",
        [replace(e, bundle=replace(e.bundle, track=None)) for e in answers("reference_tracker")],
    )
    assert not any(each.ranges_m for each in found) and "no ego motion" in found[-1].why


# --- radar


def test_radial_speeds_agree_with_the_radar() -> None:
    watched, breached = judged("radar_agrees_with_boxes", answers("reference_fused"))
    assert watched == FRAMES and breached == 0
    assert judged("radar_agrees_with_boxes", answers("reference_fused", "doppler_sign_by_strength"))[1] > 0


# --- two cameras, and camera and LiDAR

WIDTH, HEIGHT = 640, 480


def camera_info(name: str) -> CameraInfo:
    k = np.array([[500.0, 0.0, 319.5], [0.0, 500.0, 239.5], [0.0, 0.0, 1.0]])
    p = np.column_stack([k, np.zeros(3)])
    return CameraInfo(f"/{name}/info", 0, name, WIDTH, HEIGHT, "plumb_bob", np.zeros(5), k, np.eye(3), p)


def stereo() -> TransformTree:
    """Two cameras half a metre apart, looking ahead."""
    xyzw = (-0.5, 0.5, -0.5, 0.5)
    places = {"left": (0.0, 0.25, 1.5), "right": (0.0, -0.25, 1.5)}
    return TransformTree([Transform("base_link", name, pose_matrix(at, xyzw)) for name, at in places.items()])


def walkers(number: int) -> Detections:
    """A person who crosses 12 m ahead, and one to the side whom only one camera has wholly in its picture."""
    centers = [(12.0, 2.0 - 0.1 * number, 0.9), (9.0, 5.4, 0.9)]
    return Detections.make("base_link", None, centers, [(0.6, 0.6, 1.8)] * 2, label=["pedestrian"] * 2)


def seen_by(name: str, bundle: Bundle, found: Detections) -> ImageBoxes:
    """What a perfect detector sees in a picture."""
    camera = CalibratedCamera(next(i for i in bundle.camera_infos if i.frame_id == name), bundle)
    outlines = camera.outlines(found)
    rows = camera.inside(outlines, 0.0)
    return ImageBoxes.make(name, None, outlines[rows], found.label[rows].tolist())


def two_views(fault: Callable[[int, ImageBoxes], ImageBoxes] = lambda number, boxes: boxes) -> Iterator[WatchedInstant]:
    infos = (camera_info("left"), camera_info("right"))
    for number in range(12):
        bundle = Bundle(0, number, number * PERIOD_NS, camera_infos=infos, transforms=stereo())
        left, right = (seen_by(name, bundle, walkers(number)) for name in ("left", "right"))
        yield WatchedInstant(bundle, Output(boxes=left, detections=walkers(number)), (fault(number, right),))


SMALLER = lambda number, boxes: replace(boxes, box_px=boxes.box_px * 0.5)  # noqa: E731
LOST = lambda number, boxes: boxes.take(np.zeros(len(boxes), bool)) if number > 3 else boxes  # noqa: E731
FLICKER = lambda number, boxes: boxes.take(np.zeros(len(boxes), bool)) if number % 3 == 1 else boxes  # noqa: E731


@pytest.mark.parametrize("name", ["cameras_agree", "camera_agrees_with_lidar"])
def test_honest_cameras_agree(name: str) -> None:
    watched, breached = judged(name, two_views())
    assert watched == 12 and breached == 0


@pytest.mark.parametrize("name", ["cameras_agree", "camera_agrees_with_lidar"])
@pytest.mark.parametrize("fault", [SMALLER, LOST], ids=["boxes_of_smaller_picture", "nobody_seen"])
def test_cameras_that_see_something_else_disagree(name: str, fault: Any) -> None:
    assert judged(name, two_views(fault))[1] > 0


@pytest.mark.parametrize("name", ["cameras_agree", "camera_agrees_with_lidar"])
def test_what_flickers_for_an_instant_is_no_disagreement(name: str) -> None:
    watched, breached = judged(name, two_views(FLICKER))
    assert watched > 0 and breached == 0


def with_obstacles(change: Callable[[Detections], Detections]) -> list[WatchedInstant]:
    """Nobody has a box in a picture from instant 4 on; the obstacles are changed."""
    return [
        replace(each, output=replace(each.output, boxes=LOST(number, each.output.boxes), detections=change(found)))
        for number, each in enumerate(two_views(LOST))
        if (found := each.output.detections) is not None
    ]


def test_a_rider_is_a_person_for_one_and_a_cyclist_for_the_other() -> None:
    """What is there is there for both; of which class is another question."""
    riders = [
        replace(each, output=replace(each.output, detections=replace(found, label=np.full(len(found), "cyclist"))))
        for each in two_views()
        if (found := each.output.detections) is not None
    ]
    watched, breached = judged("camera_agrees_with_lidar", riders)
    assert watched == 12 and breached == 0


def test_who_is_behind_a_nearer_obstacle_is_not_demanded_of_a_camera() -> None:
    def behind(found: Detections) -> Detections:
        ahead = Detections.make("base_link", None, [(8.0, 1.0, 0.8)], [(4.0, 4.0, 1.6)], label=["car"])
        return joined_detections(found.take(np.array([0])), ahead)

    in_sight = with_obstacles(lambda found: found.take(np.array([0])))
    assert judged("camera_agrees_with_lidar", in_sight)[1] > 0
    assert judged("camera_agrees_with_lidar", with_obstacles(behind))[1] == 0


def test_a_camera_without_calibration_is_not_watched() -> None:
    bare = [replace(each, bundle=replace(each.bundle, camera_infos=())) for each in two_views()]
    for name in ("cameras_agree", "camera_agrees_with_lidar"):
        found = looks(name, bare)
        assert not any(each.ranges_m for each in found) and "no CameraInfo" in found[0].why


def test_disagreements_of_several_objects_last_each_by_itself() -> None:
    lasting = LastingDisagreements(200, lambda a, b: bool(abs(a[0] - b[0]) < 1.0))
    places = [np.array([0.0, 1.0]), np.array([10.0, 1.0])]
    assert lasting.update(0, places) == [] and lasting.update(100, places[::-1]) == []
    assert [(row, since) for row, _, since in lasting.update(200, [places[1], np.array([50.0, 0.0])])] == [(0, 0)]


# --- commands


def commands(*values: Control) -> list[WatchedInstant]:
    return [WatchedInstant(Bundle(0, i, i * PERIOD_NS), Output(control=value)) for i, value in enumerate(values)]


def speeds(*mps: float) -> list[WatchedInstant]:
    return commands(*(Control(None, speed_mps=value) for value in mps))


def test_commands_of_an_honest_driver_are_possible() -> None:
    for name in ("commands_possible", "speed_within_limit"):
        watched, breached = judged(name, answers("reference_driver"))
        assert watched == FRAMES and breached == 0


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (speeds(10.0, 10.0, 8.0), "braking of 20.0"),
        (speeds(10.0, 10.5), "acceleration of 5.0"),
        (commands(Control(None, speed_mps=20.0, yaw_rate_radps=0.4)), "lateral acceleration of 8.0"),
        (commands(*(Control(None, acceleration_mps2=value) for value in (0.0, -7.0))), "brakes put on of 70.0"),
        (commands(*(Control(None, acceleration_mps2=value) for value in (-7.0, -2.0))), "jerk of 50.0"),
        (commands(*(Control(None, acceleration_mps2=value) for value in (-1.5, 3.0))), "jerk of 45.0"),
    ],
)
def test_commands_that_no_vehicle_follows_are_found(given: list[WatchedInstant], what: str) -> None:
    assert what in looks("commands_possible", given)[-1].breaches[0].reason


@pytest.mark.parametrize(
    "given",
    [
        # Brakes of 8 m/s² are full after 0.16 s, and the vehicle comes to a stand by them.
        speeds(2.1, 2.1, 1.6, 0.8, 0.0, 0.0, 0.1),
        # A bound that is met exactly, by speeds that are rounded.
        commands(*(Control(None, speed_mps=round(value, 6)) for value in (5.0, 4.02000049))),
    ],
    ids=["emergency brake", "exactly the bound"],
)
def test_an_emergency_brake_is_possible(given: list[WatchedInstant]) -> None:
    assert judged("commands_possible", given)[1] == 0


def test_a_speed_that_is_a_target_may_step() -> None:
    stepping = speeds(10.0, 4.0, 10.0)
    assert judged("commands_possible", stepping)[1] == 2
    assert judged("commands_possible", stepping, speeds="target") == (0, 0)
    fast = commands(Control(None, speed_mps=20.0, yaw_rate_radps=0.4))
    assert judged("commands_possible", fast, speeds="target") == (1, 1)


def test_a_planted_fault_commands_what_is_impossible() -> None:
    """Who takes over much too fast brakes fully: the honest driver eases off, the other one lets go at once."""
    assert judged("commands_possible", answers("reference_driver", start_mps=20.0)) == (FRAMES, 0)
    assert judged("commands_possible", answers("reference_driver", "brakes_on_or_off", start_mps=20.0))[1] > 0


def test_speeds_above_the_limit_are_found() -> None:
    assert judged("speed_within_limit", speeds(8.0, 13.0, 14.5), limit_mps=13.9) == (3, 1)
    assert judged("speed_within_limit", answers("reference_driver"), limit_mps=1.0)[1] > 0


def test_commands_across_a_gap_are_not_compared() -> None:
    """Nobody knows what was commanded meanwhile."""
    assert judged("commands_possible", [speeds(10.0)[0], replace(speeds(0.0)[0], bundle=Bundle(0, 1, 10**9))])[1] == 0


# --- every check


def every_check() -> list[str]:
    return list(plugins.catalogue("stream_checks"))


@pytest.mark.parametrize("name", every_check())
def test_an_instant_with_nothing_in_it_is_never_watched(name: str) -> None:
    """Nothing observed is nothing that holds: no chance is counted, and it is said why."""
    [found] = looks(name, [WatchedInstant(Bundle(0, 0, 0), Output())])
    assert found.ranges_m == () and found.breaches == () and found.why


@pytest.mark.parametrize("name", every_check())
def test_a_run_in_which_nothing_was_there_to_watch_never_passes(name: str) -> None:
    check = plugins.find("stream_checks", name, "test")()
    lines: list[Any] = [
        {"type": CONDITION, "stack": "none", "min_frames": 1, "relations": [{"name": name, "because": check.because}]}
    ]
    watch = StreamWatch({name: check}, watch_settings({}, "test"), 2.0, lines.append)
    for number in range(30):
        watch.take(WatchedInstant(Bundle(0, number, number * PERIOD_NS), Output(lanes=None, extra={"other": 1})))
    watch.record()
    summary = watch_summary(lines)
    assert summary["watched"][name]["outcome"] == "INCONCLUSIVE" and summary["exit_code"] == 3
    assert "nothing was watched" in summary["watched"][name]["why"]
