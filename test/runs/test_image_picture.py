# SPDX-License-Identifier: Apache-2.0
"""``mt show`` draws images before and after, beside the clouds where both changed."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pytest

from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.camera.image_warps import ImageMirrored
from mt_nodes.relations.mutations.lidar.range_errors import RangeBiased
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.report.image_picture import changed_pictures
from mt_nodes.report.mutation_picture import draw, title
from mt_nodes.report.pictures.frame_inspection import MutatedFrame, inspect
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive


@lru_cache
def street() -> list[Bundle]:
    return list(generate_drive(1, camera=CameraSensor(width=200, height=150)))


def seen(mutation: Any) -> MutatedFrame:
    return inspect(street(), [mutation], "it", "it", 0, 0)


def panels(found: MutatedFrame) -> list[str]:
    figure: Any = draw(found)
    figure.canvas.draw()
    return [axes.get_title() for axes in figure.get_axes() if axes.get_title()]


def test_a_change_of_images_alone_shows_them_alone() -> None:
    found = seen(ImageMirrored())
    assert panels(found) == ["before, /sensing/camera/image", "after, /sensing/camera/image"]
    assert "images changed" in title(found)
    (pair,) = changed_pictures(found)
    assert (pair.after == pair.before[:, ::-1]).all() and not pair.boxes


def test_what_changes_both_is_shown_in_both_and_outlined() -> None:
    found = seen(ObjectAdded(where="bearing", bearing_rad=(-0.3, 0.3), range_m=(7.0, 20.0)))
    told = panels(found)
    assert told[:2] == ["before, /sensing/camera/image", "after, /sensing/camera/image"]
    assert any("from above" in title for title in told[2:])
    (pair,) = changed_pictures(found)
    assert pair.boxes[0].label == "pedestrian"
    figure: Any = draw(found)
    words = [text.get_text() for axes in figure.get_axes() for text in axes.texts]
    assert any(word.startswith("pedestrian, ") for word in words)


@pytest.mark.parametrize("mutation", [RangeBiased()], ids=["range_biased"])
def test_images_that_stay_are_not_drawn(mutation: Any) -> None:
    found = seen(mutation)
    assert changed_pictures(found) == ()
    assert not any("image" in title for title in panels(found))
