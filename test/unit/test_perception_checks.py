# SPDX-License-Identifier: Apache-2.0
"""Checks of tracks, predicted paths, traffic lights, lanes and free space, on outputs made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mt_nodes.base import params, plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import Effects, ImageBox, Volume
from mt_nodes.data.lanes import OWN, Lanes, SignalStates, Strip, joined_states
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.perception import FreeSpace, PredictedObjects, PredictedPath
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check

FRAME, STAMP = "base_link", 1_700_000_000_000_000_000
MIRROR = Effects(output_transform=np.diag([1.0, -1.0, 1.0, 1.0]), output_frame_id=FRAME)
NOTHING = Effects()
TREE = TransformTree([Transform("map", FRAME, np.eye(4))])
BUNDLE = Bundle(
    *(0, 0, STAMP),
    images=(Image("/image", STAMP, "camera", np.zeros((120, 400, 3), np.uint8), "bgr8"),),
    transforms=TREE,
)


def check(name: str, **given: Any) -> Check:
    made: Check = params.build(plugins.find("checks", name, "here"), given, "here")
    return made


def judged(one: Check, before: Output, after: Output, effects: Effects = NOTHING, bundle: Bundle = BUNDLE) -> Judgement:
    return one.judge(before, after, effects, bundle)


# --- lanes ------------------------------------------------------------------------------------------------------------


def lines(offset_m: float = 0.0, to_m: float = 20.0, names: tuple[str, ...] = ("left", "right")) -> Output:
    x = np.arange(4.0, to_m + 0.1)
    left = {"left": 1.8, "right": -1.8, "": 1.8}
    strips = [Strip(name, OWN, 0.0, np.column_stack([x, np.full(len(x), left[name] + offset_m)])) for name in names]
    return Output(lanes=Lanes.make(FRAME, STAMP, strips))


@pytest.mark.parametrize(
    ("after", "outcome", "measured"),
    [
        (lines(), Outcome.HOLDS, 0.0),
        (lines(0.15), Outcome.HOLDS, 0.15),
        (lines(0.25), Outcome.VIOLATED, 0.25),
        (lines(names=("left",)), Outcome.VIOLATED, None),
        (lines(to_m=6.0), Outcome.VIOLATED, None),
        (lines(to_m=14.0), Outcome.HOLDS, 0.0),
        (Output(lanes=Lanes.make(FRAME, STAMP)), Outcome.VIOLATED, None),
    ],
)
def test_lanes_are_compared_at_stations(after: Output, outcome: Outcome, measured: float | None) -> None:
    judgement = judged(check("lanes_kept"), lines(), after)
    assert (judgement.outcome, judgement.measured) == (outcome, measured)


def test_lanes_that_the_source_does_not_see_decide_nothing() -> None:
    none = Output(lanes=Lanes.make(FRAME, STAMP))
    assert judged(check("lanes_kept"), none, lines()).outcome is Outcome.NOT_APPLICABLE
    far = Output(lanes=Lanes.make(FRAME, STAMP, [Strip("left", OWN, 0.0, np.array([[50.0, 0.0], [60.0, 0.0]]))]))
    assert judged(check("lanes_kept"), far, far).outcome is Outcome.NOT_APPLICABLE


def test_the_horizon_of_lanes_on_a_map_is_that_of_the_vehicle() -> None:
    there = Bundle(0, 0, STAMP, transforms=TransformTree([Transform("map", FRAME, _moved(1000.0))]))
    on_map = Lanes.make("map", STAMP, [Strip("left", OWN, 0.0, np.array([[1004.0, 1.8], [1012.0, 1.8]]))])
    assert (
        judged(check("lanes_kept"), Output(lanes=on_map), Output(lanes=on_map), bundle=there).outcome is Outcome.HOLDS
    )


def _moved(x_m: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    matrix = np.eye(4)
    matrix[0, 3] = x_m
    return matrix


@pytest.mark.parametrize("effects", [MIRROR, Effects(image_mirrored=True)])
def test_lanes_change_sides_in_a_mirror(effects: Effects) -> None:
    bent = np.array([[4.0, 1.8], [10.0, 2.0], [16.0, 2.6]])
    other = bent * (1.0, -1.0)
    before = Output(lanes=Lanes.make(FRAME, STAMP, [Strip("left", OWN, 0.0, bent)]))
    after = Output(lanes=Lanes.make(FRAME, STAMP, [Strip("right", OWN, 0.0, other)]))
    assert judged(check("lanes_kept"), before, after, effects).outcome is Outcome.HOLDS
    assert judged(check("lanes_kept"), before, before, effects).outcome is Outcome.VIOLATED


# --- traffic lights ---------------------------------------------------------------------------------------------------

BOX = (100.0, 50.0, 110.0, 60.0)
FAR_BOX = (300.0, 50.0, 310.0, 60.0)


def lights(*rows: tuple[str, tuple[float, ...]], score: float = 1.0) -> Output:
    boxes = np.array([box for _, box in rows]).reshape(-1, 4)
    names = [""] * len(rows)
    states = [state for state, _ in rows]
    return Output(signals=SignalStates.make("camera", STAMP, names, states, None, [score] * len(rows), boxes))


def named(*rows: tuple[str, str]) -> Output:
    return Output(signals=SignalStates.make("map", STAMP, [n for n, _ in rows], [s for _, s in rows]))


@pytest.mark.parametrize(
    ("before", "after", "outcome", "word"),
    [
        (lights(("red", BOX)), lights(("red", BOX)), Outcome.HOLDS, "1 keep"),
        (lights(("red", BOX)), lights(("green", BOX)), Outcome.VIOLATED, "is green"),
        (lights(("red", BOX)), lights(), Outcome.VIOLATED, "not seen any more"),
        (lights(("red", BOX)), lights(("red", FAR_BOX)), Outcome.VIOLATED, "not seen any more"),
        (lights(("red", BOX)), lights(("unknown", BOX)), Outcome.VIOLATED, "is unknown"),
        (lights(("red", BOX)), lights(("red", BOX), score=0.1), Outcome.VIOLATED, "not seen any more"),
        (lights(("red", BOX)), lights(("red", BOX), ("green", FAR_BOX)), Outcome.HOLDS, "1 keep"),
        (lights(("unknown", BOX)), lights(("green", BOX)), Outcome.NOT_APPLICABLE, "known state"),
        (lights(("red", BOX), score=0.4), lights(), Outcome.NOT_APPLICABLE, "score of 0.5"),
        (lights(), lights(("red", BOX)), Outcome.NOT_APPLICABLE, "known state"),
        (named(("7", "red"), ("8", "green")), named(("8", "green"), ("7", "red")), Outcome.HOLDS, "2 keep"),
        (named(("7", "red")), named(("7", "green_left_arrow")), Outcome.VIOLATED, "'7' is green_left_arrow"),
        (named(("7", "red")), named(("9", "red")), Outcome.VIOLATED, "not seen any more"),
    ],
)
def test_states_of_lights(before: Output, after: Output, outcome: Outcome, word: str) -> None:
    judgement = judged(check("signal_states_kept"), before, after)
    assert judgement.outcome is outcome and word in judgement.reason


def test_lights_that_may_become_unknown_decide_nothing_when_all_are() -> None:
    lenient = check("signal_states_kept", may_become_unknown=True)
    assert judged(lenient, lights(("red", BOX)), lights(("unknown", BOX))).outcome is Outcome.NOT_APPLICABLE
    assert judged(lenient, lights(("red", BOX)), lights()).outcome is Outcome.NOT_APPLICABLE
    assert judged(lenient, lights(("red", BOX)), lights(("green", BOX))).outcome is Outcome.VIOLATED
    two = lights(("red", BOX), ("green", FAR_BOX))
    assert judged(lenient, two, lights(("red", BOX))).measured == 1


def test_arrows_change_sides_in_a_mirror() -> None:
    left, right = named(("7", "red+green_left_arrow")), named(("7", "green_right_arrow+red"))
    assert judged(check("signal_states_kept"), left, right, MIRROR).outcome is Outcome.HOLDS
    assert judged(check("signal_states_kept"), left, left, MIRROR).outcome is Outcome.VIOLATED


def test_places_tell_lights_without_names_apart() -> None:
    def placed(*rows: tuple[str, float]) -> Output:
        stops = [(x, 0.0, 0.0) for _, x in rows]
        return Output(signals=SignalStates.make("map", STAMP, [""] * len(rows), [s for s, _ in rows], stops))

    before = placed(("red", 10.0), ("green", 50.0))
    assert judged(check("signal_states_kept"), before, placed(("green", 50.5), ("red", 10.5))).outcome is Outcome.HOLDS
    assert (
        judged(check("signal_states_kept"), before, placed(("green", 50.5), ("red", 13.0))).outcome is Outcome.VIOLATED
    )


def test_an_added_light_is_found_in_its_state_and_is_none_of_the_source() -> None:
    one = check("signal_found", state="red")
    added = Effects(image_boxes=(ImageBox("/image", (95.0, 40.0, 115.0, 100.0), 1.0),))
    nobody, red, green = (lights(*rows) for rows in ((), (("red", BOX),), (("green", BOX),)))
    assert judged(one, nobody, red, added).outcome is Outcome.HOLDS
    assert judged(one, nobody, green, added).outcome is Outcome.VIOLATED
    assert judged(one, nobody, nobody, added).outcome is Outcome.VIOLATED
    assert judged(one, red, red, added).outcome is Outcome.VIOLATED, "it was there before"
    assert judged(one, nobody, nobody, NOTHING).outcome is Outcome.NOT_APPLICABLE
    hidden = Effects(image_boxes=(ImageBox("/image", (95.0, 40.0, 115.0, 100.0), 0.3),))
    assert judged(one, nobody, nobody, hidden).outcome is Outcome.NOT_APPLICABLE


def test_states_of_several_lamps_are_joined() -> None:
    assert joined_states([]) == "off"
    assert joined_states([("green", "left_arrow"), ("red", "circle")]) == "green_left_arrow+red"
    assert joined_states([("unknown", ""), ("red", "")]) == "unknown"


# --- free space -------------------------------------------------------------------------------------------------------


def grid(cells: np.ndarray[Any, Any] | None = None, origin: tuple[float, float, float] = (5.0, -2.0, 0.0)) -> Output:
    own = np.full((16, 40), -1, np.int8) if cells is None else cells.astype(np.int8)
    return Output(free_space=FreeSpace(FRAME, STAMP, 0.25, origin, own))


def street() -> np.ndarray[Any, np.dtype[np.int8]]:
    """Free up to a block of 4 x 4 occupied cells, 1 m²; unknown behind it."""
    cells = np.zeros((16, 40), np.int8)
    cells[6:10, 20:24] = 100
    cells[6:10, 24:] = -1
    return cells


def changed(rows: slice, columns: slice, value: int) -> Output:
    cells = street()
    cells[rows, columns] = value
    return grid(cells)


@pytest.mark.parametrize(
    ("after", "outcome", "measured"),
    [
        (grid(street()), Outcome.HOLDS, 0.0),
        (changed(slice(6, 10), slice(20, 24), 0), Outcome.VIOLATED, 1.0),
        (changed(slice(6, 10), slice(20, 21), 0), Outcome.HOLDS, 0.0),  # beside what is occupied still
        (changed(slice(6, 10), slice(20, 24), -1), Outcome.NOT_APPLICABLE, None),
        (changed(slice(6, 10), slice(20, 23), -1), Outcome.HOLDS, 0.0),
        (changed(slice(6, 10), slice(20, 24), 50), Outcome.HOLDS, 0.0),  # neither free nor occupied, and known
        (grid(), Outcome.NOT_APPLICABLE, None),
    ],
)
def test_what_is_occupied_does_not_become_free(after: Output, outcome: Outcome, measured: float | None) -> None:
    judgement = judged(check("occupied_cells_kept", at_most_m2=0.25), grid(street()), after)
    assert (judgement.outcome, judgement.measured) == (outcome, measured)


def test_a_grid_that_says_nothing_decides_nothing() -> None:
    for name in ("occupied_cells_kept", "free_cells_kept"):
        assert judged(check(name), grid(), grid(street())).outcome is Outcome.NOT_APPLICABLE
    outside = {"region": {"frame_id": FRAME, "box_m": {"x": [60, 70], "y": [-2, 2]}}}
    assert judged(check("occupied_cells_kept", **outside), grid(street()), grid(street())).outcome.decided is False


@pytest.mark.parametrize(
    ("after", "counts", "outcome", "measured"),
    [
        (grid(street()), True, Outcome.HOLDS, 0.0),
        (changed(slice(0, 4), slice(0, 4), 100), True, Outcome.VIOLATED, 1.0),
        (changed(slice(0, 4), slice(0, 4), -1), True, Outcome.VIOLATED, 1.0),
        (changed(slice(0, 4), slice(0, 4), -1), False, Outcome.HOLDS, 0.0),
        (changed(slice(0, 4), slice(0, 4), 100), False, Outcome.VIOLATED, 1.0),
        (grid(), False, Outcome.NOT_APPLICABLE, None),
        (grid(), True, Outcome.VIOLATED, 35.0),
    ],
)
def test_what_is_free_stays_free(after: Output, counts: bool, outcome: Outcome, measured: float | None) -> None:
    judgement = judged(check("free_cells_kept", unknown_counts=counts), grid(street()), after)
    assert (judgement.outcome, judgement.measured) == (outcome, measured)


def test_a_grid_with_another_origin_and_turn_says_the_same() -> None:
    """The same cells, the grid turned by a half: rows and columns run the other way."""
    turned = grid(street()[::-1, ::-1], (15.0, 2.0, np.pi))
    for name in ("occupied_cells_kept", "free_cells_kept"):
        assert judged(check(name, at_most_m2=0.0), grid(street()), turned).measured == 0.0


def test_cells_move_with_the_scene() -> None:
    mirrored = grid(street()[::-1])
    lopsided = street()
    lopsided[0:4, 0:4] = 100
    occupied = check("occupied_cells_kept", at_most_m2=0.0)
    assert judged(occupied, grid(lopsided), grid(lopsided[::-1]), MIRROR).outcome is Outcome.HOLDS
    assert judged(occupied, grid(lopsided), grid(lopsided), MIRROR).outcome is Outcome.VIOLATED
    assert judged(occupied, grid(street()), mirrored, MIRROR).outcome is Outcome.HOLDS


def test_where_something_was_removed_nothing_is_demanded() -> None:
    gone = Effects(removed=(Volume(FRAME, (10.5, 0.0, 0.5), (2.0, 2.0, 1.0)),))
    after = changed(slice(6, 10), slice(20, 24), 0)
    assert judged(check("occupied_cells_kept"), grid(street()), after, gone).outcome is Outcome.NOT_APPLICABLE


def test_thresholds_of_cells_in_the_wrong_order_are_refused() -> None:
    with pytest.raises(UsageError, match="free_percent 70 is not below occupied_percent 65"):
        check("occupied_cells_kept", free_percent=70.0)


def test_free_space_that_means_nothing_is_said() -> None:
    sound = grid(street()).free_space
    assert sound is not None and sound.broken == ""
    assert "2 cells" in replace(sound, cells=np.array([[101, -2, 100, -1]], dtype=np.int8)).broken
    assert "cells of 0 m" in replace(sound, resolution_m=0.0).broken
    assert "origin" in replace(sound, origin=(np.nan, 0.0, 0.0)).broken


# --- tracks and predicted paths ---------------------------------------------------------------------------------------


def objects(*rows: tuple[float, float, str, float], score: float = 1.0) -> Detections:
    """Rows of x, y, id and speed along x."""
    count = len(rows)
    return Detections.make(
        FRAME,
        STAMP,
        [(x, y, 0.8) for x, y, _, _ in rows],
        [(4.0, 1.8, 1.6)] * count,
        [0.0] * count,
        ["car"] * count,
        [score] * count,
        [own for _, _, own, _ in rows],
        [(v, 0.0, 0.0) for *_, v in rows],
    )


TRACKS = ((10.0, 2.0, "1", 5.0), (20.0, -3.0, "2", -5.0))


@pytest.mark.parametrize(
    ("rows", "outcome", "word"),
    [
        (TRACKS, Outcome.HOLDS, "2 tracks kept"),
        (TRACKS[:1], Outcome.VIOLATED, "lost car at (20.0, -3.0)"),
        (((10.0, 2.0, "7", 5.0), TRACKS[1]), Outcome.VIOLATED, "id 1 is 7"),
        (((10.0, 2.0, "2", 5.0), (20.0, -3.0, "1", -5.0)), Outcome.VIOLATED, "id 1 is 2"),
        (((10.0, 2.0, "1", 5.5), TRACKS[1]), Outcome.HOLDS, "changed by 0.50"),
        (((10.0, 2.0, "1", 7.0), TRACKS[1]), Outcome.VIOLATED, "changed by 2.00"),
        (((10.0, 2.0, "1", np.nan), TRACKS[1]), Outcome.VIOLATED, "no velocity any more"),
    ],
)
def test_tracks(rows: Any, outcome: Outcome, word: str) -> None:
    before, after = Output(tracks=objects(*TRACKS)), Output(tracks=objects(*rows))
    judgement = judged(check("tracks_kept"), before, after)
    assert judgement.outcome is outcome and word in judgement.reason


def test_tracks_without_ids_velocities_or_obstacles() -> None:
    renamed = Output(tracks=objects((10.0, 2.0, "b", 5.0), (20.0, -3.0, "a", -5.0)))
    assert judged(check("tracks_kept", identity=False), Output(tracks=objects(*TRACKS)), renamed).outcome.decided
    bare = Output(tracks=objects((10.0, 2.0, "", np.nan)))
    judgement = judged(check("tracks_kept"), bare, bare)
    assert (judgement.outcome, judgement.measured, judgement.unit) == (Outcome.HOLDS, 1, "tracks")
    none = Output(tracks=objects())
    assert judged(check("tracks_kept"), none, Output(tracks=objects(*TRACKS))).outcome is Outcome.NOT_APPLICABLE
    unsure = Output(tracks=objects(*TRACKS, score=0.4))
    assert judged(check("tracks_kept"), unsure, none).outcome is Outcome.NOT_APPLICABLE


def way(x: float, y: float, vx: float, vy: float = 0.0, to_s: float = 4.0, probability: float = 1.0) -> PredictedPath:
    time_s = np.arange(0.0, to_s + 0.1, 0.5)
    return PredictedPath(probability, time_s, np.column_stack([x + vx * time_s, y + vy * time_s]))


def predicted(*paths: tuple[PredictedPath, ...], rows: Any = TRACKS) -> Output:
    return Output(predictions=PredictedObjects(FRAME, STAMP, objects(*rows), paths))


SOURCE = predicted((way(10.0, 2.0, 5.0),), (way(20.0, -3.0, -5.0),))


@pytest.mark.parametrize(
    ("after", "given", "outcome", "measured"),
    [
        (SOURCE, {}, Outcome.HOLDS, 0.0),
        (predicted((way(10.0, 2.0, 5.2),), (way(20.0, -3.0, -5.0),)), {}, Outcome.HOLDS, 0.6),
        (predicted((way(10.0, 2.0, 5.5),), (way(20.0, -3.0, -5.0),)), {}, Outcome.VIOLATED, 1.5),
        (predicted((way(10.0, 2.0, 5.5),), (way(20.0, -3.0, -5.0),)), {"by": "ade"}, Outcome.HOLDS, 0.75),
        (predicted((), (way(20.0, -3.0, -5.0),)), {}, Outcome.VIOLATED, None),
        (predicted((way(10.0, 2.0, 5.0, to_s=2.0),), (way(20.0, -3.0, -5.0),)), {}, Outcome.VIOLATED, None),
        (predicted((way(10.0, 2.0, 5.0),), rows=TRACKS[:1]), {}, Outcome.VIOLATED, None),
    ],
)
def test_predicted_paths(after: Output, given: Any, outcome: Outcome, measured: float | None) -> None:
    judgement = judged(check("predicted_paths_close", **given), SOURCE, after)
    assert (judgement.outcome, judgement.measured) == (outcome, measured)


def test_one_of_several_paths_may_answer() -> None:
    turns = (way(10.0, 2.0, 5.0, 3.0, probability=0.6), way(10.0, 2.0, 5.0, probability=0.4))
    after = predicted(turns, (way(20.0, -3.0, -5.0),))
    assert judged(check("predicted_paths_close"), SOURCE, after).outcome is Outcome.VIOLATED
    assert judged(check("predicted_paths_close", modes="nearest"), SOURCE, after).outcome is Outcome.HOLDS
    sure = check("predicted_paths_close", modes="nearest", least_probability=0.5)
    assert judged(sure, SOURCE, after).outcome is Outcome.VIOLATED


def test_the_order_of_obstacles_and_other_time_steps_do_not_matter() -> None:
    coarse = way(10.0, 2.0, 5.0)
    coarse = PredictedPath(1.0, coarse.time_s[::2], coarse.place_m[::2])
    swapped = predicted((way(20.0, -3.0, -5.0),), (coarse,), rows=TRACKS[::-1])
    assert judged(check("predicted_paths_close"), SOURCE, swapped).measured == 0.0


def test_paths_move_with_the_scene() -> None:
    bends = predicted((way(10.0, 2.0, 5.0, 1.0),), rows=TRACKS[:1])
    other = predicted((way(10.0, -2.0, 5.0, -1.0),), rows=((10.0, -2.0, "1", 5.0),))
    assert judged(check("predicted_paths_close"), bends, other, MIRROR).outcome is Outcome.HOLDS
    wrong = predicted((way(10.0, -2.0, 5.0, 1.0),), rows=((10.0, -2.0, "1", 5.0),))
    assert judged(check("predicted_paths_close"), bends, wrong, MIRROR).outcome is Outcome.VIOLATED


def test_without_a_path_in_the_source_nothing_is_decided() -> None:
    bare = predicted((), ())
    assert judged(check("predicted_paths_close"), bare, SOURCE).outcome is Outcome.NOT_APPLICABLE
    late = PredictedPath(1.0, np.array([0.0, 9.0]), np.zeros((2, 2)))
    slow = predicted((late,), (late,))
    assert judged(check("predicted_paths_close"), slow, slow).outcome is Outcome.NOT_APPLICABLE


def test_predictions_that_mean_nothing_are_said() -> None:
    sound = SOURCE.predictions
    assert sound is not None and sound.broken == ""
    back = PredictedPath(1.0, np.array([1.0, 0.0]), np.zeros((2, 2)))
    assert "out of order" in PredictedObjects(FRAME, STAMP, objects(TRACKS[0]), ((back,),)).broken
    percent = way(0.0, 0.0, 1.0, probability=60.0)
    assert "probability of up to 60" in PredictedObjects(FRAME, STAMP, objects(TRACKS[0]), ((percent,),)).broken
    with pytest.raises(ValueError, match="paths of 1 obstacles for 2"):
        PredictedObjects(FRAME, STAMP, objects(*TRACKS), ((),))
