# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from drives import Points, equal, on_the_road
from hypothesis import given
from hypothesis import strategies as st
from test_reference import block, road

from mt_nodes.base import params, plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.data.outputs import Control, Detections, Diagnostics, Output
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.reference.car_following import Following, Lead, eased
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.stacks.reference.driver import Driver
from mt_nodes.stacks.reference.lane_room import Corridor
from mt_nodes.stacks.reference.tracker import Tracker
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

TENTH_NS = 100_000_000
FAULTS = tuple(name for name, cls in plugins.catalogue("faults").items() if cls.stack == "driver")  # type: ignore[attr-defined]
LAW = Driver()._following
LANE = Corridor(0.0, half_width_m=1.0, free_half_m=1.9, front_m=2.5, near_m=8.0, far_m=20.0)
every_fault = pytest.mark.parametrize("name", FAULTS)
speeds, gaps, closings = st.floats(0.0, 20.0), st.floats(0.0, 60.0), st.floats(-10.0, 10.0)


@cache
def clouds() -> tuple[Points, ...]:
    return tuple(on_the_road(b.cloud()) for b in generate_drive(6, 1, replace(hdl_64e(), azimuths=900)))


def driven(driver: Driver, given: tuple[Points, ...] | None = None, period_ns: int = TENTH_NS) -> list[Output]:
    return [driver(cloud, stamp_ns=i * period_ns) for i, cloud in enumerate(given or clouds())]


def said(outputs: list[Output]) -> list[tuple[float, float]]:
    return [(o.control.speed_mps, o.control.yaw_rate_radps) for o in outputs if o.control is not None]


def planted(*faults: str) -> Driver:
    return params.build(Driver, {"faults": list(faults)}, "params")


def boxes(*rows: tuple[float, float, float, float, float]) -> Detections:
    """Return obstacles at x, y of a length, width and yaw."""
    x, y, length, width, yaw = np.array(rows, dtype=float).reshape(-1, 5).T
    size = np.column_stack([length, width, np.full(len(x), 1.5)])
    return Detections.make("base_link", 0, np.column_stack([x, y, 0.75 + 0 * x]), size, yaw)


def test_the_same_clouds_give_the_same_commands_in_whatever_order_points_come() -> None:
    first = said(driven(Driver()))
    assert len(first) == 6 and len(set(first)) == 6
    rng = np.random.default_rng(0)
    assert said(driven(Driver(), tuple(cloud[rng.permutation(len(cloud))] for cloud in clouds()))) == first
    driver = Driver()
    driven(driver, clouds()[::-1])
    driver.reset()
    assert said([driver(cloud, stamp_ns=(6 + i) * TENTH_NS) for i, cloud in enumerate(clouds())]) == first


def test_it_sees_what_its_tracker_sees() -> None:
    tracker = Tracker(sure_score=0.7)
    for i, (cloud, output) in enumerate(zip(clouds(), driven(Driver()), strict=True)):
        seen = tracker(cloud, stamp_ns=i * TENTH_NS)
        assert seen is not None and output.detections is not None and equal(seen, output.detections)
        assert output.path is not None and len(output.path.pose) == 21


def test_somebody_clear_is_reckoned_with_at_once_and_others_when_they_are_confirmed() -> None:
    near = np.concatenate([road(), block(8, 0, 0.5, 0.5, 1.7)])
    assert len(Tracker()(near, stamp_ns=0) or ()) == 0
    assert len(Tracker(sure_score=0.7)(near, stamp_ns=0) or ()) == 1
    assert len(Tracker(sure_score=0.999)(near, stamp_ns=0) or ()) == 0


@given(speeds, gaps, gaps, closings)
def test_a_longer_gap_is_never_a_reason_to_brake(speed: float, a: float, b: float, closing: float) -> None:
    near, far = (LAW.wanted_mps2(speed, 10.0, Lead(gap, closing, 0)) for gap in sorted((a, b)))
    assert -LAW.emergency_mps2 <= near <= far <= LAW.acceleration_mps2
    assert far <= max(LAW.wanted_mps2(speed, 10.0, None), -LAW.braking_mps2)


@given(speeds, gaps, closings, closings)
def test_who_comes_nearer_faster_is_never_a_reason_to_go(speed: float, gap: float, a: float, b: float) -> None:
    slow, fast = (LAW.wanted_mps2(speed, 10.0, Lead(gap, closing, 0)) for closing in sorted((a, b)))
    assert fast <= slow


@given(st.floats(0.0, 9.9))
def test_the_gap_that_is_kept_is_that_of_the_formula(speed: float) -> None:
    wished = LAW.standstill_m + LAW.time_gap_s * speed
    assert LAW.wanted_mps2(speed, 10.0, Lead(wished / np.sqrt(1.0 - (speed / 10.0) ** 4), 0.0, 0)) == pytest.approx(0.0)


def test_all_brakes_are_used_when_little_time_is_left() -> None:
    assert LAW.wanted_mps2(2.0, 10.0, Lead(20.0, 13.0, 0)) > -LAW.emergency_mps2
    assert LAW.wanted_mps2(2.0, 10.0, Lead(20.0, 14.0, 0)) == -LAW.emergency_mps2
    assert LAW.most_change_mps2(Lead(20.0, 14.0, 0), 0.1) == pytest.approx(5.0)
    assert LAW.most_change_mps2(None, 0.1) == pytest.approx(1.0)


@given(st.floats(-9, 9), st.floats(-9, 9), st.floats(0, 9))
def test_acceleration_changes_by_no_more_than_allowed(wanted: float, before: float, most: float) -> None:
    new = eased(wanted, before, most)
    assert abs(new - before) <= most + 1e-9 and min(wanted, before) - 1e-9 <= new <= max(wanted, before) + 1e-9


def test_the_nearest_in_the_lane_is_followed() -> None:
    seen = boxes((30, 0, 4, 2, 0), (12, -1.2, 2, 0.6, 0), (6, 2.2, 2, 2, 0), (1, 0, 1, 1, 0))
    lead = LANE.lead(seen, LANE.extents(seen))
    assert lead == Lead(pytest.approx(8.5), 0.0, 1)
    bent = replace(LANE, curvature_1pm=-0.02)  # 6 m ahead the lane is 0.4 m to the right, 12 m ahead 1.4 m
    assert bent.lead(seen, bent.extents(seen)) == lead
    bent, seen = replace(LANE, curvature_1pm=0.02), seen.take(np.array([0, 1]))
    assert bent.lead(seen, bent.extents(seen)) is None
    assert LANE.lead(boxes(), LANE.extents(boxes())) is None


def test_the_corners_of_a_box_at_an_angle_are_empty() -> None:
    near, far, right, left = LANE.extents(boxes((10, 3, 4, 2, 0.0), (10, 3, 4, 2, np.pi / 4))).T
    assert (near[0], far[0], right[0], left[0]) == pytest.approx((8, 12, 2, 4))
    assert left[1] - right[1] == pytest.approx(2 * np.sqrt(2.5))


@given(st.lists(st.tuples(st.floats(0, 30), st.floats(-5, 5), st.floats(0.5, 5), st.floats(0.5, 3), st.floats(-1, 1))))
def test_room_is_the_same_in_a_mirror(rows: list[tuple[float, float, float, float, float]]) -> None:
    mirrored = [(x, -y, length, width, -yaw) for x, y, length, width, yaw in rows]
    right, left = LANE.room(LANE.extents(boxes(*rows)))
    assert LANE.room(LANE.extents(boxes(*mirrored))) == pytest.approx((left, right))
    assert LANE.half_width_m - 1e-9 <= min(right, left) and max(right, left) <= LANE.free_half_m


def test_on_a_free_road_it_goes_on_to_its_cruising_speed_and_straight_on() -> None:
    last = said(driven(Driver(cruise_mps=9.0), (road(),) * 150))
    assert last[0][0] > 8.0 and last[-1] == (pytest.approx(9.0, abs=0.05), 0.0)


def test_it_stops_for_somebody_right_before_it_and_stands() -> None:
    driver = Driver()
    last = said(driven(driver, (np.concatenate([road(), block(4.2, 0, 0.5, 0.5, 1.7)]),) * 30))
    assert last[-1][0] == 0.0 and all(later[0] <= now[0] for now, later in pairwise(last))
    assert driver._memory.acceleration_mps2 == 0.0, "it would have to let go of the brakes first"


def test_it_keeps_away_from_what_stands_beside_it_on_either_side() -> None:
    right, left = (
        said(driven(Driver(), (np.concatenate([road(), block(9, y, 2, 1, 1.5)]),) * 20))[-1][1] for y in (-1.8, 1.8)
    )
    assert right > 0.02 and right == pytest.approx(-left, rel=0.1)


def test_it_follows_the_bend_that_it_is_told() -> None:
    (speed, yaw_rate), *_ = said(driven(Driver(curvature_1pm=0.02), (road(),)))
    assert yaw_rate == pytest.approx(0.02 * speed, abs=1e-6)


def test_the_integral_is_limited_and_fades() -> None:
    driver = Driver(most_integral=0.5)
    driven(driver, (np.concatenate([road(), block(9, 1.8, 2, 1, 1.5)]),) * 60)
    assert driver._memory.integral == -0.5
    for i in range(60, 100):
        driver(road(), stamp_ns=i * TENTH_NS)
    assert abs(driver._memory.integral) < 0.1


@pytest.mark.parametrize("stamp_ns", [60 * 10**9, -(10**9)])
def test_after_a_jump_of_time_it_begins_anew(stamp_ns: int) -> None:
    driver = Driver()
    driven(driver)
    assert said([driver(clouds()[0], stamp_ns=stamp_ns)]) == said(driven(Driver())[:1])


def test_of_an_instant_that_comes_again_it_says_what_it_said() -> None:
    driver = Driver()
    once = driver(clouds()[0], stamp_ns=5)
    assert driver(clouds()[0], stamp_ns=5) is once
    assert said([driver(clouds()[1], stamp_ns=5 + TENTH_NS)]) == said(driven(Driver())[1:2])


def test_twice_the_time_is_twice_the_change() -> None:
    slower, usual = (driven(Driver(), (road(),) * 2, period)[1].control for period in (TENTH_NS // 2, TENTH_NS))
    assert slower is not None and usual is not None
    assert usual.speed_mps - 8.08 == pytest.approx(2 * (slower.speed_mps - 8.08), rel=0.2)


def test_a_stack_of_it_says_what_its_file_promises() -> None:
    stack = load_stack("reference_driver")
    assert stack.fault_kinds == ("lidar", "driver") and not stack.stateless
    assert CallableHost.make(stack).takes_stamp
    output = Driver()(clouds()[0], stamp_ns=0)
    assert isinstance(output.control, Control) and all(getattr(output, role) is not None for role in stack.answers)
    with pytest.raises(ValueError, match=r"\(5, 3\), expected \(N, 4\)"):
        Driver()(np.zeros((5, 3), dtype=np.float32))


def test_it_tells_the_same_motion_in_other_numbers() -> None:
    other = [output.control for output in driven(Driver(tells="ackermann"))]
    speed = 8.0
    for (twist_mps, yaw_rate), told in zip(said(driven(Driver())), other, strict=True):
        assert told is not None and told.speed_mps == twist_mps and np.isnan(told.yaw_rate_radps)
        assert twist_mps * np.tan(told.steering_rad) / 2.7 == pytest.approx(yaw_rate, abs=1e-5)
        assert speed + 0.1 * told.acceleration_mps2 == pytest.approx(twist_mps, abs=1e-5)
        speed = twist_mps
    assert load_stack("reference_driver_ackermann").params == {"tells": "ackermann"}


def test_faults_of_the_driver_and_of_its_eyes_can_be_planted_in_it_and_no_others() -> None:
    for name in ("integrator_not_reset", "grid_index_wrap"):
        made = with_faults(load_stack("reference_driver"), (name,))
        assert CallableHost.make(made).function.faults[0] == plugins.catalogue("faults")[name]()
    with pytest.raises(UsageError, match=r"'colours_swapped' is a fault of camera stacks.*azimuth_seam"):
        with_faults(load_stack("reference_driver"), ("colours_swapped",))
    with pytest.raises(UsageError, match=r"'clouds_counted' is a fault of driver stacks; stack 'reference_tracker'"):
        with_faults(load_stack("reference_tracker"), ("clouds_counted",))
    with pytest.raises(UsageError, match=r"'clouds_counted' is a fault of driver stacks; this one takes"):
        params.build(Detector, {"faults": ["clouds_counted"]}, "params")
    with pytest.raises(UsageError, match="sees: unknown parameter 'min_point'"):
        Driver(sees={"min_point": 3})(road())


def test_a_cloud_without_a_point_is_an_error_and_is_answered_all_the_same() -> None:
    empty, full = driven(Driver(), (np.empty((0, 4), dtype=np.float32), road()))
    assert empty.diagnostics == Diagnostics({"lidar": "a cloud without a point"}) and empty.control is not None
    assert full.diagnostics == Diagnostics({}), "nothing is at ERROR any more"


def test_a_silent_tracker_is_a_silent_driver() -> None:
    assert planted("empty_result_silent")(road(), stamp_ns=0).silent


@every_fault
def test_a_fault_is_quiet_about_the_same_clouds_and_touches_nothing(name: str) -> None:
    before = [cloud.copy() for cloud in clouds()]
    assert said(driven(planted(name))) == said(driven(planted(name)))
    assert all(np.array_equal(a, b) for a, b in zip(before, clouds(), strict=True))
    nothing = np.empty((0, 4), dtype=np.float32)
    answered = 1 if name == "thin_cloud_not_answered" else 3
    assert len(said(driven(planted(name), (nothing, road(), nothing)))) == answered


@every_fault
def test_a_fault_can_be_shown_to_people(name: str) -> None:
    cls = plugins.catalogue("faults")[name]
    assert plugins.summary_of(cls).endswith(".")
    assert all(row["help"] for row in params.describe(cls))


def test_the_law_is_what_the_driver_is_told() -> None:
    assert isinstance(LAW, Following) and Driver(time_gap_s=2.0)._following == replace(LAW, time_gap_s=2.0)
