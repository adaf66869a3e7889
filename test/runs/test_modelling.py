# SPDX-License-Identifier: Apache-2.0
"""Detailed meshes: closed, on the ground, of their size, each variant another; their light; the sun over a street."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.objects.ground_shadow import sun_over
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.world.camera.sun_direction import SunLight
from mt_nodes.world.modelling.fields import SolidField
from mt_nodes.world.modelling.gait import walking
from mt_nodes.world.modelling.model_variants import VARIANTS, detailed_mesh, is_detailed, variants_of
from mt_nodes.world.scene.camera_rendering import SUN, CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.figures import figure_of
from mt_nodes.world.scene.meshes import GLASS, RETRO, SKIN, TYRE
from mt_nodes.world.scene.object_light import ObjectLight
from mt_nodes.world.scene.objects import KINDS

DETAILED = [kind for kind in KINDS if is_detailed(kind)]
#: Least and most length, width and height of any variant.
SIZES_M = {
    "adult": ((0.35, 0.4, 1.6), (1.1, 0.75, 1.9)),
    "child": ((0.25, 0.3, 1.1), (0.9, 0.6, 1.35)),
    "elderly": ((0.4, 0.4, 1.45), (1.1, 0.75, 1.75)),
    "construction_worker": ((0.3, 0.4, 1.6), (1.0, 0.75, 1.95)),
    "cyclist": ((1.7, 0.5, 1.55), (1.85, 0.75, 2.0)),
    "motor_cyclist": ((1.95, 0.7, 1.6), (2.2, 0.95, 1.8)),
    "dog": ((0.8, 0.15, 0.55), (1.25, 0.4, 0.9)),
    "cat": ((0.4, 0.08, 0.26), (0.75, 0.2, 0.45)),
    "deer": ((1.1, 0.2, 1.0), (1.6, 0.5, 1.55)),
    "boar": ((1.4, 0.3, 0.8), (2.2, 0.7, 1.1)),
    "cow": ((2.1, 0.5, 1.3), (3.0, 0.9, 1.9)),
    "car": ((3.5, 1.6, 1.4), (4.8, 2.2, 1.8)),
}


@lru_cache
def street() -> Bundle:
    return next(iter(generate_drive(1, camera=CameraSensor(width=400, height=300))))


@pytest.mark.parametrize("kind", DETAILED)
def test_a_variant_is_closed_stands_on_the_ground_and_has_its_size(kind: str) -> None:
    mesh = detailed_mesh(kind, 3)
    low, high = SIZES_M[kind]
    size = np.ptp(mesh.vertices_m, axis=0)
    assert (size >= low).all() and (size <= high).all(), size
    assert mesh.vertices_m[:, 2].min() == pytest.approx(-0.008, abs=1e-4)
    edges = np.sort(np.concatenate([mesh.triangles[:, [i, j]] for i, j in ((0, 1), (1, 2), (2, 0))]), axis=1)
    _, count = np.unique(edges, axis=0, return_counts=True)
    assert (count % 2 == 0).all(), "an edge with an odd number of faces: a hole"
    assert ((mesh.reflectivity > 0) & (mesh.reflectivity <= 1)).all()
    assert np.isfinite(mesh.albedo).all() and mesh.albedo.min() >= 0.0 and mesh.albedo.max() <= 1.0
    assert (np.abs(np.linalg.norm(mesh.normals, axis=1) - 1.0) < 1e-3).all()


@pytest.mark.parametrize("kind", ["adult", "car", "deer"])
def test_normals_look_outwards(kind: str) -> None:
    mesh = detailed_mesh(kind, 1)
    a, b, c = np.moveaxis(mesh.vertices_m[mesh.triangles], 1, 0)
    facing = np.cross(b - a, c - a)
    agree = np.einsum("ij,ij->i", facing, mesh.normals[mesh.triangles].mean(axis=1))
    assert (agree > 0).mean() > 0.97
    volume = np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6.0
    assert volume > 0.01


def test_variants_differ_in_shape_and_in_colour() -> None:
    some = [detailed_mesh("adult", number) for number in (1, 2, 3)]
    shapes = {np.ptp(mesh.vertices_m, axis=0).round(3).tobytes() for mesh in some}
    colours = {mesh.albedo.mean(axis=0).round(3).tobytes() for mesh in some}
    assert len(shapes) == len(colours) == len(some)
    assert variants_of("adult") == VARIANTS and variants_of("cone") == 0


def test_materials_are_told_apart_for_rays() -> None:
    skin, car = (set(np.round(detailed_mesh(kind, 1).reflectivity, 4)) for kind in ("adult", "car"))
    assert SKIN in skin and {GLASS, RETRO, TYRE} <= car


def test_a_walker_has_one_sole_on_the_ground_and_opposite_arms() -> None:
    for phase in np.arange(0.0, 1.0, 0.125):
        joints = walking(1.75, float(phase))
        ankles = [leg[2][2] for leg in joints.legs]
        assert 0.05 < min(ankles) < 0.12
        assert 1.6 < joints.head[2] + 0.12 < 1.85
    apart = walking(1.75, 0.0)
    left_leg, left_arm = apart.legs[0][2][0], apart.arms[0][2][0]
    assert left_leg > apart.legs[1][2][0] and left_arm < apart.arms[1][2][0]


def test_a_net_is_where_its_field_says() -> None:
    field = SolidField((-1.2, -1.2, -1.2), (1.2, 1.2, 1.2), 0.05)
    field.ellipsoid(0, (0.0, 0.0, 0.0), (0.9, 0.9, 0.9))
    net = field.net()
    assert np.linalg.norm(net.vertices_m, axis=1) == pytest.approx(0.9, abs=0.01)
    assert (np.einsum("ij,ij->i", net.normals, net.vertices_m) > 0.85).all()


def test_light_comes_from_the_sun_and_is_kept_from_what_it_does_not_reach() -> None:
    figure = figure_of("adult")
    rays = np.zeros((200, 6), np.float32)
    rays[:, 0], rays[:, 2], rays[:, 3] = -5.0, np.linspace(0.3, 1.6, 200), 1.0  # from behind, towards x
    _, places = figure.cast(rays, 0.01)
    along = rays[places.rays, 3:]
    behind, before = (
        ObjectLight(np.array([x, 0.0, 0.6]), 0.8).shade(figure, places, along, np.eye(4))[0] for x in (-0.8, 0.8)
    )
    assert behind.mean() > 3.0 * before.mean(), "its back in the sun, and in its own shade"


def test_the_sun_over_the_generated_street_is_found() -> None:
    """The street's renderer has a sun: the shadows in its picture tell where."""
    found = sun_over(street(), "base_link")
    assert found is not None
    assert np.degrees(np.arccos(np.clip(found.to_sun @ SUN, -1.0, 1.0))) < 15.0
    assert found.lit_at(10.0) > 1.5 * found.shade


def test_no_picture_no_sun() -> None:
    from dataclasses import replace

    assert sun_over(replace(street(), images=()), "base_link") is None
    image = street().images[0]
    grey = replace(image, pixels=np.full_like(image.pixels, 110))
    assert sun_over(replace(street(), images=(grey,)), "base_link") is None, "even ground: an overcast sky"


def test_the_share_of_the_sun_is_none_in_the_shade_and_most_in_the_sun() -> None:
    sun = SunLight(np.array([0.0, 0.0, 1.0]), 0.5, 0.0, 0.1)
    np.testing.assert_allclose(sun.share([0.1, 0.5, 0.9], 10.0), [0.0, 0.8, 0.8])
    np.testing.assert_allclose(SunLight.of_numbers(sun.numbers()).numbers(), sun.numbers())


def test_an_episode_draws_one_of_ten_and_keeps_it() -> None:
    mutation = ObjectAdded(kind="adult", where="bearing", bearing_rad=(-0.35, 0.35), range_m=(8.0, 25.0))
    states = [mutation.begin(generator(seed, "t", 0, None, 0), street()) for seed in range(6)]
    assert len({state.variant for state in states}) >= 3
    draw = mutation.draw(generator(0, "t", 0, 0, 0), street(), states[0])
    of_all = {int(value) for name, value in draw.items() if name.endswith("|variant")}
    assert of_all == {states[0].variant}
    one = ObjectAdded(kind="adult", variant=4, where="bearing", bearing_rad=(-0.35, 0.35), range_m=(8.0, 25.0))
    assert one.begin(generator(0, "t", 0, None, 0), street()).variant == 4
    with pytest.raises(UsageError, match="variant"):
        ObjectAdded(kind="cone", variant=3)
