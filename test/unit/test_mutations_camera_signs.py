# SPDX-License-Identifier: Apache-2.0
"""Signs and lights on posts: their faces, their plates, what clouds and pictures show of them."""

from __future__ import annotations

from functools import lru_cache, partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.images.codecs import Picture
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects.ground_shadow import ground_around
from mt_nodes.relations.mutations.objects.in_pictures import camera_from, shot_of, with_object
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.mutations.objects.picture_proof import sight_of
from mt_nodes.relations.mutations.objects.post_added import LightAdded, SignAdded
from mt_nodes.world.camera.depth import DepthMap
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.appearance import Surface
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.faces import SIGNS, face_of
from mt_nodes.world.scene.roadside import light_figure, light_mesh, sign_body, sign_figure, sign_mesh
from mt_nodes.world.scene.signals import SIGNALS, faces_of

NEAR: dict[str, Any] = {"range_m": (7.0, 12.0), "bearing_rad": (-0.45, -0.12)}


@lru_cache
def street() -> Bundle:
    return next(iter(generate_drive(1, camera=CameraSensor(width=640, height=480))))


def derive(mutation: ObjectAdded, seed: int = 4) -> tuple[Followup, Draw]:
    bundle = street()
    state = mutation.begin(generator(seed, "t", 0, None, 0), bundle)
    draw = mutation.draw(generator(seed, "t", 0, 0, 0), bundle, state)
    return mutation.apply(bundle, draw), draw


@pytest.mark.parametrize("mutation", [SignAdded(**NEAR), LightAdded(**NEAR)], ids=["sign", "light"])
def test_it_is_in_cloud_and_picture_and_proved(mutation: ObjectAdded) -> None:
    followup, draw = derive(mutation)
    assert mutation.guarantee(street(), followup, draw) is None
    (box,) = followup.effects.image_boxes
    assert box.label == mutation.image_label and box.visible > 0.6
    assert followup.effects.numbers["points_on_object"] >= 10


def test_no_two_faces_are_alike() -> None:
    faces = {name: face_of(name, sign.value) for name, sign in SIGNS.items()}
    for (one, a), (other, b) in combinations(faces.items(), 2):
        assert SIGNS[one].outline != SIGNS[other].outline or np.abs(a - b).mean() > 0.01, (one, other)
    assert all(face.min() >= -1e-6 and face.max() <= 1.0 and face.std() > 0.05 for face in faces.values())


@pytest.mark.parametrize(("sign", "value"), [(name, 60) for name, made in SIGNS.items() if made.value])
def test_a_number_is_on_the_face(sign: str, value: int) -> None:
    assert np.abs(face_of(sign, value) - face_of(sign, SIGNS[sign].value)).mean() > 0.005


def test_a_number_is_refused_where_there_is_none() -> None:
    with pytest.raises(UsageError, match="bears no number"):
        SignAdded(kind="stop", value=30)


@pytest.mark.parametrize("sign", SIGNS)
def test_rays_hit_the_plate_where_the_sign_is_and_nowhere_else(sign: str) -> None:
    """Seen from straight ahead, the plate has the outline's area, at its height, its face to the ego."""
    low_m = SIGNS[sign].low_m
    y, z = np.meshgrid(np.arange(-0.8, 0.8, 0.02), np.arange(low_m - 0.05, low_m + 1.2, 0.02))
    rays = np.zeros((y.size, 6), np.float32)
    rays[:, 0], rays[:, 1], rays[:, 2], rays[:, 3] = -8.0, y.ravel(), z.ravel(), 1.0
    range_m, hits = sign_figure(sign, 0).cast(rays, 0.01)
    place, normal = hits.xyz_m, hits.normal
    plate = place[:, 0] < -0.05
    x, up = np.array(SIGNS[sign].outline).T
    area = abs(np.dot(x, np.roll(up, 1)) - np.dot(up, np.roll(x, 1))) / 2.0
    assert plate.sum() * 0.02**2 == pytest.approx(area, rel=0.08)
    assert place[plate, 2].min() == pytest.approx(low_m, abs=0.05)
    assert low_m == pytest.approx({"chevrons": 0.8, "distance_marker": 0.3}.get(sign, 2.0))
    np.testing.assert_allclose(normal[plate][:, 0], -1.0, atol=1e-3)
    assert np.isfinite(range_m).any()


def test_letters_are_not_mirrored() -> None:
    """What is on the left of the face is at the left of who looks along x, which is where y is positive."""
    face = face_of("right_lane_must_turn_right", 0)
    rows, columns = (np.arange(n) + 0.5 for n in face.shape[:2])
    y, z = np.meshgrid(0.75 * (0.5 - columns / face.shape[1]), 2.75 - 0.75 * rows / face.shape[0])
    place = np.stack([np.full(y.size, -0.06), y.ravel(), z.ravel()], axis=1).astype(np.float32)
    surface = Surface(place, np.ones(len(place), np.float32), 0.75 / face.shape[1])
    painted = sign_figure("right_lane_must_turn_right", 0).paint(surface).albedo.reshape(face.shape)
    assert np.abs(painted - face).mean() < 0.2 * np.abs(painted - face[:, ::-1]).mean()


DARK = "out_of_order"


def test_no_lens_of_a_light_that_is_out_of_order_shines() -> None:
    albedo, glow = faces_of(DARK)
    assert glow.max() == 0.0 and albedo.max() < 0.2


@pytest.mark.parametrize("signal", sorted({*SIGNALS} - {DARK}))
def test_one_lens_shines_in_its_colour(signal: str) -> None:
    made, (albedo, glow) = SIGNALS[signal], faces_of(signal)
    rows = np.flatnonzero((glow.max(axis=2) > 0.5).any(axis=1)) / glow.shape[0] * made.lenses
    assert int(rows.min()) == int(rows.max()) == made.row
    red, green, blue = glow[glow.max(axis=2) > 0.5].mean(axis=0)
    assert {"red": red > 3 * green, "yellow": red > green > 3 * blue, "green": green > 2 * red}[made.colour]
    assert albedo.max() < 0.2


def test_an_arrow_shines_less_than_a_full_lens_and_points_to_the_left() -> None:
    full, arrow = (faces_of(name)[1][..., 1] > 0.1 for name in ("yellow", "yellow_arrow"))
    assert 0.15 * full.sum() < arrow.sum() < 0.7 * full.sum()
    columns = np.nonzero(arrow)[1]
    assert np.median(columns) < (arrow.shape[1] - 1) / 2.0


def test_what_shines_makes_no_difference_to_rays_but_to_cameras() -> None:
    (red, _), (green, _) = (derive(LightAdded(kind=kind, **NEAR)) for kind in ("red", "green"))
    assert red.first.clouds[0].raw.tobytes() == green.first.clouds[0].raw.tobytes()
    apart = np.abs(red.first.images[0].pixels.astype(int) - green.first.images[0].pixels.astype(int)).max(axis=2)
    assert (apart > 60).sum() > 10


def test_a_lit_lens_blooms_over_its_housing_and_a_dark_one_does_not() -> None:
    (red, _), (dark, _) = (derive(LightAdded(kind=kind, **NEAR)) for kind in ("red", DARK))
    lit, unlit = (one.first.images[0].pixels.astype(int) for one in (red, dark))
    apart = lit - unlit
    lens, around = lit.max(axis=2) > 200, (apart.max(axis=2) > 8) & (lit.max(axis=2) < 200)
    lens &= apart.max(axis=2) > 100
    assert lens.any() and around.sum() > lens.sum()
    assert apart[around].min() >= 0  # light is added, none is taken
    rows, columns = np.nonzero(lens)
    far = np.hypot(*(np.indices(lens.shape) - np.array([rows.mean(), columns.mean()])[:, None, None]))
    near, farther = (apart[around & (far > a) & (far <= b)].max(axis=1).mean() for a, b in ((0, 8), (8, 40)))
    assert near > farther


def test_ground_that_something_hides_says_nothing_of_the_light_there() -> None:
    """Feet 10 m ahead, behind a wall 6 m away that fills the left half of the picture; the road is lighter than it."""
    camera = CameraModel(640, 480, np.array([[500.0, 0, 319.5], [0, 500.0, 239.5], [0, 0, 1]]), np.zeros(0))
    pose = np.array([[0.0, -1, 0, 0.3], [0, 0, -1, 1.6], [1, 0, 0, 10.0], [0, 0, 0, 1]])
    pixels = np.full((480, 640, 3), 200, np.uint8)
    pixels[:, :320] = 20
    range_m = np.full((480, 640), 1e3, np.float32)
    range_m[:, :320] = 6.0
    feet_m = np.array([[-0.2, -0.2], [0.2, 0.2]])
    light = partial(ground_around, Picture(pixels, "rgb"), camera, feet_m, pose, 0.2)
    assert light(depth=DepthMap.known(range_m, 1)) == pytest.approx([(200 / 255) ** 2.2] * 3)
    assert light() == pytest.approx([(20 / 255) ** 2.2] * 3)
    range_m[:] = 6.0  # all is hidden: the picture's lowest rows are all there is
    assert light(depth=DepthMap.known(range_m, 1)) == pytest.approx([(20 / 255) ** 2.2] * 3)


def test_meshes_stand_on_the_ground() -> None:
    for mesh in (*(sign_mesh(s) for s in SIGNS), *(light_mesh(s) for s in SIGNALS)):
        assert mesh.vertices_m[:, 2].min() == pytest.approx(0.0, abs=1e-6)
        assert len(mesh.reflectivity) == len(mesh.triangles)
    assert light_figure("red").center_m[2] > 1.0


def test_pixels_at_the_border_may_show_a_post_that_is_just_beyond_it() -> None:
    """The camera's border is 30 degrees aside; 1 mrad is half a pixel."""
    view, shown = View.of(street(), street().images[0]), 0
    for bearing in np.linspace(-0.508, -0.496, 25):
        pose = np.eye(4)
        pose[:2, 3] = 6.0 * np.cos(bearing), 6.0 * np.sin(bearing)
        shot = shot_of(view, sign_figure("stop", 0), pose, "traffic sign", "base_link")
        if shot is None:
            continue
        to_camera = camera_from(view, "base_link") @ pose
        sight = sight_of(view, sign_body("stop"), to_camera, sign_figure("stop", 0).feet_m)
        differs = (with_object(view, shot) != view.picture.pixels).any(axis=2)
        assert not differs[sight.may == 0].any(), bearing
        shown += bool(differs.any())
    assert shown >= 8
