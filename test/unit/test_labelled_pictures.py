# SPDX-License-Identifier: Apache-2.0
"""Pictures of made-up streets, the squares that are cut out of them, and what counts as found in them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mt_nodes.data.outputs import ImageBoxes, Output
from mt_nodes.runs.models.detector_evaluation import picture_score
from mt_nodes.runs.models.labelled_pictures import PICTURE_CLASSES, LabelledPicture, labelled_picture
from mt_nodes.runs.models.picture_labels import AUGMENTATIONS, IGNORED, MOST, NOBODY, mutated, square


@pytest.fixture(scope="module")
def streets() -> list[LabelledPicture]:
    return [labelled_picture(7, index) for index in range(3)]


def test_a_made_up_picture_is_the_same_again_and_another_one_is_another(streets: list[LabelledPicture]) -> None:
    again = labelled_picture(7, 0)
    assert np.array_equal(again.rgb, streets[0].rgb) and np.array_equal(again.box_px, streets[0].box_px)
    assert not np.array_equal(streets[1].rgb, again.rgb)


def test_boxes_are_around_what_pixels_show(streets: list[LabelledPicture]) -> None:
    whole = 0
    for street in streets:
        assert street.owner.max() == len(street.kind) - 1
        for row, box in enumerate(street.box_px):
            y, x = np.nonzero(street.owner == row)
            shown = np.array([x.min(), y.min(), x.max(), y.max()])
            assert (shown[:2] >= box[:2] - 0.51).all() and (shown[2:] <= box[2:] + 0.51).all()
            cut = (box[:2] < 0.0).any() or (box[2:] > (638.0, 318.0)).any()
            if not cut and street.visible[row] > 0.93 and len(x) > 300:
                whole += 1
                assert np.abs(shown - box).max() < 2.0, "nothing hides it, so its box is tight"
    assert whole >= 2


def test_what_is_hidden_is_known(streets: list[LabelledPicture]) -> None:
    visible = np.concatenate([street.visible for street in streets])
    assert (visible > 0.0).all() and (visible <= 1.0).all()
    assert (visible < 0.6).any() and (visible > 0.9).any()


@pytest.mark.parametrize("seed", range(8))
def test_a_square_has_its_boxes_where_its_pixels_are(seed: int) -> None:
    """Scaled, moved, mirrored: a white rectangle in a black picture stays in its box."""
    rgb = np.zeros((200, 300, 3), np.uint8)
    rgb[60:120, 100:180] = 255
    one = np.array([[99.5, 59.5, 179.5, 119.5]])
    whole = LabelledPicture(rgb, one, np.array([1]), np.ones(1), np.zeros((200, 300), np.int64))
    pixels, objects = square(whole, 128, np.random.default_rng(seed))
    assert objects.shape == (MOST, 5) and (objects[1:, 0] == NOBODY).all()
    y, x = np.nonzero(pixels.min(axis=2) > 127)
    if objects[0, 0] == NOBODY:
        assert not len(x)
        return
    shown = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])
    assert np.abs(shown - objects[0, 1:]).max() <= 1.0


def test_what_hardly_shows_is_neither_to_be_found_nor_wrong() -> None:
    rgb = np.zeros((200, 300, 3), np.uint8)
    box = np.array([[99.5, 59.5, 179.5, 119.5]])
    hidden = LabelledPicture(rgb, box, np.array([1]), np.array([0.1]), np.zeros((200, 300), np.int64))
    kinds = {int(square(hidden, 128, np.random.default_rng(seed))[1][0, 0]) for seed in range(12)}
    assert IGNORED in kinds and kinds <= {IGNORED, NOBODY}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_a_changed_picture_shows_the_same(name: str, streets: list[LabelledPicture]) -> None:
    changed = mutated(streets[0], name, np.random.default_rng(1))
    assert changed.rgb.shape == streets[0].rgb.shape and changed.rgb.dtype == np.uint8
    assert not np.array_equal(changed.rgb, streets[0].rgb)
    assert np.array_equal(changed.box_px, streets[0].box_px)


class Said:
    """Stands for a stack that says of every picture what it is told to."""

    def __init__(self, *answers: ImageBoxes | None) -> None:
        self._answers = list(answers)

    def __call__(self, message: object, transforms: object) -> Output:
        return Output(boxes=self._answers.pop(0))


def truth(street: LabelledPicture, **changed: object) -> ImageBoxes:
    labels = [PICTURE_CLASSES[kind] for kind in street.kind]
    return replace(ImageBoxes.make("", None, street.box_px, labels), **changed)  # type: ignore[arg-type]


def test_who_says_what_is_there_has_found_all_and_who_says_nothing_none(streets: list[LabelledPicture]) -> None:
    score = picture_score(Said(*map(truth, streets)), streets)  # type: ignore[arg-type]
    assert score.recall == 1.0 and score.precision == 1.0 and score.streets == 3
    assert sum(row.objects for row in score.classes) == sum(row.named for row in score.classes) >= 6
    nothing = picture_score(Said(*[ImageBoxes.none("", None)] * 3), streets)  # type: ignore[arg-type]
    assert nothing.recall == 0.0 and np.isnan(nothing.precision)


def test_boxes_elsewhere_are_wrong_and_other_classes_found_under_a_wrong_name(streets: list[LabelledPicture]) -> None:
    away = [truth(street, box_px=street.box_px + 1000.0) for street in streets]
    score = picture_score(Said(*away), streets)  # type: ignore[arg-type]
    assert score.recall == 0.0 and score.precision == 0.0
    dogs = [truth(street, label=np.array(["dog"] * len(street.kind))) for street in streets]
    score = picture_score(Said(*dogs), streets)  # type: ignore[arg-type]
    assert score.recall == 1.0 and sum(row.named for row in score.classes) == 0
