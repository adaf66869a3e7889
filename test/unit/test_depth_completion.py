# SPDX-License-Identifier: Apache-2.0
"""Depth between and above beams: exact on planes, split at the picture's edges, in bounds, by a user's network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.errors import UsageError
from mt_nodes.base.network_file import NetworkFile, TensorPort
from mt_nodes.data.images.codecs import Picture
from mt_nodes.world.camera.above_beams import above_beams
from mt_nodes.world.camera.depth import _cornered
from mt_nodes.world.camera.depth_bounds import bounds_of
from mt_nodes.world.camera.depth_completion import between_beams, colours_of
from mt_nodes.world.camera.depth_network import monocular_m
from mt_nodes.world.camera.guided_upsampling import follow_edges
from mt_nodes.world.camera.near_hulls import within_hulls
from mt_nodes.world.camera.upper_edges import UpperEdges, upper_edges

ROWS, COLUMNS = 24, 40
#: Height of a cell: some 3 cm at 10 m.
CELL_RAD = 0.0032
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
    return np.asarray(1.0 / (ahead + aside * column / COLUMNS + down * row / ROWS), np.float32)


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


def above(
    range_m: np.ndarray, top: np.ndarray, continues: np.ndarray, sky: np.ndarray, light: np.ndarray
) -> np.ndarray:
    """Ranges with what is above the beams; the background is 80 m away."""
    far_m = np.full_like(range_m, 80.0)
    return above_beams(range_m, top, continues, continues, sky, colours_of(light), far_m, CELL_RAD)[0]


def test_a_bridge_over_a_lorry_and_the_road_has_the_range_of_the_road() -> None:
    range_m, top, continues, light = street()
    light[3:9] = (0.1, 0.1, 0.12)
    light[9:12, 20:] = (0.1, 0.1, 0.12)
    light[:3] = 0.95
    sky = np.zeros((ROWS, COLUMNS), bool)
    sky[:3] = True
    found = above(range_m, top, continues, sky, light)
    assert np.isinf(found[:2]).all() and (found[4:8] == 80.0).all(), "no seam above the lorry's side"
    assert (found[10:, 1:18] == 10.0).all()


def test_a_house_behind_a_car_goes_on_above_it() -> None:
    range_m, top, continues, light = street()
    range_m[:], continues[:], light[:, 20:] = 10.0, True, light[:, :20]
    range_m[:, 15:25], continues[:, 15:25], light[12:, 15:25] = 4.0, False, 0.9
    found = above(range_m, top, continues, np.zeros((ROWS, COLUMNS), bool), light)
    assert (found[1:11] == 10.0).all() and (found[13:, 16:24] == 4.0).all()


def test_what_is_measured_stays() -> None:
    range_m, top, continues, light = street()
    found = above(range_m, top, continues, np.zeros((ROWS, COLUMNS), bool), light)
    assert (found[12:] == range_m[12:]).all()


def test_a_lorry_does_not_reach_far_aside_above_the_beams() -> None:
    range_m, top, continues, light = street()
    range_m[:, 8:], continues[:, 8:] = 20.0, False
    light[:12] = (0.5, 0.1, 0.1)
    light[12:, 8:] = 0.9
    found = above(range_m, top, continues, np.zeros((ROWS, COLUMNS), bool), light)
    assert (found[1:11, 1:12] == 10.0).all() and (found[:12, 20:] == 80.0).all()


def edge(picture_column: int, cells_column: int) -> tuple[np.ndarray, Picture]:
    """Shares of cells of 4 pixels that step in one column, and a picture that steps in a pixel beside it."""
    cells = np.where(np.arange(COLUMNS) < cells_column, np.float32(0.2), np.float32(0.9)) * np.ones((ROWS, 1))
    pixels = np.full((4 * ROWS, 4 * COLUMNS), 60, np.uint8)
    pixels[:, picture_column:] = 180
    return cells.astype(np.float32), Picture(pixels, "mono")


def followed(cells: np.ndarray, picture: Picture, least_step: float = 0.04) -> np.ndarray:
    """The share at every pixel."""
    height, width = picture.size
    whole = cv2.resize(cells, (4 * COLUMNS, 4 * ROWS))[:height, :width]
    values = np.rint(65535.0 * whole).astype(np.uint16)
    follow_edges(values, cells, picture, 4, least_step)
    return np.asarray(values / 65535.0)


def test_an_edge_within_cells_is_where_the_picture_has_it() -> None:
    cells, picture = edge(80, 20)
    share = followed(cells, picture)
    assert (share[4:-4, :80] < 0.25).all() and (share[4:-4, 80:] > 0.85).all()
    interpolated = cv2.resize(cells, (4 * COLUMNS, 4 * ROWS))
    assert np.abs(interpolated[10, 78:80] - 0.2).max() > 0.2, "between the centres of cells it is soft without"


@pytest.mark.parametrize("seed", range(8))
def test_no_share_leaves_those_of_the_cells_around(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.random((ROWS, COLUMNS), np.float32)
    picture = Picture(rng.integers(0, 256, (4 * ROWS - 3, 4 * COLUMNS - 1, 3), np.uint8), "bgr")
    share, near = followed(cells, picture), np.ones((3, 3), np.uint8)
    least, most = (cv2.resize(how(cells, near), (4 * COLUMNS, 4 * ROWS)) for how in (cv2.erode, cv2.dilate))
    height, width = picture.size
    assert (share >= least[:height, :width] - 1e-4).all() and (share <= most[:height, :width] + 1e-4).all()


def test_tiles_do_not_show_and_flat_shares_are_not_touched() -> None:
    rng = np.random.default_rng(1)
    cells, picture = edge(80, 20)
    picture = picture.with_pixels(rng.integers(0, 256, picture.size, np.uint8))
    assert np.abs(followed(cells, picture, 0.9) - cv2.resize(cells, (4 * COLUMNS, 4 * ROWS))).max() < 1e-5
    everywhere, tiled = followed(cells, picture, -1.0), followed(cells, picture)
    changed = tiled != followed(cells, picture, 0.9)
    assert changed.any() and (tiled == everywhere)[changed].all()


def bounds(range_m: np.ndarray, above: np.ndarray, far_m: float) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of cells of 0.005 rad that are all measured below the beams."""
    far = np.full_like(range_m, far_m)
    return bounds_of(range_m, (range_m, range_m), ~above, above, far, 0.005)


def test_bounds_hold_both_sides_of_an_edge_and_leave_open_what_no_beam_reaches() -> None:
    range_m = np.full((ROWS, COLUMNS), 40.0, np.float32)
    range_m[:, :20] = 8.0
    range_m[:6, 20:] = 80.0
    range_m[:2] = np.inf
    above = np.zeros((ROWS, COLUMNS), bool)
    above[:8] = True
    least, most = bounds(range_m, above, 80.0)
    assert (least <= range_m).all() and (most >= range_m).all()
    assert (least[10:, 20:22] == 8.0).all() and (most[10:, 19] == 40.0).all(), "either side of an edge"
    assert (least[12:-2, 30:38] == 40.0).all() and (most[12:-2, 30:38] == 40.0).all(), "what is measured is known"
    assert (least[4, 30:38] < 40.0).all() and np.isinf(most[4, 30:38]).all(), "the background may be anywhere"
    assert (least[4, 3:12] < 7.0).all() and (most[4, 3:12] > 10.0).all(), "a lorry's load"


class Network(NetworkFile):
    """Says a grey picture's brightness as inverse depth: no file is needed."""

    inputs = (TensorPort("picture", (1, 3, None, None), np.float32),)

    def _computed(self, given: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        return {"depth": given[0].mean(axis=1)}


def nearness(sign: float = 1.0) -> tuple[np.ndarray, Picture]:
    """Ranges of cells, and a picture that is the brighter the nearer what it shows is."""
    inverse = np.linspace(0.01, 0.1, ROWS)[:, None] * np.linspace(0.8, 1.0, COLUMNS)
    grey = np.clip(128 + sign * (2000.0 * inverse - 100.0), 0, 255)
    pixels = np.kron(grey, np.ones((8, 8)))[..., None].repeat(3, axis=2).astype(np.uint8)
    return (1.0 / inverse).astype(np.float32), Picture(pixels, "rgb")


def test_a_network_s_depth_is_fitted_to_the_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt_nodes.world.camera.depth_network._network", lambda path: Network(Path(path)))
    true_m, picture = nearness()
    measured, ahead = np.zeros_like(true_m, bool), np.ones_like(true_m)
    measured[8:] = True
    known = np.where(measured, true_m, np.float32(np.inf))
    known[12, ::2] *= 3.0  # what is seen through a window fits nothing
    assert monocular_m(picture, known, measured, ahead) is None, "no network is named"
    monkeypatch.setenv("MT_DEPTH_NETWORK", "tiny.onnx")
    found = monocular_m(picture, known, measured, ahead)
    assert found is not None and np.abs(found[0] / true_m - 1.0)[:8].max() < 0.1 and found[1] < 0.1
    with pytest.raises(UsageError, match="farther; expected inverse depth"):
        monocular_m(nearness(-1.0)[1], known, measured, ahead)


def test_a_tiny_onnx_file_gives_depth_above_the_beams(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="the test makes its network with it")
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    ports = [helper.make_tensor_value_info("picture", kind, [1, 3, 96, 160])]
    ends = [helper.make_tensor_value_info("depth", kind, [1, 1, 96, 160])]
    node = helper.make_node("ReduceMean", ["picture"], ["depth"], axes=[1], keepdims=1)
    model = helper.make_model(helper.make_graph([node], "g", ports, ends), opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 8
    onnx.save(model, str(tmp_path / "tiny.onnx"))
    monkeypatch.setenv("MT_DEPTH_NETWORK", str(tmp_path / "tiny.onnx"))
    true_m, picture = nearness()
    measured = np.arange(ROWS)[:, None] >= np.full((1, COLUMNS), 8)
    found = monocular_m(picture, true_m, measured, np.ones_like(true_m))
    assert found is not None and np.abs(found[0] / true_m - 1.0)[:8].max() < 0.1
    monkeypatch.setenv("MT_DEPTH_NETWORK", str(tmp_path / "none.onnx"))
    with pytest.raises(UsageError, match="which is no file; expected the path of an ONNX"):
        monocular_m(picture, true_m, measured, np.ones_like(true_m))


@pytest.mark.parametrize(("is_car", "found_m"), [(True, 8.0), (False, 40.0)])
def test_a_corner_of_a_near_object_that_gives_no_return_is_filled_if_the_picture_shows_it(
    is_car: bool, found_m: float
) -> None:
    """A dark pillar: the beams see past it, or through glass."""
    range_m = np.full((ROWS, COLUMNS), 40.0, np.float32)
    range_m[10:22, 8:30], range_m[4:10, 14:24] = 8.0, 8.0
    light = np.full((ROWS, COLUMNS, 3), 0.8, np.float32)
    light[range_m < 20.0] = 0.1
    light[6:10, 11:14] = 0.1 if is_car else 0.8
    found = _cornered(range_m, colours_of(light), SKY_FREE, 0.005)
    assert np.median(found[8:10, 11:14]) == found_m and (found[range_m < 20.0] == 8.0).all()
    assert (found[:, 32:] == 40.0).all() and (found[:3] == 40.0).all()


def parked_car(background: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A grey car 4 m away with a dark window, of which only the body, and two posts give returns.

    Returns:
        Ranges and light of the cells, and where the car's window and roof are, and how near all of it may be.
    """
    range_m, light = np.full((60, 120), background, np.float32), np.full((60, 120, 3), 0.1, np.float32)
    light[..., 1] = 0.25
    car, window = np.zeros((60, 120), bool), np.zeros((60, 120), bool)
    car[35:55, 20:100], car[18:35, 30:90] = True, True
    window[22:34, 34:86] = True
    light[car], light[window] = 0.4, 0.02
    range_m[35:55, 20:100] = range_m[18:35, 30:33] = range_m[18:35, 87:90] = 4.0
    return (
        range_m,
        light,
        car & (range_m > 4.0),
        within_hulls(range_m, colours_of(light), np.full_like(range_m, 1e3), 0.0055)[1],
    )


def test_a_roof_and_windows_without_returns_belong_to_the_near_car_and_what_is_above_it_does_not() -> None:
    range_m, light, lost, nearest_m = parked_car(50.0)
    assert lost.sum() > 700
    found, _, _ = within_hulls(range_m, colours_of(light), np.full_like(range_m, 1e3), 0.0055)
    assert (found[lost] == 4.0).mean() > 0.92
    assert np.count_nonzero((found != range_m) & ~lost) < 40, "what the car does not cover stays"
    assert (nearest_m[lost] == 4.0).all() and np.isinf(nearest_m[:17]).all(), "both sides of the doubt are kept"


def test_a_near_wall_without_anything_above_and_a_far_car_stay_as_they_are() -> None:
    wall, light = np.full((60, 120), 50.0, np.float32), np.full((60, 120, 3), 0.1, np.float32)
    wall[40:] = 4.0
    light[40:] = 0.4
    ground = np.full_like(wall, 1e3)
    for range_m in (wall, np.where(parked_car(50.0)[0] == 4.0, np.float32(30.0), np.float32(90.0))):
        found, nearest_m, _ = within_hulls(range_m, colours_of(light), ground, 0.0055)
        np.testing.assert_array_equal(found, range_m)
        assert np.isinf(nearest_m).all()


def lorry(roof: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Ranges, topmost rows, which go on, light: a dark lorry up to a row, trees nearly as dark beside and over it."""
    rng = np.random.default_rng(1)
    range_m, continues = np.full((ROWS, COLUMNS), 60.0, np.float32), np.zeros((1, COLUMNS), bool)
    range_m[:, 12:28], continues[:, 12:28] = 10.0, True
    light = np.full((ROWS, COLUMNS, 3), (0.02, 0.04, 0.01), np.float32)
    light += rng.uniform(0.0, 0.01, (ROWS, COLUMNS, 1)).astype(np.float32)
    light[roof:, 12:28] = (0.05, 0.02, 0.02)
    return range_m, np.full((1, COLUMNS), 14), continues, light


@pytest.mark.parametrize("roof", [6, 9, 13])
def test_trees_over_a_lorry_are_as_far_as_those_beside_it_and_the_lorry_ends_at_its_roof(roof: int) -> None:
    range_m, top, continues, light = lorry(roof)
    found = above(range_m, top, continues, np.zeros((ROWS, COLUMNS), bool), light)
    assert (found[roof:14, 12:28] == 10.0).all(), "the lorry up to its roof"
    assert (found[1 : roof - 1] == 80.0).all(), "no seam in the trees"


def edges_of(roof: int, over: int = 0, cell_rad: float = CELL_RAD) -> UpperEdges:
    """Upper edges of a lorry that is moved aside by some columns."""
    range_m, top, continues, light = (np.roll(a, over, axis=1) for a in lorry(roof))
    surface, sky = np.asarray(continues[0], np.int64), np.zeros((ROWS, COLUMNS), bool)
    surface = np.cumsum(np.abs(np.diff(surface, prepend=surface[0])))
    return upper_edges(range_m, top, surface, continues[0], sky, colours_of(light), cell_rad)


def test_a_thing_has_no_upper_edge_if_the_picture_cuts_it_off_or_it_is_higher_than_vehicles_or_like_a_house() -> None:
    assert (edges_of(6).row[12:28] == 5).all() and (edges_of(6).row[:12] == -1).all()
    assert (edges_of(6, over=12).row == -1).all(), "only one side of it is seen"
    assert (edges_of(6, cell_rad=0.06).row == -1).all(), "0.6 m a row: the edge would be 4.8 m above the returns"
    assert (edges_of(0).row == -1).all(), "it goes on up to the picture's edge"


def test_what_looks_like_the_thing_above_its_edge_may_be_part_of_it() -> None:
    range_m, top, continues, light = lorry(9)
    light[4:6, 14:26] = (0.05, 0.02, 0.02)
    far_m, sky = np.full_like(range_m, 80.0), np.zeros((ROWS, COLUMNS), bool)
    found, maybe_m = above_beams(range_m, top, continues, continues, sky, colours_of(light), far_m, CELL_RAD)
    assert (found[4:6, 14:26] == 80.0).all() and (maybe_m[4:6, 14:26] == 10.0).all()
    assert np.isinf(maybe_m[1:3]).all() and np.isinf(maybe_m[14:]).all()
