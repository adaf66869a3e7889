# SPDX-License-Identifier: Apache-2.0
"""Clips of a recording for a video model; the model itself is in test/extras."""

from __future__ import annotations

import numpy as np
import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.relations.mutations.camera.diffusion_edit import ImageInstructed
from mt_nodes.runs.models.video_edits import VideoEditor, faded


def grey(value: int) -> np.ndarray:
    return np.full((2, 3, 3), value, np.uint8)


def test_pictures_that_two_clips_share_are_faded_from_one_to_the_other() -> None:
    made = faded([grey(0), grey(0), grey(0)], [grey(200), grey(200), grey(200), grey(90)])
    assert [int(picture[0, 0, 0]) for picture in made] == [50, 100, 150, 90]
    assert [int(picture[0, 0, 0]) for picture in faded([], [grey(7)])] == [7]


@pytest.mark.parametrize("overlap", [-1, 4, 9])
def test_a_clip_must_have_something_new(overlap: int) -> None:
    with pytest.raises(UsageError, match=f"overlap: got {overlap} of 4 pictures, expected 0 to 3"):
        VideoEditor(ImageInstructed(), 4, overlap)
