# SPDX-License-Identifier: Apache-2.0
"""What intensities mean: values and reflectivity both ways, recognition from the data, and what users say."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bundles import made_cloud
from sensor_layouts import SENSOR_LAYOUTS, as_sensor

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.plugins import catalogue
from mt_nodes.data.bags.bundles import BagSource, write_bundles
from mt_nodes.data.intensity.intensity_conventions import CONVENTIONS, IntensityConvention, convention, read_intensities
from mt_nodes.data.intensity.intensity_recognition import recognise
from mt_nodes.data.intensity.sensor_reading import SensorBook, SensorReading
from mt_nodes.data.messages import Cloud
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.evidence import evidence_name, read_source, write_evidence
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from intensity_severity import SIX, severities, spread

STREET = next(iter(generate_drive(1, lidar=replace(hdl_64e(), azimuths=600))))
SCALED = {name: 1.3e5 for name, row in CONVENTIONS.items() if np.isnan(row.white)}


def known(name: str) -> IntensityConvention:
    return replace(CONVENTIONS[name], white=SCALED.get(name, CONVENTIONS[name].white))


@lru_cache
def rendered(layout: str) -> Cloud:
    return as_sensor(STREET.cloud(), layout)


# --- values and reflectivity


@pytest.mark.parametrize("name", CONVENTIONS)
@given(share=st.floats(1e-3, 0.999), range_m=st.floats(0.5, 250.0))
def test_values_are_read_as_what_they_were_made_of(name: str, share: float, range_m: float) -> None:
    row, away_m = known(name), np.array([range_m])
    rho = float(row.reflectivity(np.array([share * min(row.top, 100.0 * row.white)]), away_m)[0])
    value = row.values(np.array([rho]), away_m)
    assert value[0] == pytest.approx(share * min(row.top, 100.0 * row.white), rel=1e-5)
    assert row.reflectivity(value, away_m)[0] == pytest.approx(rho, rel=2e-5)
    single = row.values(np.array([rho], np.float32), away_m.astype(np.float32))
    assert single.dtype == np.float32
    assert row.reflectivity(single, away_m.astype(np.float32))[0] == pytest.approx(rho, rel=2e-3)


@pytest.mark.parametrize("name", CONVENTIONS)
@given(share=st.floats(1e-3, 1.0), range_m=st.floats(0.5, 250.0))
def test_decibels_are_another_way_to_the_same_reflectivity(name: str, share: float, range_m: float) -> None:
    row = known(name)
    value, away_m = np.array([share * min(row.top, 2.0 * row.white)]), np.array([range_m])
    expected = 10.0 * np.log10(row.reflectivity(value, away_m)[0])
    assert row.decibels(value, away_m)[0] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_more_light_is_no_smaller_value(name: str) -> None:
    row, rho = known(name), np.geomspace(1e-3, 1e3, 500)
    values = row.values(rho, np.full(500, 10.0))
    assert (np.diff(values) >= 0.0).all() and values[-1] <= row.top


def test_the_figures_of_the_manuals() -> None:
    ten_m = np.array([10.0, 20.0])
    for name, white in (("velodyne", 100.0), ("livox", 150.0), ("hesai", 100.0), ("ouster_reflectivity", 100.0)):
        assert CONVENTIONS[name].values(np.array([1.0, 0.5]), ten_m).tolist() == [white, white / 2]
    for name in ("velodyne", "livox", "ouster_reflectivity", "robosense"):
        assert CONVENTIONS[name].values(np.array([300.0, 1e6]), ten_m).tolist() == pytest.approx([255.0, 255.0])
    signal = convention("ouster_signal@100000")
    assert signal.values(np.array([1.0, 1.0]), ten_m).tolist() == [1000.0, 250.0]
    assert CONVENTIONS["carla"].values(np.array([0.3, 0.3]), ten_m) == pytest.approx(np.exp(-0.004 * ten_m))
    assert all(row.source for row in CONVENTIONS.values())


# --- recognition


@pytest.mark.parametrize("layout", SENSOR_LAYOUTS)
def test_a_scene_is_as_bright_on_every_sensor(layout: str) -> None:
    """The sensor's scale is not told; where no manual has one, it is found to 10 %."""
    cloud, own = rendered(layout), SENSOR_LAYOUTS[layout]
    range_m = np.linalg.norm(STREET.cloud().xyz, axis=1)
    truth = STREET.cloud().points["intensity"] / 255.0
    assert not cloud.echoes.doubt
    for field in cloud.echoes.fields:
        expected = own.convention(field.name)
        assert field.convention.compensated is expected.compensated
        assert field.convention.white == pytest.approx(expected.white, rel=0.1)
        rho = field.reflectivity(cloud.points, slice(None), range_m)
        bright = truth > 0.1
        assert np.median(rho[bright] / truth[bright]) == pytest.approx(1.0, abs=0.1)


def test_what_an_ouster_has_beside_its_echoes_is_no_echo() -> None:
    echoes = rendered("ouster").echoes
    assert echoes.names == ("reflectivity", "intensity") and echoes.ambient == ("ambient",)
    assert echoes.leading.name == "reflectivity"


def test_reflectivity_in_place_of_signal_is_told_from_it() -> None:
    """Later drivers of Ouster may publish reflectivity as intensity."""
    points = rendered("ouster").points.copy()
    points["intensity"] = points["reflectivity"]
    fields = recognise("/points", points).fields
    assert {field.convention.name for field in fields} == {"ouster_reflectivity"}


def test_values_of_a_simulator_without_surfaces() -> None:
    range_m = np.linalg.norm(STREET.cloud().xyz, axis=1)
    points = np.zeros(len(range_m), SENSOR_LAYOUTS["kitti"].dtype)
    for name in "xyz":
        points[name] = STREET.cloud().points[name]
    points["intensity"] = np.exp(-0.004 * range_m)
    echoes = recognise("/points", points)
    assert echoes.leading.convention.name == "carla"
    np.testing.assert_allclose(echoes.reflectivity(points, slice(None), range_m.astype(np.float32)), 0.3, rtol=1e-3)


def test_a_guess_that_matters_is_refused_with_what_to_type() -> None:
    """A scene of which 90 % is below 62 may be dark on the scale of 255, or bright on that of 100."""
    points = rendered("velodyne").points.copy()
    rng = np.random.default_rng(1)
    points["intensity"] = np.rint(rng.uniform(10.0, 66.0, len(points)))
    for name, column in zip("xyz", rng.normal(size=(3, len(points))), strict=True):
        points[name] = column
    away = np.linalg.norm([points[name] for name in "xyz"], axis=0)
    for name in "xyz":
        points[name] *= rng.uniform(26.0, 29.0, len(points)) / away
    cloud = replace(STREET.cloud(), points=points)
    text = r"may be velodyne or hdl_64e, by which fog differs .* --set intensities\.\S+=NAME"
    with pytest.raises(NotApplicable, match=text):
        MutationPipeline([catalogue("mutations")["fog"]()], 1, "fog").derive(STREET.with_clouds([cloud]))
    said = cloud.read_as(SensorReading(cloud.topic, points, "hdl_64e"))
    assert (
        MutationPipeline([catalogue("mutations")["fog"]()], 1, "fog").derive(STREET.with_clouds([said])).broken is None
    )


@pytest.mark.parametrize(
    ("low", "high", "says"), [(-3.0, 10.0, "fit none"), (0.0, 1e6, "fit none"), (np.nan, np.nan, "no intensity of")]
)
def test_senseless_values_are_in_doubt(low: float, high: float, says: str) -> None:
    cloud = made_cloud("kitti")
    cloud.points["intensity"] = np.nan if np.isnan(low) else 5.0
    cloud.points["intensity"][:2] = low, high
    assert says in cloud.echoes.doubt


def test_an_episode_is_read_by_its_first_telling_cloud() -> None:
    book = SensorBook()
    empty, first = made_cloud("kitti", 50), rendered("kitti")
    dimmed = replace(first, points=first.points.copy())
    dimmed.points["intensity"] *= 255.0
    assert book.read(empty).reading is not book.read(first).reading
    assert book.read(dimmed).echoes.leading.convention.name == "kitti"
    assert dimmed.with_raw(dimmed.raw[:10]).reading is dimmed.reading
    assert replace(dimmed, points=dimmed.points.copy()).echoes.leading.convention.name == "hdl_64e"


# --- what users say


def test_what_the_user_says_stands_above_the_data(tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    write_bundles(bag, [STREET])
    said = {STREET.cloud().topic: "velodyne@80"}
    for names in (("lidar",), {"lidar": ("/points",)}):
        topic = "/points" if isinstance(names, dict) else STREET.cloud().topic
        with BagSource(bag, require=names, intensities={topic: "velodyne@80"}) as source:
            cloud = next(iter(source)).cloud()
        assert cloud.echoes.leading.convention.white == 80.0 and "as given" in cloud.echoes.assumption
    with pytest.raises(UsageError, match=r"no topic /other; it has /sensing/lidar/points"):
        BagSource(bag, intensities={"/other": "kitti"})
    with pytest.raises(UsageError, match=r"has no field signal; it has intensity"):
        recognise("/points", STREET.cloud().points, {"signal": "ouster_signal"})
    assert read_intensities(said, "x") == said


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"/points": "ouster_signa"}, r"intensities\./points: no intensity convention 'ouster_signa'; did you mean"),
        ({"/points": {"intensity": "kitti@-1"}}, r"/points\.intensity: got 'kitti@-1', expected NAME@WHITE"),
        ({"/points": 3}, r"intensities\./points: got 3, expected one of velodyne"),
        (["kitti"], r"expected a mapping such as \{/points: ouster_signal\}"),
    ],
)
def test_stack_files_say_it_in_the_known_words(value: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        load_stack("reference_detector", {"intensities": value})


def test_evidence_is_read_as_the_episode_was(tmp_path: Path) -> None:
    pair = Pair.parse("0/0/fog/0")
    bundle = STREET.with_clouds([rendered("waymo")])
    path = tmp_path / evidence_name(pair)
    write_evidence(path, pair, bundle, bundle, {})
    again = read_source(path, pair, [bundle.cloud().topic]).cloud()
    assert again.echoes == bundle.cloud().echoes and again.reading.dual_return is bundle.cloud().reading.dual_return
    plain = json.loads(json.dumps(again.reading.as_plain()))
    assert SensorReading.of_plain("/points", plain).fields == again.echoes


# --- severity


def test_severity_is_that_of_the_scene_on_six_conventions() -> None:
    rows = severities(STREET, SIX)
    assert len(rows) == 6 and min(row["lost"] + row["scattered"] for row in rows.values()) > 0.01
    assert spread(rows, "scattered") < 0.1 and spread(rows, "lost") < 0.1
    assert spread(rows, "car_over_scene") < 0.1


CHANGES = {
    "fog": {"visibility_m": 40.0},
    "snow": {},
    "wet_ground": {},
    "road_covered": {},
    "sun_glare": {"azimuth_rad": 0.0, "elevation_rad": 0.3, "half_angle_rad": 0.3, "false_share": 0.2},
    "spray": {},
    "ghost_reflections": {"strength": 0.9},
    "crosstalk": {"share": 0.02},
    "sector_blocked": {"attenuation": 0.4, "width_deg": 90.0},
    "noise_outside_roi": {"points": 300},
    "noise_inside_roi": {"points": 20},
    "object_added": {"kind": "car"},
    "intensity_changed": {"scale": 0.8, "noise": 0.0},
}


@pytest.mark.parametrize("name", CHANGES)
def test_reflectivity_and_signal_change_together(name: str) -> None:
    """After any change, both fields of an Ouster say the same reflectivity, as far as they are rounded."""
    source = STREET.with_clouds([rendered("ouster")])
    derived = MutationPipeline([catalogue("mutations")[name](**CHANGES[name])], 2, name).derive(source)
    assert derived.broken is None
    new = derived.followup.first.cloud()
    range_m = np.linalg.norm(new.xyz.astype(np.float64), axis=1)
    by_field = {f.name: f.convention.reflectivity(new.points[f.name].astype(float), range_m) for f in new.echoes.fields}
    signal, calibrated = by_field["intensity"], by_field["reflectivity"]
    changed = ~np.isin(new.raw, source.cloud().raw)
    telling = changed & (calibrated > 0.05) & (calibrated < 1.0) & (new.points["intensity"] > 20.0)
    assert changed.sum() > 15 and telling.sum() > 1
    assert np.abs(signal[telling] / calibrated[telling] - 1.0).max(initial=0.0) < 0.25
    assert (new.points["ambient"] == 300).all()
