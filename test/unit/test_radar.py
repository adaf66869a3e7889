# SPDX-License-Identifier: Apache-2.0
"""Radar messages: told from LiDARs by their fields, read and written, in bundles, for callables, in a closed loop."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dataset_trees as trees
import numpy as np
import pytest
from radar_drives import NUSCENES, SPEED_MPS, drive, in_layout
from test_drive_sensing import EGO, observed, scenario

from mt_nodes.base.errors import UsageError
from mt_nodes.data.bags.bundles import BagSource, write_bundles
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.further_messages import RADAR_SCAN, RADAR_TRACKS, TRACK
from mt_nodes.data.cdr.radar_codec import encode_radar, radar_from_msg
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar, is_radar, radar_of
from mt_nodes.data.radar_motion import sensor_motion
from mt_nodes.data.transforms import Transform, TransformTree, pose_matrix
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.bag_mutation import mutate_bag
from mt_nodes.engine.evidence import read_evidence, read_source, write_evidence
from mt_nodes.relations.mutations.lidar.drawn_returns import PointsDropped
from mt_nodes.relations.mutations.lidar.points_permuted import PointsPermuted
from mt_nodes.relations.mutations.radar.radar_losses import RadarDetectionsDropped
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.stacks.callable_host import as_radar
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.scenario import Actor, Environment, Pose
from mt_nodes.world.scene.drive import CLOUD_TOPIC, RADAR_TOPIC, generate_drive
from mt_nodes.world.scene.radar_model import front_radar

LAYOUTS = ("points", "scan", "nuscenes")


@pytest.mark.parametrize(
    ("fields", "radar"),
    [
        (("x", "y", "z", "doppler", "rcs"), True),
        (("x", "y", "z", "RCS", "v_r", "v_r_compensated", "time"), True),  # View-of-Delft
        (NUSCENES.names, True),
        (("x", "y", "z", "velocity", "snr"), True),
        (("x", "y", "z", "intensity", "ring", "time"), False),
        (("x", "y", "z", "velocity", "intensity"), False),  # a LiDAR of frequency modulation
        (("x", "y", "z", "rcs"), False),
    ],
)
def test_fields_tell_a_radar_from_a_lidar(fields: tuple[str, ...], radar: bool) -> None:
    assert is_radar(fields) is radar


def test_a_cloud_without_doppler_speeds_is_no_radar() -> None:
    with pytest.raises(UsageError, match=r"got fields x, y, z, .*expected a radar's Doppler speed"):
        radar_of(drive()[0].clouds[0])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_all_layouts_give_the_same_places_rates_and_strengths(layout: str) -> None:
    radar, same = drive()[0].radars[0], in_layout(drive()[0], layout).radars[0]
    assert np.allclose(same.xyz, radar.xyz, atol=1e-4)
    assert np.allclose(same.doppler_mps, radar.doppler_mps, atol=1e-4)
    assert np.allclose(same.strength_db, radar.strength_db)
    again = radar_from_msg(same.topic, codec.decode(same.type, encode_radar(same)))
    assert again.points.tobytes() == same.points.tobytes() and type(again) is Radar
    assert (again.stamp_ns, again.frame_id, again.type) == (same.stamp_ns, same.frame_id, same.type)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_are_written_into_every_field_that_has_them(layout: str) -> None:
    radar, rows = in_layout(drive()[0], layout).radars[0], np.array([3, 8])
    place = (np.array([20.0, 30.0]), np.array([0.3, -0.2]), np.zeros(2))
    changed = radar.moved(rows, place, np.array([-4.0, 5.0]), np.array([1.0, 2.0]))
    for got, wanted in zip(changed.polar, place, strict=True):
        assert np.allclose(got[rows], wanted, atol=1e-5)
    assert np.allclose(changed.doppler_mps[rows], [-4.0, 5.0], atol=1e-4)
    assert np.allclose(changed.strength_db[rows], [1.0, 2.0])
    others = np.setdiff1d(np.arange(len(radar)), rows)
    assert changed.raw[others].tobytes() == radar.raw[others].tobytes()
    if layout == "nuscenes":  # the speed over ground changes by as much
        before, after = (
            (r.points["vx_comp"][rows] ** 2 + r.points["vy_comp"][rows] ** 2) ** 0.5 for r in (radar, changed)
        )
        assert not np.allclose(before, after)
    if layout == "points":  # a signal falls with the fourth power of the range, a cross-section does not
        louder = np.array([1.0, 2.0]) - radar.strength_db[rows]
        fainter = -40.0 * np.log10(place[0] / radar.polar[0][rows])
        assert np.allclose(changed.points["snr"][rows] - radar.points["snr"][rows], louder + fainter, atol=1e-3)


def test_a_scan_is_encoded_as_the_serializer_of_rosbags_does() -> None:
    scan = in_layout(drive()[0], "scan").radars[0]
    for frame in ("r", "radar", "radar_front"):
        data = encode_radar(replace(scan, frame_id=frame))
        assert codec.encode(RADAR_SCAN, codec.decode(RADAR_SCAN, data)) == data


def test_tracks_are_read_and_written() -> None:
    points = np.zeros(2, TRACK)
    points["x"], points["vx"], points["uuid"][1], points["size_covariance"] = [3.0, 4.0], -2.0, 7, 0.5
    tracks = Radar("/tracks", 5_000_000_007, "radar", points, type=RADAR_TRACKS)
    again = radar_from_msg("/tracks", codec.decode(RADAR_TRACKS, encode_radar(tracks)))
    assert again.points.tobytes() == points.tobytes() and again.tracks
    assert again.doppler_mps.tolist() == [-2.0, -2.0]


@pytest.mark.parametrize("layout", ["points", "scan"])
def test_a_bag_gives_lidar_and_radar_each_in_its_place(tmp_path: Path, layout: str) -> None:
    write_bundles(tmp_path / "bag", [in_layout(bundle, layout) for bundle in drive()])
    with BagSource(tmp_path / "bag") as source:
        read = list(source)
        assert source.roles["lidar"] == (CLOUD_TOPIC,) and source.roles["radar"] == (RADAR_TOPIC,)
    for bundle, made in zip(read, drive(), strict=True):
        assert [type(cloud) for cloud in bundle.clouds] == [Cloud] and [type(r) for r in bundle.radars] == [Radar]
        assert len(bundle.radars[0]) == len(made.radars[0]) and bundle.radar_topics == {RADAR_TOPIC}
    with BagSource(tmp_path / "bag", require={"radar": ("/r",)}) as source:
        alone = next(iter(source))  # a stack that takes the radar alone: the cloud is there to look at
    assert source.lead == RADAR_TOPIC and not alone.clouds and len(alone.extra_clouds) == 1
    with BagSource(tmp_path / "bag", require={"lidar": ("/p",)}) as source:
        assert not next(iter(source)).radars


def test_no_mutation_of_one_sensor_touches_the_other(tmp_path: Path) -> None:
    bundle = drive()[0]
    of_lidar = MutationPipeline([PointsDropped()], 0, "r").derive(bundle)
    of_radar = MutationPipeline([RadarDetectionsDropped()], 0, "r").derive(bundle)
    assert of_lidar.broken is None and of_radar.broken is None
    assert of_lidar.followup.first.changed_topics(bundle) == {CLOUD_TOPIC}
    assert of_radar.followup.first.changed_topics(bundle) == {RADAR_TOPIC}
    sham = MutationPipeline([PointsPermuted()], 0, "r").derive(bundle)
    assert sham.broken is None and sham.followup.first.changed_topics(bundle) == {CLOUD_TOPIC, RADAR_TOPIC}
    write_bundles(tmp_path / "bag", drive())
    mutate_bag(tmp_path / "bag", [RadarDetectionsDropped(share=0.5)], tmp_path / "out")
    with BagSource(tmp_path / "out") as source:
        read = list(source)
    assert [len(b.radars[0]) for b in read] == [len(b.radars[0]) - round(len(b.radars[0]) * 0.5) for b in drive()]
    assert [b.cloud().points.tobytes() for b in read] == [b.cloud().points.tobytes() for b in drive()]


def test_detections_tell_the_motion_of_their_sensor() -> None:
    radar = drive()[0].radars[0]
    motion = sensor_motion(radar)
    assert motion is not None and np.allclose(motion.velocity_mps, [SPEED_MPS, 0.0], atol=0.1)
    assert motion.standing.sum() > 0.5 * len(radar)
    noise = np.random.default_rng(0).uniform(-20.0, 20.0, len(radar))
    assert sensor_motion(radar.moved(np.arange(len(radar)), doppler_mps=noise)) is None
    assert sensor_motion(radar.take(np.arange(5))) is None


def test_a_callable_gets_detections_in_its_frame() -> None:
    radar = drive()[0].radars[0]
    turned = TransformTree([Transform("base_link", "radar", pose_matrix((2.0, 0.0, 0.5), (0, 0, 0.5**0.5, 0.5**0.5)))])
    rows = as_radar(radar, "base_link", turned)
    assert rows.shape == (len(radar), 6) and rows.dtype == np.float32
    assert np.allclose(rows[:, :3], np.column_stack([2.0 - radar.xyz[:, 1], radar.xyz[:, 0], 0.5 + radar.xyz[:, 2]]))
    assert np.allclose(rows[:, 3], radar.doppler_mps, atol=1e-5)
    assert np.allclose(np.angle(np.exp(1j * (rows[:, 5] - radar.polar[1] - np.pi / 2))), 0.0, atol=1e-5)


def test_the_generated_drive_is_the_same_with_a_radar_and_repeats_itself() -> None:
    plain, made, again = next(generate_drive(1)), drive(3)[0], next(generate_drive(1, radar=front_radar()))
    assert plain.cloud().points.tobytes() == made.cloud().points.tobytes()
    assert again.radars[0].points.tobytes() == made.radars[0].points.tobytes()
    radar = made.radars[0]
    own = radar.doppler_mps + SPEED_MPS * np.cos(radar.polar[1])
    standing, oncoming = np.abs(own) < 0.3, own < -5.0
    assert standing.sum() > 200 and oncoming.sum() >= 5


def test_the_closed_loop_has_a_radar_for_a_stack_that_takes_one() -> None:
    rig = Rig.for_stack(load_stack("reference_radar"))
    assert rig.radar is not None and rig.lidar is None and rig.topics == {"radar": RADAR_TOPIC}
    ahead = Actor("car", "car", Pose(EGO.x_m + 20.0, EGO.y_m), 3.0)
    ego = replace(EGO, speed_mps=8.0)
    bundle, empty = (observed(scenario(*who), rig, ego) for who in ((ahead,), ()))
    assert bundle.radars[0].points.tobytes() == observed(scenario(ahead), rig, ego).radars[0].points.tobytes()
    found = _before_the_car(bundle)
    assert len(found) >= 4 and not len(_before_the_car(empty))
    assert np.allclose(found.doppler_mps, 3.0 - 8.0, atol=0.3)  # it is overtaken: it comes nearer by 5 m/s
    rain = observed(scenario(ahead, environment=Environment(rain=1.0)), rig, ego)
    assert len(rain.radars[0]) < len(bundle.radars[0])


def _before_the_car(bundle: Bundle) -> Radar:
    radar = bundle.radars[0]
    x, y, _ = radar.xyz.T
    return radar.take(np.flatnonzero((np.abs(x - 16.0) < 4.0) & (np.abs(y) < 1.5) & (radar.strength_db > -15.0)))


def test_nuscenes_has_its_radars(tmp_path: Path) -> None:
    root = trees.nuscenes(tmp_path, radar=True)
    with BagSource(Path(f"nuscenes:{root}"), require=("lidar", "radar")) as source:
        read = [bundle for bundle in source if bundle.radars]
    assert len(read) == trees.FRAMES and source.roles["radar"] == ("/RADAR_FRONT",)
    radar = read[0].radars[0]
    assert radar.fields[:6] == ("x", "y", "z", "dyn_prop", "id", "rcs") and radar.doppler_mps.tolist() == [-3.0, 2.0]
    assert read[0].transforms.lookup("base_link", "RADAR_FRONT")[:3, 3] == pytest.approx([3.4, 0.0, 0.5])
    out = Path(f"nuscenes:{tmp_path / 'out'}")
    mutate_bag(Path(f"nuscenes:{root}"), [RadarDetectionsDropped(share=0.5)], out)
    with BagSource(out, require=("lidar", "radar")) as source:
        assert [len(b.radars[0]) for b in source if b.radars] == [1] * trees.FRAMES


@pytest.mark.parametrize("layout", ["points", "scan"])
def test_evidence_holds_a_radar_as_one(tmp_path: Path, layout: str) -> None:
    source = in_layout(drive()[0], layout)
    followup = MutationPipeline([RadarDetectionsDropped()], 0, "r").derive(source).followup.first
    pair = Pair(0, 0, "r")
    write_evidence(tmp_path / "pair.mcap", pair, source, followup, {})
    again = read_source(tmp_path / "pair.mcap", pair, [CLOUD_TOPIC, RADAR_TOPIC])
    assert [c.topic for c in again.clouds] == [CLOUD_TOPIC] and [type(r) for r in again.radars] == [Radar]
    assert again.radars[0].points.tobytes() == source.radars[0].points.tobytes()
    both = read_evidence(tmp_path / "pair.mcap", pair)
    assert [len(b.radars[0]) for b in (both.source, both.followup)] == [len(b.radars[0]) for b in (source, followup)]
