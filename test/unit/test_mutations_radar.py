# SPDX-License-Identifier: Apache-2.0
"""Mutations of radars: each keeps its promise in every layout, and its proof sees what breaks it; physics of echoes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from radar_drives import SPEED_MPS, drive, in_layout

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.cdr.further_messages import RADAR_TRACKS, TRACK
from mt_nodes.data.messages import Bundle
from mt_nodes.data.radar import Radar
from mt_nodes.data.radar_motion import directions
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.joint.fog_dust_smoke import Fog
from mt_nodes.relations.mutations.joint.rain_snow_hail import Hail, Rain
from mt_nodes.relations.mutations.lidar.scene_moves import CloudMirrored
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.mutations.objects.object_removed import ObjectRemoved
from mt_nodes.relations.mutations.radar.radar_clutter import RadarClutter
from mt_nodes.relations.mutations.radar.radar_errors import RadarDopplerErrors, RadarPlaceErrors
from mt_nodes.relations.mutations.radar.radar_ghosts import RadarGhosts
from mt_nodes.relations.mutations.radar.radar_losses import (
    RadarDetectionsDropped,
    RadarInterference,
    RadarTargetsMissed,
)
from mt_nodes.relations.mutations.radar.weaker_echoes import rain_db_per_km, remaining
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.world.scene.drive import RADAR_TOPIC
from mt_nodes.world.scene.radar_model import front_radar

CAR = ObjectAdded(kind="car", where="bearing", range_m=(8.0, 30.0), bearing_rad=(-0.15, 0.15), yaw_rad=0.0, places=64)
MUTATIONS = (
    RadarClutter(),
    RadarClutter(moves="standing", poisson=True),
    RadarGhosts(),
    RadarGhosts(path="second_trace"),
    RadarDetectionsDropped(),
    RadarTargetsMissed(beyond_m=20.0),
    RadarInterference(width_deg=40.0),
    RadarDopplerErrors(bias_mps=0.5),
    RadarDopplerErrors(unambiguous_mps=5.0),
    RadarPlaceErrors(azimuth_offset_deg=0.5, range_step_m=0.25),
    Rain(rain_mm_per_h=50.0),
    CAR,
)


def derived(mutation: Mutation, bundle: Bundle, seed: int = 3) -> DerivedFollowup:
    return MutationPipeline([mutation], seed, "r").derive(bundle)


def named(mutation: Mutation) -> str:
    return type(mutation).__name__


@pytest.mark.parametrize("layout", ["points", "scan", "nuscenes"])
@pytest.mark.parametrize("mutation", MUTATIONS, ids=named)
def test_promises_are_kept_in_every_layout(mutation: Mutation, layout: str) -> None:
    bundle = in_layout(drive()[0], layout)
    found = derived(mutation, bundle)
    assert found.broken is None
    old, new = bundle.radars[0], found.followup.first.radars[0]
    assert new.points.tobytes() != old.points.tobytes() and type(new) is Radar and new.type == old.type
    assert derived(mutation, bundle).followup.first.radars[0].points.tobytes() == new.points.tobytes()
    if isinstance(mutation, ObjectAdded | Rain):
        assert RADAR_TOPIC in found.followup.first.changed_topics(bundle)
    else:
        assert found.followup.first.changed_topics(bundle) == {RADAR_TOPIC}
    if layout == "nuscenes" and len(new) >= len(old):
        assert len(np.unique(new.points["id"])) == len(new)


@pytest.mark.parametrize("spoilt", ["an old detection", "the last detection", "one more", "one less"])
@pytest.mark.parametrize("mutation", MUTATIONS, ids=named)
def test_proofs_see_what_breaks_the_promise(mutation: Mutation, spoilt: str) -> None:
    bundle = drive()[0]
    found = derived(mutation, bundle)
    radar = found.followup.first.radars[0]
    row = np.array([0 if spoilt == "an old detection" else len(radar) - 1])
    range_m, azimuth, elevation = (column[row] for column in radar.polar)
    broken = {
        "an old detection": radar.moved(row, (range_m + 3.0, azimuth + 1.5, elevation), np.array([30.0])),
        "the last detection": radar.moved(row, (range_m + 3.0, azimuth + 1.5, elevation), np.array([30.0])),
        "one more": radar.take(np.append(np.arange(len(radar)), 0)),
        "one less": radar.take(np.arange(1, len(radar))),
    }[spoilt]
    followup = Followup(((0, found.followup.first.with_clouds([broken])),), found.effects)
    assert mutation.guarantee(bundle, followup, found.draws[0]) is not None


def test_clutter_stays_out_of_the_region_and_stands_as_the_ground_does() -> None:
    found = derived(RadarClutter(detections=300, moves="standing"), drive()[0])
    added = found.followup.first.radars[0].take(np.arange(-300, 0))
    x, y, _ = (added.xyz + np.array([2.0, 0.0, 0.5])).T  # the radar's place in base_link
    assert not ((x > -1.0) & (x < 41.0) & (np.abs(y) < 11.0)).any()
    assert np.allclose(added.doppler_mps, -SPEED_MPS * directions(added)[:, 0], atol=0.5)
    counts = {
        len(derived(RadarClutter(poisson=True), drive()[0], seed).effects.added_points[RADAR_TOPIC])
        for seed in range(5)
    }
    assert len(counts) > 1 and all(50 < count < 160 for count in counts)


def test_a_mirror_image_lies_behind_a_wall_and_a_second_trace_at_twice_the_range() -> None:
    bundle = drive()[0]
    old = bundle.radars[0]
    for path in ("mirror", "second_trace"):
        found = derived(RadarGhosts(path=path), bundle)
        draw = found.draws[0]
        rows = draw[f"{RADAR_TOPIC}|like"]
        ghosts = found.followup.first.radars[0].take(np.arange(len(old), len(old) + len(rows)))
        assert np.allclose(ghosts.strength_db, old.strength_db[rows] - 10.0, atol=1e-4)
        if path == "second_trace":
            assert np.allclose(ghosts.polar[0], 2.0 * old.polar[0][rows], rtol=1e-5)
            assert np.allclose(ghosts.doppler_mps, 2.0 * old.doppler_mps[rows], atol=1e-4)
            continue
        normal, away = draw[f"{RADAR_TOPIC}|wall"][:2], draw[f"{RADAR_TOPIC}|wall"][2]
        before, behind = old.xyz[rows, :2] @ normal, ghosts.xyz[:, :2] @ normal
        assert (before < away).all() and np.allclose(before + behind, 2.0 * away, atol=1e-3)
        assert abs(abs(normal[1]) - 1.0) < 0.1 and 6.0 < away < 16.0  # the houses along the street


def test_few_of_the_strong_and_many_of_the_weak_are_missed() -> None:
    model = front_radar()
    assert model.detection_probability(np.array([21.0]))[0] == pytest.approx(0.9, abs=0.01)  # Richards, Swerling I
    assert remaining(np.array([12.0, 40.0]), 6.0).tolist() == pytest.approx(
        [0.0624 / 0.4404, 0.9945 / 0.9986], abs=1e-3
    )
    # Twice the range, a sixteenth of the power.
    ratio = model.snr_db(np.array([10.0, 10.0]), np.array([20.0, 40.0]))
    assert ratio[0] - ratio[1] == pytest.approx(12.04, abs=0.01)


@pytest.mark.parametrize(("ghz", "rate", "expected"), [(10.0, 1.0, 0.01217), (60.0, 1.0, 0.8606), (60.0, 10.0, 5.017)])
def test_rain_weakens_as_the_tables_of_the_itu_say(ghz: float, rate: float, expected: float) -> None:
    assert rain_db_per_km(rate, ghz) == pytest.approx(expected, rel=2e-3)  # P.838-3, table 5: kH, and alphaH 0.7656


def test_a_standing_car_has_the_rate_of_the_ground_and_one_that_goes_along_none() -> None:
    bundle = drive()[0]
    for mutation, rate in ((CAR, -SPEED_MPS), (replace(CAR, frame_id="base_link"), 0.0)):
        found = derived(mutation, bundle)
        count = int(found.effects.numbers["detections_on_object"])
        added = found.followup.first.radars[0].take(np.arange(-count, 0))
        assert count >= 4 and np.allclose(added.doppler_mps, rate * directions(added)[:, 0], atol=0.1)
        center, (length, width, _) = np.array(found.effects.added[0].center_m), found.effects.added[0].size_m
        off = np.abs(added.xyz[:, :2] + np.array([2.0, 0.0]) - center[:2])
        assert (off <= [length / 2 + 0.6, width / 2 + 1.2]).all()
    assert found.effects.numbers["points_on_object"] > 0  # the LiDAR sees the same car


def test_what_a_joint_change_does_to_a_radar_is_said() -> None:
    bundle = drive()[0]
    fog = derived(Fog(visibility_m=100.0), bundle)
    assert fog.broken is None and "less than 0.5 dB" in fog.effects.unchanged[RADAR_TOPIC]
    assert fog.followup.first.radars[0] is bundle.radars[0]
    with pytest.raises(NotApplicable, match="fog, dust and smoke weaken"):
        derived(Fog(visibility_m=100.0), replace(bundle, clouds=()))
    with pytest.raises(NotApplicable, match="what hail does to a radar is not known"):
        derived(Hail(), bundle)
    with pytest.raises(NotApplicable, match="what object_removed does to a radar is not known"):
        derived(ObjectRemoved(), bundle)
    with pytest.raises(NotApplicable, match="would go on to show the scene where it was"):
        derived(CloudMirrored(), bundle)


def test_interference_comes_in_bursts() -> None:
    pipeline, struck = MutationPipeline([RadarInterference(every=3)], 5, "r"), 0
    for bundle in drive(3):
        try:
            assert pipeline.derive(bundle).broken is None
            struck += 1
        except NotApplicable as reason:
            assert "no interference in frame" in str(reason)
    assert struck == 1


def test_tracks_get_no_company_but_may_be_lost() -> None:
    points = np.zeros(20, TRACK)
    points["x"], points["y"] = np.linspace(5.0, 50.0, 20), np.linspace(-9.0, 9.0, 20)
    tracks = Radar(RADAR_TOPIC, 1, "radar", points, type=RADAR_TRACKS)
    bundle = replace(drive()[0], radars=(tracks,))
    for mutation in (RadarClutter(), RadarGhosts(), RadarInterference(), CAR):
        with pytest.raises(NotApplicable, match="tracks"):
            derived(mutation, bundle)
    found = derived(RadarDetectionsDropped(share=0.5), bundle)
    assert found.broken is None and len(found.followup.first.radars[0]) == 10
