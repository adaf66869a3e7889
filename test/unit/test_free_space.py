# SPDX-License-Identifier: Apache-2.0
"""Near vehicles without returns are where no beam passes on its way behind."""

from __future__ import annotations

import numpy as np

from mt_nodes.world.camera.free_space import Beams, NearThing, outlined
from mt_nodes.world.camera.model import CameraModel

STEP, ROWS, COLUMNS = 4, 90, 160
CAMERA = CameraModel(
    COLUMNS * STEP, ROWS * STEP, np.array([[700.0, 0, 320.0], [0, 700.0, 180.0], [0, 0, 1]]), np.zeros(0)
)
NEAR_M, FAR_M = 4.0, 40.0
#: Rows of the roof, of the topmost returns, and the columns of a car, in cells.
ROOF, BODY, LEFT, RIGHT = 40, 50, 40, 110
GROUND = np.where(np.arange(ROWS)[:, None] < 30, np.inf, 1e3) * np.ones((1, COLUMNS))
GREY = np.full((ROWS, COLUMNS, 3), 0.2, np.float32)
SENSOR = np.array([0.0, -0.1, -0.3])


def car() -> tuple[np.ndarray, NearThing]:
    """Return the ranges of the cells, far above the body's returns, and the car."""
    range_m = np.full((ROWS, COLUMNS), FAR_M, np.float32)
    range_m[BODY:, LEFT:RIGHT] = NEAR_M
    return range_m, NearThing.of(range_m == NEAR_M, range_m)


def beams_past(range_m: np.ndarray, roof: int, hole: slice = slice(0, 0)) -> Beams:
    """Return beams from ``SENSOR`` that pass above a roof at the car's distance and end far behind it."""
    row, column = (n.ravel() for n in np.mgrid[20:70:0.5, 10:150:0.5])
    blocked = (row >= roof) & (column >= LEFT) & (column < RIGHT)
    free = ~blocked & ~((column >= hole.start) & (column < hole.stop))
    pixel = np.column_stack([column[free], row[free]]) * STEP + (STEP - 1) / 2.0
    at_car = CAMERA.directions(pixel) * NEAR_M
    away = at_car - SENSOR
    far = SENSOR + away * (FAR_M / NEAR_M)
    seen = np.floor((CAMERA.project(far)[:, 0] + 0.5) / STEP).astype(np.int64)
    return Beams(SENSOR, far, np.linalg.norm(far, axis=1).astype(np.float32), seen)


def test_the_roof_reaches_up_to_the_lowest_beam_that_passes_it() -> None:
    range_m, thing = car()
    found, solid = outlined(
        range_m, range_m, range_m > 0, GREY, GROUND, [thing], [beams_past(range_m, ROOF)], (CAMERA, STEP)
    )
    inside = np.s_[ROOF + 1 : BODY, LEFT + 3 : RIGHT - 3]
    assert (np.abs(found[inside] - NEAR_M) < 0.1).all() and solid[inside].all()
    assert (found[: ROOF - 1] == FAR_M).all(), "what beams pass is free"
    assert (found[:, : LEFT - 1] == FAR_M).all() and (found[:, RIGHT + 1 :] == FAR_M).all()


def test_without_beams_that_pass_nothing_is_known() -> None:
    range_m, thing = car()
    low = beams_past(range_m, 0)  # nothing passes within the car's columns
    for beams in ([], [low]):
        found, _ = outlined(range_m, range_m, range_m > 0, GREY, GROUND, [thing], beams, (CAMERA, STEP))
        np.testing.assert_array_equal(found, range_m)


def test_a_gap_between_beams_is_no_chimney() -> None:
    range_m, thing = car()
    found, _ = outlined(
        range_m, range_m, range_m > 0, GREY, GROUND, [thing], [beams_past(range_m, ROOF, slice(70, 76))], (CAMERA, STEP)
    )
    assert (found[: ROOF - 1] == FAR_M).all()


def test_what_was_taken_for_the_car_is_not_where_beams_pass_it() -> None:
    bare, _ = car()
    range_m = bare.copy()
    range_m[25:BODY, LEFT:RIGHT] = NEAR_M  # as high as a van
    thing = NearThing.of(range_m == NEAR_M, range_m)
    found, _ = outlined(range_m, bare, bare > 0, GREY, GROUND, [thing], [beams_past(bare, ROOF)], (CAMERA, STEP))
    middle = np.s_[LEFT + 3 : RIGHT - 3]
    assert (found[26 : ROOF - 1, middle] == FAR_M).all()
    assert (np.abs(found[ROOF + 1 : BODY, middle] - NEAR_M) < 0.1).all()


def test_a_window_through_which_beams_pass_stays_glass() -> None:
    range_m, thing = car()
    bare = range_m.copy()
    bare[60:66, 60:90] = FAR_M
    some = beams_past(range_m, ROOF)
    row, column = (n.ravel() for n in np.mgrid[60:66:0.5, 60:90:0.5])
    at_car = CAMERA.directions(np.column_stack([column, row]) * STEP + 1.5) * NEAR_M
    far = SENSOR + (at_car - SENSOR) * (FAR_M / NEAR_M)
    seen = np.floor((CAMERA.project(far)[:, 0] + 0.5) / STEP).astype(np.int64)
    pane = Beams(SENSOR, far, np.linalg.norm(far, axis=1).astype(np.float32), seen)
    found, solid = outlined(range_m, bare, bare > 0, GREY, GROUND, [thing], [some, pane], (CAMERA, STEP))
    assert (found[61:65, 62:88] == NEAR_M).all(), "its frame encloses it"
    assert not solid[61:65, 62:88].any() and solid[70:, LEFT + 2 : RIGHT - 2].all()


def test_things_some_metres_away_stay_as_their_returns_have_them() -> None:
    range_m, _ = car()
    away = np.where(range_m == NEAR_M, np.float32(9.0), range_m)
    thing = NearThing.of(away == 9.0, away)
    found, solid = outlined(away, away, away > 0, GREY, GROUND, [thing], [beams_past(range_m, ROOF)], (CAMERA, STEP))
    np.testing.assert_array_equal(found, away)
    assert not solid.any()


def test_the_picture_s_edge_closes_a_window_that_beams_pass() -> None:
    """No beam tells the roof: they pass the window below it, and the paint above mirrors them."""
    range_m, thing = car()
    light = GREY.copy()
    light[ROOF:, LEFT:RIGHT] = 0.9
    beams = [beams_past(range_m, BODY)]
    found, _ = outlined(range_m, range_m, range_m > 0, light, GROUND, [thing], beams, (CAMERA, STEP))
    assert (found[ROOF + 1 : BODY, LEFT + 3 : RIGHT - 3] < 5.0).all() and (found[: ROOF - 1] == FAR_M).all()
