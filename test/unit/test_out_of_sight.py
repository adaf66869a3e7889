# SPDX-License-Identifier: Apache-2.0
"""Things are taken out of clouds only where no picture of the same instant goes on to show them."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Transform, TransformTree
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.objects.object_moved import ObjectMoved
from mt_nodes.relations.mutations.objects.object_removed import ObjectRemoved
from mt_nodes.relations.mutations.objects.object_replaced import ObjectReplaced
from mt_nodes.relations.mutations.objects.out_of_sight import refuse_in_sight
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive

CAMERA = CameraSensor(width=320, height=240)
CHANGES = (ObjectRemoved, ObjectReplaced, ObjectMoved)


@lru_cache(maxsize=1)
def seen() -> Bundle:
    """One instant of a drive with a camera that looks ahead."""
    return next(iter(generate_drive(1, camera=CAMERA)))


def looking_back(bundle: Bundle) -> Bundle:
    """Return the instant with its camera turned about: it sees nothing of what is ahead."""
    [image] = bundle.images
    about_y = np.diag([-1.0, 1.0, -1.0, 1.0])  # of optical axes: x right, y down, z ahead
    tree = bundle.transforms.extended([Transform(image.frame_id, "camera_back", about_y)])
    infos = tuple(replace(info, frame_id="camera_back") for info in bundle.camera_infos)
    return replace(bundle, images=(replace(image, frame_id="camera_back"),), camera_infos=infos, transforms=tree)


def draw(mutation: Mutation, bundle: Bundle) -> object:
    rng = generator(3, "test", 0, 0, "0")
    return mutation.draw(rng, bundle, mutation.begin(rng, bundle))


@pytest.mark.parametrize("kind", CHANGES)
def test_what_a_camera_sees_is_left_alone(kind: type[Mutation]) -> None:
    with pytest.raises(NotApplicable, match=r"image goes on to show.*\d+ of \d+ of its returns.*pictures: stay"):
        draw(kind(pictures="refuse"), seen())  # type: ignore[call-arg]


@pytest.mark.parametrize("kind", CHANGES)
def test_clouds_alone_change_when_that_is_asked_for_and_where_no_camera_looks(kind: type[Mutation]) -> None:
    for mutation, bundle in (
        (kind(pictures="stay"), seen()),  # type: ignore[call-arg]
        (kind(), looking_back(seen())),
        (kind(), replace(seen(), images=(), camera_infos=())),
    ):
        drawn = draw(mutation, bundle)
        followup = mutation.apply(bundle, drawn)  # type: ignore[arg-type]
        assert mutation.guarantee(bundle, followup, drawn) is None  # type: ignore[arg-type]
        assert followup.first.changed_topics(bundle) == {bundle.clouds[0].topic}


def test_a_camera_of_which_too_little_is_known_may_see_it() -> None:
    with pytest.raises(NotApplicable, match="CameraInfo"):
        draw(ObjectRemoved(), replace(seen(), camera_infos=()))
    lost = replace(seen(), transforms=TransformTree())
    [cloud] = lost.clouds
    with pytest.raises(NotApplicable, match="where the camera stands"):
        refuse_in_sight(lost, cloud, np.array([[10.0, 0.0, 0.0]]))


def test_what_moves_into_sight_is_not_moved() -> None:
    """The old place alone would let a thing beside the camera's view appear in clouds amid it."""
    bundle = seen()
    [cloud] = bundle.clouds
    beside, ahead = np.array([[0.0, 10.0, 0.0]]), np.array([[10.0, 0.0, 0.0]])
    refuse_in_sight(bundle, cloud, beside)
    with pytest.raises(NotApplicable, match="1 of 2"):
        refuse_in_sight(bundle, cloud, np.concatenate([beside, ahead]))
    mutation = ObjectMoved(pictures="stay")
    drawn = draw(mutation, bundle)
    own = {name.partition("|")[2]: value for name, value in drawn.items()}  # type: ignore[attr-defined]
    touched = mutation.touched(cloud, own)
    assert len(touched) == len(own["rows"]) + len(own["lost"]) + len(own["put_rows"]) + len(own["put_new_rows"])
