# SPDX-License-Identifier: Apache-2.0
"""Depth between and above beams: exact on planes, split at the picture's edges, whole where the picture has none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.world.camera.above_beams import above_beams
from mt_nodes.world.camera.depth_completion import between_beams

ROWS, COLUMNS = 24, 40
GREY = np.full((ROWS, COLUMNS, 3), 0.3, np.float32)
SKY_FREE = np.full((ROWS, COLUMNS), np.inf, np.float32)


def beams(every: int) -> np.ndarray:
    """The cells (h, w) that a beam in every so many rows measures."""
    measured = np.zeros((ROWS, COLUMNS), bool)
    measured[::every] = True
    return measured


def plane(ahead: float, aside: float, down: float) -> np.ndarray:
    """The ranges along rays of a pinhole to a plane with this inverse depth: linear in row and column."""
    row, column = np.mgrid[:ROWS, :COLUMNS].astype(np.float32)
    return (1.0 / (ahead + aside * column / COLUMNS + down * row / ROWS)).astype(np.float32)


@given(ahead=st.floats(0.02, 0.2), aside=st.floats(-0.01, 0.01), down=st.floats(0.0, 0.02), every=st.integers(2, 6))
def test_a_plane_between_beams_is_exact(ahead: float, aside: float, down: float, every: int) -> None:
    true_m, measured = plane(ahead, aside, down), beams(every)
    found = between_beams(np.where(measured, true_m, np.inf).astype(np.float32), measured, GREY, SKY_FREE)
    last = (ROWS - 1) // every * every
    assert np.allclose(found[: last + 1], true_m[: last + 1], rtol=1e-5)


def test_far_ground_is_one_surface_however_far_apart_its_returns_are() -> None:
    ground_m = (60.0 / (1.0 + np.arange(ROWS, dtype=np.float32)))[:, None] * np.ones(COLUMNS, np.float32)
    measured = beams(6)
    found = between_beams(np.where(measured, ground_m, np.inf).astype(np.float32), measured, GREY, ground_m)
    assert ground_m[1, 0] / ground_m[6, 0] > 2.0 and np.allclose(found[:19], ground_m[:19], rtol=1e-5)


@pytest.mark.parametrize("edge", [7, 9, 11])
def test_an_edge_between_beams_is_where_the_picture_has_it(edge: int) -> None:
    measured, light = beams(6), GREY.copy()
    light[:edge] = 0.8
    range_m = np.where(np.arange(ROWS)[:, None] < edge, np.float32(50.0), np.float32(8.0)) * np.ones((1, COLUMNS))
    found = between_beams(np.where(measured, range_m, np.inf).astype(np.float32), measured, light, SKY_FREE)
    assert (found[6:edge] == 50.0).all() and (found[edge:13] == 8.0).all()


def street() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ranges, topmost rows, which surfaces go on, light: a lorry left, far road right; beams up to row 12."""
    range_m = np.full((ROWS, COLUMNS), 10.0, np.float32)
    range_m[:, 20:] = 60.0
    light = np.full((ROWS, COLUMNS, 3), 0.3, np.float32)
    light[:, :20] = (0.5, 0.1, 0.1)
    continues = np.zeros((1, COLUMNS), bool)
    continues[:, :20] = True
    return range_m, np.full((1, COLUMNS), 12), continues, light


def test_a_bridge_over_a_lorry_and_the_road_has_the_range_of_the_road() -> None:
    range_m, top, continues, light = street()
    light[3:9] = (0.1, 0.1, 0.12)
    light[9:12, 20:] = (0.1, 0.1, 0.12)
    light[:3] = 0.95
    sky = np.zeros((ROWS, COLUMNS), bool)
    sky[:3] = True
    found = above_beams(range_m, top, continues, sky, light, np.full_like(range_m, 80.0))
    assert np.isinf(found[:2]).all() and (found[4:8] == 80.0).all(), "no seam above the lorry's side"
    assert (found[10:, 1:18] == 10.0).all()


def test_a_house_behind_a_car_goes_on_above_it() -> None:
    range_m, top, continues, light = street()
    range_m[:], continues[:], light[:, 20:] = 10.0, True, light[:, :20]
    range_m[:, 15:25], continues[:, 15:25], light[12:, 15:25] = 4.0, False, 0.9
    found = above_beams(range_m, top, continues, np.zeros((ROWS, COLUMNS), bool), light, np.full_like(range_m, 80.0))
    assert (found[1:11] == 10.0).all() and (found[13:, 16:24] == 4.0).all()


def test_what_is_measured_stays() -> None:
    range_m, top, continues, light = street()
    found = above_beams(range_m, top, continues, np.zeros((ROWS, COLUMNS), bool), light, np.full_like(range_m, 80.0))
    assert (found[12:] == range_m[12:]).all()
