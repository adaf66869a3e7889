# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest
from drives import equal, generated, lost, with_noise

from mt_nodes import params, plugins
from mt_nodes.errors import UsageError
from mt_nodes.reference.detector import Detector
from mt_nodes.reference.faults.grid_index_wrap import GridIndexWrap
from mt_nodes.reference.faults.point_buffer_cap import PointBufferCap
from mt_nodes.reference.tracker import Tracker

FRAMES = 10
FULL_SCALE = 255.0
FAULTS = sorted(plugins.catalogue("faults"))
#: Those that points far away bring out, by letting the whole cloud decide; the others need the scene moved or emptied.
WHOLE_CLOUD = [
    "grid_index_wrap",
    "intensity_by_cloud_max",
    "order_dependence_over_budget",
    "point_buffer_cap",
    "threshold_scaled_by_cloud",
    "z_range_from_cloud",
]
OTHERS = [
    "azimuth_seam",
    "empty_result_silent",
    "fixed_range_gate",
    "mount_offset_twice",
    "right_side_threshold",
    "stale_result",
]
every_fault = pytest.mark.parametrize("name", FAULTS)


def planted(name: str) -> Detector:
    return params.build(Detector, {"faults": [name]}, "stack.params")


def losses(detector: Detector, count: int, intensity: float | None = None) -> list[str]:
    clouds = generated(FRAMES)
    return [
        text
        for i, cloud in enumerate(clouds)
        for text in lost(detector(cloud), detector(with_noise(cloud, count, 100 + i, intensity)))
    ]


def test_they_are_found() -> None:
    assert sorted([*WHOLE_CLOUD, *OTHERS]) == FAULTS


@every_fault
def test_a_fault_is_quiet_when_nothing_or_only_the_order_changes(name: str) -> None:
    detector = planted(name)
    for i, cloud in enumerate(generated(FRAMES)):
        source = detector(cloud)
        assert equal(source, detector(cloud.copy()))
        assert equal(source, detector(cloud[np.random.default_rng(i).permutation(len(cloud))]))
        # A fixed gate and a raised threshold leave fewer to be seen; the others hide nothing of a plain scene.
        assert len(source) >= (8 if name in WHOLE_CLOUD else 4)


@pytest.mark.parametrize("name", WHOLE_CLOUD)
def test_a_fault_loses_obstacles_to_noise_far_away(name: str) -> None:
    intensity = FULL_SCALE if name == "intensity_by_cloud_max" else None
    assert losses(planted(name), 1000, intensity)


def test_ten_retro_reflectors_suffice_for_intensity_and_dim_noise_does_not() -> None:
    detector = planted("intensity_by_cloud_max")
    assert losses(detector, 10, FULL_SCALE)
    assert losses(detector, 1000) == []


@pytest.mark.parametrize("intensity", [None, FULL_SCALE])
def test_the_honest_detector_loses_nothing_to_any_of_it(intensity: float | None) -> None:
    assert losses(Detector(), 1000, intensity) == []


@every_fault
def test_a_fault_does_not_touch_the_cloud(name: str) -> None:
    cloud = generated(FRAMES)[0].copy()
    planted(name)(cloud)
    assert np.array_equal(cloud, generated(FRAMES)[0])


@every_fault
def test_a_fault_stands_an_empty_cloud(name: str) -> None:
    found = planted(name)(np.empty((0, 4), dtype=np.float32))
    assert found is None if name == "empty_result_silent" else len(found) == 0


@every_fault
def test_a_fault_can_be_shown_to_people(name: str) -> None:
    cls = plugins.catalogue("faults")[name]
    assert plugins.summary_of(cls).endswith(".")
    assert params.describe(cls) or name in OTHERS
    assert all(row["help"] for row in params.describe(cls))


def test_faults_with_parameters_of_their_own_and_several_at_once() -> None:
    given = {"faults": [{"point_buffer_cap": {"capacity": 10}}, "grid_index_wrap"]}
    detector = params.build(Detector, given, "stack.params")
    assert detector.faults == (PointBufferCap(10), GridIndexWrap())
    assert len(detector(generated(FRAMES)[0])) == 0
    assert Detector(faults=("point_buffer_cap",)).faults == (PointBufferCap(),)
    assert params.build(Tracker, {"faults": ["point_buffer_cap"]}, "stack.params").faults == (PointBufferCap(),)


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (["point_bufer_cap"], r"params.faults\[0\]: no fault 'point_bufer_cap'; did you mean 'point_buffer_cap'"),
        ("point_buffer_cap", r"expected a list of fault names"),
        ([3], r"params.faults\[0\]: got 3, expected the name of a fault"),
        ([{"point_buffer_cap": {"size": 3}}], r"faults\[0\].point_buffer_cap: unknown parameter 'size'"),
        ([{"point_buffer_cap": {"capacity": 0}}], r"got 0, expected 1 to inf"),
    ],
)
def test_what_is_no_fault_is_refused(faults: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        params.build(Detector, {"faults": faults}, "params")


def test_the_grid_wraps_only_what_lies_beyond_it() -> None:
    cloud = np.float32([[39.9, 9.9, 1, 0], [-23.9, -15.9, 1, 0], [-108, 0, 1, 0], [20, 37, 1, 0], [20, -27, 1, 0]])
    steps = GridIndexWrap().plant(Detector()._steps)
    seen = steps.admit(cloud)
    assert np.array_equal(seen[:2], cloud[:2])
    assert seen[2:, :2] == pytest.approx(np.array([[20, 0], [20, 5], [20, 5]]))
