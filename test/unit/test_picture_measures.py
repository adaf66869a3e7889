# SPDX-License-Identifier: Apache-2.0
"""Measures of changed pictures: each sees what it is there to see, and the page has what it is made from."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from mt_nodes.base import plugins
from mt_nodes.base.params import build
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
RNG = np.random.default_rng(7)


@pytest.fixture(autouse=True)
def _scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))


@pytest.fixture(scope="module")
def things() -> Any:
    """A person in two frames of a generated drive."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(SCRIPTS))
        import picture_changes as changes

        import mt_nodes as mt

        frames = [mt.Frame(bundle) for bundle in generate_drive(2, camera=CameraSensor(480, 320))]
        place = {"where": "path", "range_m": [8.0, 12.0], "frame_id": "base_link"}
        return {"adult": changes.changes(frames, "object_added", place)}


def _noise(grain: float) -> Any:
    return np.clip(RNG.normal(120.0, grain, (160, 160, 3)), 0, 255).astype(np.uint8)


def test_a_classifier_tells_other_grain_and_not_the_same_one() -> None:
    from picture_features import GRAIN, corners_in, joined, told_apart, windows

    every = corners_in(np.ones((160, 160), bool))
    first, same, other = (joined([windows(_noise(s), every, i) for i in range(3)]) for s in (6.0, 6.0, 2.0))
    assert 0.4 < told_apart(first, same) < 0.6
    assert told_apart(first, other, (GRAIN,)) > 0.95
    assert np.isnan(told_apart(first, replace(other, group=np.zeros_like(other.group)))), "one group is no proof"


def test_grain_and_edges_are_measured_against_the_host() -> None:
    from picture_measure import edge_width_px, grain_of, grain_ratio

    host = grain_of(_noise(6.0))
    assert grain_ratio(grain_of(_noise(6.0)), host) == pytest.approx(1.0, abs=0.1)
    assert grain_ratio(grain_of(_noise(2.0)), host) < 0.5
    sharp = np.full((96, 96, 3), 40, np.uint8)
    sharp[:, 48:] = 200
    everywhere = np.ones((96, 96), bool)
    assert edge_width_px(cv2.GaussianBlur(sharp, (0, 0), 2.0), everywhere) > 1.5 * edge_width_px(sharp, everywhere)


def test_edges_of_the_source_are_not_new_and_a_seam_is() -> None:
    from picture_measure import _new_edges

    source = np.full((96, 96, 3), 40, np.uint8)
    source[:, 48:] = 160
    seam = (source * 0.5 + 60.0).astype(np.uint8)
    assert _new_edges(source, seam) == 0.0
    seam[:48] += 40
    assert _new_edges(source, seam) > 30.0


def test_returns_of_an_added_person_lie_in_its_silhouette(things: Any) -> None:
    from picture_measure import hits_in_silhouette

    found = hits_in_silhouette(things)
    assert found["adult"] > 95.0 and found["all, half a metre aside"] < 50.0


def test_a_broken_guarantee_is_counted_once_and_the_other_frames_go_on(
    things: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from picture_changes import Broken, changes

    from mt_nodes.base.errors import InfrastructureError
    from mt_nodes.relations.mutations.camera.image_tones import ExposureChanged

    frames = [change.source for change in things["adult"]]
    first = frames[0].bundle.index
    broken_once = lambda self, source, *rest: "it is too dark" if source.index == first else None  # noqa: E731
    monkeypatch.setattr(ExposureChanged, "guarantee", broken_once)
    broken = Broken()
    for _ in range(2):
        made = changes(frames, "exposure_changed", {}, broken=broken)
        assert [change.source.index for change in made] == [frames[1].index]
    assert len(broken) == 1 and f"frame {frames[0].index}: guarantee broken" in broken[0]
    assert capsys.readouterr().out.count("INVALID: exposure_changed") == 1
    with pytest.raises(InfrastructureError, match="it is too dark"):
        changes(frames, "exposure_changed", {})


def test_flicker_is_seen(things: Any) -> None:
    from picture_changes import hits_of
    from picture_flicker import steps

    made = things["adult"]
    still = {change.source.index: np.eye(4) for change in made}
    steady = steps(made, still, hits_of, False)
    brighter = replace(made[1])
    brighter.__dict__["after"] = np.clip(made[1].after.astype(int) + 50, 0, 255).astype(np.uint8)
    assert len(steady) and np.median(steps([made[0], brighter], still, hits_of, False)) > np.median(steady) + 25.0


def test_depth_that_stays_does_not_flicker(things: Any) -> None:
    from picture_flicker import depth_flicker

    frames = [change.source for change in things["adult"]]
    found = depth_flicker([frames[0], frames[0]])
    assert found["differs, where a return lies, %"] < 5.0
    assert depth_flicker(frames)["differs, elsewhere, %"] >= found["differs, elsewhere, %"]


def test_plain_fog_uses_the_range_of_a_box_and_of_the_nearest_return() -> None:
    from fog_pictures import plain_range_m

    pixel = np.array([[2, 5], [20, 5], [22, 6], [21, 5], [18, 3], [24, 3], [25, 9]])
    range_m = np.array([30.0, 8.0, 9.0, 50.0, 9.0, 9.0, 50.0])
    whole = plain_range_m(pixel, range_m, (12, 40), np.zeros((0, 4)))
    assert whole[5, 3] == 30.0 and whole[5, 21] == 50.0
    within = plain_range_m(pixel, range_m, (12, 40), np.array([[16.0, 2.0, 26.0, 9.0]]))
    assert within[5, 21] == 9.0 and within[5, 20] == 8.0 and within[5, 3] == 30.0
    assert within[9, 25] == 50.0, "what is farther in a corner of the box stays"
    empty = plain_range_m(pixel, range_m, (12, 40), np.array([[30.0, 0.0, 38.0, 8.0]]))
    assert (empty == whole).all(), "a box without returns is as far as what is around it"


def test_fog_at_lidar_range_is_the_law_where_returns_lie_and_the_mutation_elsewhere(things: Any) -> None:
    import fog_pictures as fog

    import mt_nodes as mt

    frame = things["adult"][0].source
    changed = mt.mutate(frame, "fog", visibility_m=40.0, patchiness=0.0)
    pictures = fog.pictures_in_fog(changed, fog.FogLight(changed, 40.0), np.zeros((0, 4)))
    assert len(pictures) == 3 + len(fog.COPIES) + len(fog.OUR_COPIES)
    ours, _, at_range = (p.astype(int) for p in pictures[:3])
    pixel = np.rint(fog.returns_in(frame)[1]).astype(int)
    covered = fog.near_return(pixel, ours.shape[:2])
    assert 0.3 < covered.mean() < 0.95
    np.testing.assert_array_equal(ours[~covered], at_range[~covered])
    own = np.abs(ours - at_range).max(axis=-1)[pixel[:, 1], pixel[:, 0]]
    assert np.median(own) <= 6, "in the same light and air, the same range shows the same"
    assert np.abs(pictures[5].astype(int) - at_range)[covered].max() > 1, "other air shows nothing"


def test_pairs_that_nobody_decided_agree_with_nobody() -> None:
    from fog_agreement import FogPair, agreement

    def pair(verdicts: tuple[str, ...], *lost: tuple[Any, ...]) -> Any:
        return FogPair("net", 80.0, 0, verdicts, 2, lost)

    box, other = ((1, 1, 9, 9),), ((5, 5, 20, 20),)
    made = [
        pair(("HOLDS",) * 8, *[()] * 8),
        pair(("VIOLATED", "HOLDS", "HOLDS", *["HOLDS"] * 5), box, (), (), (), (), (), box, box),
        pair(("VIOLATED", *["HOLDS"] * 7), other, (), (), other, (), (), other, ()),
    ]
    found = agreement(made)["net"]
    assert found["boxes that agree, %"] == found["boxes that agree with plain, %"] == pytest.approx(100 * 4 / 6)
    assert (found["boxes lost in ours alone"], found["boxes lost at LiDAR range alone"]) == (2, 0)
    assert found["boxes that stay after one step, %"] == pytest.approx(100 * 5 / 6)
    assert found["boxes that stay after one pixel, %"] == 100
    assert (found["sure boxes"], found["sure boxes that agree, %"]) == (5, 80), "what flips by itself decides nothing"
    undecided = agreement([pair(("NOT_APPLICABLE",) * 8, *[()] * 8)])["net"]
    assert np.isnan(undecided["boxes that agree, %"]) and np.isnan(undecided["sure boxes that agree, %"])


def test_forty_pairs_are_of_mutations_that_there_are() -> None:
    from picture_pairs import operators

    made = operators()
    assert sum(len(operator.at) for operator in made) == 40
    for operator in made:
        build(plugins.find("mutations", operator.mutation, operator.name), dict(operator.parameters), operator.name)
        assert set(operator.marks) <= {"before", "now", "albumentations", "imagecorruptions"}
        assert all(1 <= mark["mark"] <= 5 and mark["why"] for mark in operator.marks.values()), operator.name


def test_a_page_has_its_pictures_in_it_and_says_what_is_missing() -> None:
    from picture_pairs import Operator, Pair, page

    rgb = _noise(6.0)
    operator = Operator("fog <thick>", "fog", (0.5,), {"visibility_m": 60.0}, {"before": {"mark": 2, "why": "seams"}})
    made = [
        Pair(operator, 3, rgb, rgb, "", {"albumentations": ("RandomFog", rgb)}),
        Pair(operator, 3, rgb, None, "no free place", {}),
    ]
    text = page(made, "a drive", 100, 80)
    assert text.count("data:image/jpeg;base64,") == 4 and "no free place" in text and "seams" in text
    assert "fog &lt;thick&gt;" in text and "<thick>" not in text
    assert not re.search(r"(src|href)=\"(?!data:|#)", text), "it must not need another file"


def test_libraries_that_are_not_there_are_named() -> None:
    from picture_peers import described, installed, peers_of

    assert described({}) == "albumentations (not installed), imagecorruptions (not installed)"
    assert set(peers_of("fog")) == set(installed())
