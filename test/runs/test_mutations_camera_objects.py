# SPDX-License-Identifier: Apache-2.0
"""Objects put into clouds and pictures alike: the same mesh at the same place, hidden by what is nearer."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import cv2
import numpy as np
import pytest
from drives import KITTI

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.images.codecs import Picture, decode
from mt_nodes.data.messages import Bundle, CameraInfo, Cloud, Image
from mt_nodes.data.transforms import Transform, TransformTree, move
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.objects import picture_proof
from mt_nodes.relations.mutations.objects.host_camera import has_mosaic, noise_level, through_mosaic
from mt_nodes.relations.mutations.objects.in_pictures import camera_from, shot_of, with_object
from mt_nodes.relations.mutations.objects.object_added import ObjectAdded
from mt_nodes.relations.mutations.objects.picture_proof import sight_of
from mt_nodes.world.camera.model import CameraModel
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.figures import figure_of
from mt_nodes.world.scene.object_rendering import render
from mt_nodes.world.scene.objects import KINDS
from mt_nodes.world.scene.placement_solver import upright
from mt_nodes.world.scene.sight import body_of

SMALL = CameraSensor(width=400, height=300)
AHEAD = {"where": "bearing", "bearing_rad": (-0.35, 0.35), "range_m": (8.0, 25.0)}
EMPTY = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4")])


@lru_cache
def street() -> Bundle:
    return next(iter(generate_drive(1, camera=SMALL)))


@lru_cache
def recorded() -> Bundle:
    if not KITTI.is_dir():
        pytest.skip(f"no recorded drive at {KITTI}")
    from mt_nodes.data.bags.bundles import BagSource

    with BagSource(KITTI, require=("lidar", "camera", "camera_info"), limit=1) as source:
        return next(iter(source))


def derive(mutation: ObjectAdded, bundle: Bundle, seed: int = 0) -> tuple[Followup, Draw]:
    state = mutation.begin(generator(seed, "t", 0, None, 0), bundle)
    draw = mutation.draw(generator(seed, "t", 0, 0, 0), bundle, state)
    return mutation.apply(bundle, draw), draw


def plain(size: tuple[int, int] = (300, 400), level: int = 120, **changed: Any) -> Bundle:
    """Grey ground and a lighter sky, with the returns of level ground, and of a wall where one is asked for."""
    height, width = size
    pixels = np.full((height, width, 3), level, np.uint8)
    pixels[: height // 3] = min(255, level + 40)
    x, y = np.meshgrid(np.arange(2.0, 45.0, 0.25), np.arange(-15.0, 15.0, 0.25))
    points = np.zeros(x.size, EMPTY)
    points["x"], points["y"], points["z"] = x.ravel(), y.ravel(), 0.0
    if (wall_y_m := changed.pop("wall_y_m", None)) is not None:
        y, z = np.meshgrid(np.arange(*wall_y_m, 0.012), np.arange(0.0, 4.0, 0.03))
        wall = np.zeros(y.size, EMPTY)
        wall["x"], wall["y"], wall["z"] = 6.0, y.ravel(), z.ravel()
        behind = (points["x"] > 6.0) & (points["y"] > wall_y_m[0] * points["x"] / 6.0)
        behind &= points["y"] < wall_y_m[1] * points["x"] / 6.0
        points = np.concatenate([points[~behind], wall])
    info = SMALL.info("/camera/camera_info", 1, "camera")
    tree = TransformTree([Transform("base_link", "camera", SMALL.mount)])
    image = Image("/camera/image", 1, "camera", pixels, "bgr8")
    return replace(Bundle(0, 0, 1, (Cloud("/points", 1, "base_link", points),), (image,), (info,), tree), **changed)


def shot_in(bundle: Bundle, kind: str = "adult", place: tuple[float, float, float] = (10.0, 0.0, 0.0)) -> Any:
    view = View.of(bundle, bundle.images[0])
    return view, shot_of(view, figure_of(kind), upright(place), "thing", "base_link")


@pytest.mark.parametrize("kind", ["adult", "car", "cone", "cyclist", "deer", "traffic_sign"])
def test_an_object_is_in_cloud_and_picture_and_proved(kind: str) -> None:
    bundle = street()
    mutation = ObjectAdded(kind=kind, **AHEAD)
    followup, draw = derive(mutation, bundle, seed=2)
    assert mutation.guarantee(bundle, followup, draw) is None
    (box,) = followup.effects.image_boxes
    assert box.label == KINDS[kind].label and 0.3 < box.visible <= 1.0
    assert followup.effects.numbers["points_on_object"] >= 10
    old, new = (b.images[0].pixels.astype(int).sum(axis=2) for b in (bundle, followup.first))
    rows, columns = np.nonzero(new > old + 9)
    x0, y0, x1, y1 = box.box_px
    # Beside it, its shadow darkens the ground.
    assert x0 - 20 <= columns.min() and columns.max() <= x1 + 20
    assert y0 - 10 <= rows.min() and rows.max() <= y1 + 15


@pytest.mark.parametrize("place", ["generated", "recorded"])
@pytest.mark.parametrize("kind", ["adult", "car"])
def test_hits_of_the_cloud_lie_inside_the_silhouette(kind: str, place: str) -> None:
    """To one pixel at 20 m: what the LiDAR and the camera are given is one object at one place."""
    bundle = street() if place == "generated" else recorded()
    mutation = ObjectAdded(kind=kind, where="bearing", bearing_rad=(-0.4, 0.4), range_m=(15.0, 25.0), clearance_m=0.3)
    followup, draw = derive(mutation, bundle, seed=1)
    view = View.of(bundle, bundle.images[0])
    pose = camera_from(view, "base_link") @ next(v for name, v in draw.items() if name.endswith("|pose"))
    own = next(value for name, value in draw.items() if name.endswith("|variant"))
    rendering = render(mutation.figure_in({"variant": own}), pose, view.camera())
    assert rendering is not None
    (rows, columns), cover = rendering.window, rendering.cover
    (topic, hits), *_ = followup.effects.added_points.items()
    to_camera = bundle.transforms.lookup(view.image.frame_id, bundle.cloud(topic).frame_id)
    pixels = view.camera().project(move(to_camera, hits))
    outside = np.ones(view.picture.size, np.uint8)
    outside[rows, columns] = cover == 0.0
    off_px = cv2.distanceTransform(outside, cv2.DIST_L2, 5)
    x, y = np.rint(pixels).astype(int).T
    inside = (x >= 0) & (x < view.picture.size[1]) & (y >= 0) & (y < view.picture.size[0])
    assert inside.sum() > 20
    assert off_px[y[inside], x[inside]].max() <= 1.0
    changed = (followup.first.images[0].pixels != bundle.images[0].pixels).any(axis=2).astype(np.uint8)
    assert (cv2.dilate(changed, np.ones((3, 3), np.uint8))[y[inside], x[inside]] > 0).mean() > 0.95


def test_what_stands_nearer_hides_it() -> None:
    free, half, all_of_it = (shot_in(plain(wall_y_m=wall))[1].box.visible for wall in (None, (-4.0, 0.0), (-4.0, 4.0)))
    assert free > 0.99 and 0.3 < half < 0.7 and all_of_it < 0.05


def test_the_ground_before_it_does_not_hide_it() -> None:
    """Between the rings of a LiDAR on the ground, the nearest return may lie well before the feet."""
    level = plain()
    points = level.clouds[0].points
    rings = replace(level.clouds[0], points=points[points["x"] % 2.5 == 0.0])
    assert shot_in(replace(level, clouds=(rings,)), place=(18.4, 1.0, 0.0))[1].box.visible > 0.99


@pytest.mark.parametrize(("level", "darker"), [(60, True), (110, False)])
def test_it_is_seen_in_the_light_of_the_ground(level: int, darker: bool) -> None:
    view, shot = shot_in(plain(level=level), "box")
    on = shot.sight > 0.99
    seen = with_object(view, shot)[shot.window][on].mean()
    reference, other = shot_in(plain(level=85), "box")
    usual = with_object(reference, other)[other.window][on].mean()
    assert (seen < 0.8 * usual) if darker else (seen > 1.1 * usual)


def test_the_ground_under_it_is_darker_and_nothing_else_changes() -> None:
    view, shot = shot_in(plain(), "box")
    made = with_object(view, shot)
    feet = camera_pixel(view, (9.66, 0.0, 0.0))
    assert made[feet[1] + 1, feet[0]].mean() < 110
    rows, columns = shot.window
    outside = np.ones(view.picture.size, bool)
    outside[rows, columns] = False
    np.testing.assert_array_equal(made[outside], view.picture.pixels[outside])


def camera_pixel(view: View, place: tuple[float, float, float]) -> tuple[int, int]:
    x, y = view.camera().project(move(camera_from(view, "base_link"), np.array([place])))[0]
    return int(x), int(y)


@pytest.mark.parametrize(
    ("model", "d"),
    [("plumb_bob", [-0.3, 0.1, 0.002, -0.001, 0.0]), ("equidistant", [0.05, -0.01, 0.0, 0.0])],
)
def test_outline_and_rays_agree_through_a_lens(model: str, d: list[float]) -> None:
    bundle = plain()
    info: CameraInfo = replace(bundle.camera_infos[0], distortion_model=model, d=np.array(d))
    view = View.of(replace(bundle, camera_infos=(info,)), bundle.images[0])
    pose = camera_from(view, "base_link") @ upright((9.0, 2.5, 0.6))
    made = render(figure_of("car"), pose, view.camera())
    assert made is not None
    by_rays = sight_of(view, body_of("car"), pose, figure_of("car").feet_m).must != 0
    by_outline = np.zeros(view.picture.size, bool)
    by_outline[made.window] = made.cover > 0.5
    grown = cv2.dilate(by_rays.astype(np.uint8), np.ones((5, 5), np.uint8)) != 0
    assert by_rays.sum() > 500
    assert (by_rays & ~by_outline).sum() == 0, "rays hit the car where its outline is not"
    assert (by_outline & ~grown).mean() < 1e-4, "the outline is wider than what rays hit"


def cone_in_low_sun(aside_m: float) -> float:
    """Return the share of a cone's vertices off the lines of sight, with a shadow that makes these whole pixels'."""
    bundle = plain()
    view = View.of(bundle, bundle.images[0])
    pose, sun = camera_from(view, "base_link") @ upright((7.0, aside_m, 0.0)), np.array([0.0, -0.98, 0.2])
    return sight_of(view, body_of("cone"), pose, figure_of("cone").feet_m, sun).off


def test_a_tip_thinner_than_a_pixel_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.linspace(0.0, 0.1, 8)
    assert max(map(cone_in_low_sun, places)) == 0.0
    monkeypatch.setattr(picture_proof, "_beside", lambda *given: np.ones(len(given[-1]), bool))
    assert max(map(cone_in_low_sun, places)) > 0.04, "the lines of whole pixels meet every tip: nothing is tested"


def test_a_projection_a_few_pixels_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = CameraModel.project
    monkeypatch.setattr(CameraModel, "project", lambda *given: right(*given) - np.array([0.0, 2.0]))
    assert cone_in_low_sun(0.0) > 0.04


def test_a_sheared_off_part_of_the_picture_counts_as_out_of_sight() -> None:
    whole, cut = (shot_in(plain(), place=(6.0, y, 0.0))[1].box for y in (0.0, 3.4))
    assert whole.visible > 0.99 and 0.1 < cut.visible < 0.9
    assert cut.box_px[0] == -0.5


@pytest.mark.parametrize("encoding", ["mono16", "rgba8", "bayer_rggb8", "jpeg"])
def test_every_encoding_shows_it(encoding: str) -> None:
    bundle = plain()
    grey = bundle.images[0].pixels
    shapes = {
        "mono16": grey[..., 0].astype(np.uint16) * 257,
        "rgba8": np.dstack([grey, grey[..., :1]]),
        "bayer_rggb8": grey[..., 0].copy(),
        "jpeg": np.zeros((0, 0), np.uint8),
    }
    coded = bytes(cv2.imencode(".jpg", grey)[1]) if encoding == "jpeg" else None
    image = replace(bundle.images[0], pixels=shapes[encoding], encoding=encoding, compressed=coded)
    source, mutation = replace(bundle, images=(image,)), ObjectAdded(range_m=(8.0, 12.0), where="path")
    followup, draw = derive(mutation, source)
    assert mutation.guarantee(source, followup, draw) is None
    assert (decode(followup.first.images[0]).luma() != decode(image).luma()).sum() > 200


def test_a_cloud_that_the_stack_does_not_take_is_enough() -> None:
    bundle = street()
    alone = replace(bundle, clouds=(), extra_clouds=bundle.clouds)
    mutation = ObjectAdded(**AHEAD)
    followup, draw = derive(mutation, alone, seed=2)
    assert mutation.guarantee(alone, followup, draw) is None
    both, _ = derive(mutation, bundle, seed=2)
    np.testing.assert_array_equal(followup.first.images[0].pixels, both.first.images[0].pixels)
    assert followup.first.extra_clouds is alone.extra_clouds
    assert len(followup.effects.added) == 1 and len(followup.effects.image_boxes) == 1


def test_an_image_that_does_not_see_it_passes_untouched() -> None:
    bundle, behind = street(), ObjectAdded(where="bearing", bearing_rad=(2.8, 3.4), range_m=(6.0, 30.0))
    followup, draw = derive(behind, bundle)
    assert followup.first.images[0] is bundle.images[0]
    assert behind.guarantee(bundle, followup, draw) is None
    alone = replace(bundle, clouds=(), extra_clouds=bundle.clouds)
    with pytest.raises(NotApplicable, match="no sensor sees the place where the object stands"):
        derive(behind, alone)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"camera_infos": ()}, "no CameraInfo"),
        ({"transforms": TransformTree()}, "where the camera stands is not known"),
        ({"clouds": ()}, "no cloud to find free ground in"),
    ],
)
def test_what_is_not_known_is_refused(change: dict[str, Any], told: str) -> None:
    with pytest.raises(NotApplicable, match=told):
        derive(ObjectAdded(range_m=(8.0, 12.0), where="path"), plain(**change))


def test_images_and_clouds_apart_in_time_are_refused() -> None:
    bundle = plain()
    late = replace(bundle.images[0], stamp_ns=200_000_000)
    with pytest.raises(NotApplicable, match="ms apart"):
        derive(ObjectAdded(range_m=(8.0, 12.0), where="path"), replace(bundle, images=(late,)))


def test_a_missing_a_shifted_and_a_spread_object_are_found() -> None:
    bundle, mutation = street(), ObjectAdded(kind="adult", **AHEAD)
    followup, draw = derive(mutation, bundle, seed=2)
    old, new = bundle.images[0], followup.first.images[0].pixels
    shifted = old.pixels.copy()
    shifted[:, 30:] = np.where((new != old.pixels)[:, :-30], new[:, :-30], shifted[:, 30:])
    spread = new.copy()
    spread[:20, :20] += 9
    legs = new.copy()
    top = int(np.quantile(np.nonzero((new != old.pixels).any(axis=2))[0], 0.85))
    legs[:top] = old.pixels[:top]
    for pixels, told in (
        (legs, "of the object's pixels"),
        (old.pixels, "the object's pixels|no pixel differs"),
        (shifted, "to stay"),
        (spread, "to stay"),
    ):
        broken = replace(followup.first, images=(replace(old, pixels=pixels),))
        assert (reason := mutation.guarantee(bundle, Followup(((0, broken),), followup.effects), draw))
        assert any(word in reason for word in told.split("|")), reason


def test_an_object_drawn_over_what_is_before_it_is_found() -> None:
    """The same object, drawn as if the wall before it were not there."""
    hidden, free = plain(wall_y_m=(-4.0, 0.0)), plain()
    mutation = ObjectAdded()
    view, shot = shot_in(free)
    draw = {f"{view.image.topic}|pose": upright((10.0, 0.0, 0.0))}
    over = replace(free.images[0], pixels=with_object(view, shot))
    assert mutation.prove_images(free, replace(free, images=(over,)), draw) is None
    assert "to stay" in str(mutation.prove_images(hidden, replace(hidden, images=(over,)), draw))


def test_lamps_shine_and_only_those_that_a_kind_has() -> None:
    view, _ = shot_in(plain(level=60))
    pictures = []
    for lamps in ("off", "hazard"):
        shot = shot_of(view, figure_of("car", lamps), upright((9.0, 0.0, 0.0)), "car", "base_link")
        assert shot is not None
        pictures.append(with_object(view, shot).astype(int))
    brighter = pictures[1] - pictures[0]
    assert (brighter[..., 2] > 80).sum() > 10, "no red and yellow light"
    with pytest.raises(UsageError, match="lamps: got 'hazard'"):
        ObjectAdded(kind="adult", lamps="hazard")


@lru_cache
def grey_view() -> View:
    bundle = plain()
    return View.of(bundle, bundle.images[0])


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_colours_of_its_own(kind: str) -> None:
    """No kind is left grey by chance: several colours, none of them out of 0 to 1."""
    view = grey_view()
    made = render(figure_of(kind), camera_from(view, "base_link") @ upright((14.0, 0.0, 0.7)), view.camera())
    assert made is not None
    on = made.light[made.cover > 0.9]
    assert np.isfinite(on).all() and on.min() >= 0.0 and on.max() < 2.0
    assert len(np.unique((40 * on).astype(int), axis=0)) >= 3


def noisy_camera(mosaic: bool, grey: int = 90) -> Picture:
    """A grey wall as a sensor with noise of 4 samples records it."""
    raw = np.clip(np.random.default_rng(3).normal(grey, 4.0, (256, 256)), 0, 255).astype(np.uint8)
    return Picture(cv2.cvtColor(raw, cv2.COLOR_BayerRGGB2RGB_EA if mosaic else cv2.COLOR_GRAY2RGB), "rgb")


def test_noise_and_mosaic_of_the_host_camera_are_found_and_given_to_an_object() -> None:
    whole = slice(0, 256), slice(0, 256)
    for mosaic in (True, False):
        picture = noisy_camera(mosaic)
        assert has_mosaic(picture, whole) is mosaic
        level = noise_level(picture, whole, mosaic)
        assert level == pytest.approx(4.0, rel=0.15) if mosaic else level > 4.0, (
            "the picture's grain is wider than white"
        )
    made = Picture(
        through_mosaic(np.full((256, 256, 3), 90.0, np.float32), noisy_camera(True), 4.0, 1).round().astype(np.uint8),
        "rgb",
    )
    assert has_mosaic(made, whole)
    assert made.luma().std() == pytest.approx(noisy_camera(True).luma().std(), rel=0.1)
    still = through_mosaic(np.full((9, 7, 3), (10.0, 20.0, 30.0), np.float32), made, 0.0, 1)
    np.testing.assert_allclose(still, np.broadcast_to((10.0, 20.0, 30.0), (9, 7, 3)), atol=0.02)
    flat = Picture(np.random.default_rng(1).integers(80, 82, (256, 256, 3)).astype(np.uint8), "rgb")
    assert noise_level(flat, whole, True) < 2.5, "rounding alone is taken for noise"
    assert not has_mosaic(Picture(np.full((64, 64, 3), 80, np.uint8), "rgb"), whole), "no noise shows no mosaic"
