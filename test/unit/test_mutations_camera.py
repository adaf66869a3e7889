# SPDX-License-Identifier: Apache-2.0
"""Walks the catalogue of what changes images alone: a new mutation is tested by being there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from made_images import KINDS, image_in, street, street_in

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import build, describe
from mt_nodes.base.seeds import generator
from mt_nodes.data.images.codecs import decode, encode, lossy
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.camera.each_image import ChangesImages, View, of_image
from mt_nodes.relations.mutations.camera.image_blurred import ImageDefocused, ImageMotionBlurred
from mt_nodes.relations.mutations.camera.image_tones import BrightnessChanged
from mt_nodes.relations.mutations.camera.sensor_noise import SensorNoise
from mt_nodes.relations.mutations.camera.white_balance import WhiteBalanceShifted
from mt_nodes.world.camera import measures

#: What needs an extra of the package is tested with that installed: `make test-extras`.
CATALOGUE: dict[str, Any] = {
    name: cls
    for name, cls in plugins.catalogue("mutations").items()
    if getattr(cls, "sensors", ()) == ("camera",) and not getattr(cls, "extra", "")
}
#: Two instants of one segment: what persists begins with the first.
LATER_NS = 100_000_000


def derive(mutation: Mutation, bundle: Bundle, number: int = 0, first: Bundle | None = None) -> tuple[Followup, Draw]:
    state = mutation.begin(generator(7, "walk", 0, None, 0), first or bundle)
    draw = mutation.draw(generator(7, "walk", bundle.episode, bundle.index, number), bundle, state)
    return mutation.apply(bundle, draw), draw


def derive_if_applicable(mutation: Mutation, bundle: Bundle) -> tuple[Followup, Draw]:
    """Every mutation has a follow-up of a colour picture; of some others it may say that there is none."""
    try:
        return derive(mutation, bundle)
    except NotApplicable as reason:
        if bundle is street_in("bgr8"):
            raise
        pytest.skip(str(reason))


def content(bundle: Bundle) -> list[Any]:
    images = [(i.topic, i.stamp_ns, i.frame_id, i.encoding, i.pixels.tobytes(), i.compressed) for i in bundle.images]
    infos = [(i.topic, i.k.tobytes(), i.d.tobytes(), i.p.tobytes()) for i in bundle.camera_infos]
    return [*images, *infos, *(c.raw.tobytes() for c in bundle.clouds)]


@pytest.fixture(params=CATALOGUE, ids=str)
def mutation(request: pytest.FixtureRequest) -> Mutation:
    made: Mutation = CATALOGUE[request.param]()
    return made


@pytest.fixture(params=KINDS, ids=str)
def bundle(request: pytest.FixtureRequest) -> Bundle:
    return street_in(request.param)


def test_deterministic_pure_proven_and_of_the_same_kind(mutation: Mutation, bundle: Bundle) -> None:
    before = content(bundle)
    followup, draw = derive_if_applicable(mutation, bundle)
    again, same_draw = derive(mutation, bundle)
    assert list(draw) == list(same_draw)
    for name, value in draw.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(same_draw[name]))
        assert np.asarray(value).dtype != object
    assert content(again.first) == content(followup.first) == content(mutation.apply(bundle, draw).first)
    assert content(bundle) == before, "the mutation wrote into its source"
    assert mutation.guarantee(bundle, followup, draw) is None
    old, new = bundle.images[0], followup.first.images[0]
    for what in ("topic", "stamp_ns", "frame_id", "encoding"):
        assert getattr(new, what) == getattr(old, what)
    assert new.pixels.shape == old.pixels.shape
    assert new.pixels.dtype == old.pixels.dtype
    assert followup.first.clouds == bundle.clouds
    assert content(followup.first) != before


def test_another_draw_differs_unless_nothing_is_left_to_chance(mutation: Mutation) -> None:
    first = street_in("bgr8")
    other = replace(first, episode=1)
    made = [content(derive(mutation, b, number)[0].first) for number, b in enumerate((first, other))]
    state = mutation.begin(generator(8, "walk", 0, None, 0), first)
    draw = mutation.draw(generator(8, "walk", 0, 0, 0), first, state)
    made.append(content(mutation.apply(first, draw).first))
    assert (made[0] != made[1] or made[0] != made[2]) == mutation.random


def test_every_parameter_has_help_and_refuses_what_is_out_of_range(mutation: Mutation) -> None:
    rows = describe(type(mutation))
    assert plugins.summary_of(type(mutation))
    assert all(row["help"] for row in rows)
    for row in rows:
        for bound, beyond in (("low", -1.0), ("high", 1.0)):
            if row.get(bound) is not None:
                with pytest.raises(Exception, match=row["name"]):
                    build(type(mutation), {row["name"]: row[bound] + beyond * max(1.0, abs(row[bound]))}, "here")


def test_survives_odd_bundles_or_says_why(mutation: Mutation) -> None:
    whole = street_in("bgr8")
    image = whole.images[0]
    tiny = replace(image, pixels=np.asarray(image.pixels)[:2, :2].copy())
    flat = replace(image, pixels=np.full_like(np.asarray(image.pixels), 128))
    depth = replace(image, pixels=np.ones((4, 4), np.float32), encoding="32FC1")
    torn = image_in("jpeg", image)
    torn = replace(torn, compressed=(torn.compressed or b"")[:-700])
    odd = [replace(whole, images=(i,)) for i in (tiny, flat, depth, torn)]
    odd += [replace(whole, images=()), replace(whole, clouds=()), replace(whole, camera_infos=())]
    for bundle in odd:
        try:
            followup, draw = derive(mutation, bundle)
        except NotApplicable as reason:
            assert str(reason)
        else:
            proven = mutation.guarantee(bundle, followup, draw)
            assert proven is None, proven
            shows = isinstance(mutation, ChangesImages)
            assert not (shows and bundle is odd[1]), "a picture of one grey shows nothing that could be told"


def with_image(followup: Followup, image: Image) -> Followup:
    return Followup(((0, replace(followup.first, images=(image,))),), followup.effects)


def test_the_guarantee_fails_on_a_broken_copy(mutation: Mutation) -> None:
    """The source in place of the follow-up; an image of another stamp; something else changed beside."""
    bundle = street_in("bgr8")
    followup, draw = derive(mutation, bundle)
    image = followup.first.images[0]
    assert mutation.guarantee(bundle, with_image(followup, replace(bundle.images[0])), draw)
    assert mutation.guarantee(bundle, with_image(followup, replace(image, stamp_ns=5)), draw)
    cut = replace(image, pixels=np.asarray(image.pixels)[:-2].copy())
    assert mutation.guarantee(bundle, with_image(followup, cut), draw)
    cloud = bundle.clouds[0]
    shorter = Followup(((0, followup.first.with_clouds([cloud.with_raw(cloud.raw[:-1])])),), followup.effects)
    assert mutation.guarantee(bundle, shorter, draw)
    assert mutation.guarantee(bundle, Followup(((0, followup.first),) * 2), draw)


def test_where_it_says_that_nothing_changes_a_change_is_found(mutation: Mutation) -> None:
    if not isinstance(mutation, ChangesImages):
        pytest.skip("it changes no pixel")
    for bundle in (street_in("bgr8"), street_in("jpeg")):
        followup, draw = derive(mutation, bundle)
        view = View.of(bundle, bundle.images[0])
        where = mutation.affected(view, of_image(draw, view.image))
        if where is None:
            pytest.skip("it may change every pixel")
        made = decode(followup.first.images[0])
        new = made.pixels.copy()
        far = np.argwhere(distance_to(where) > 20)
        if not len(far):
            pytest.skip("it may change pixels all over the picture")
        y, x = far[len(far) // 2]
        new[max(0, y - 2) : y + 3, max(0, x - 2) : x + 3] ^= 0x80
        tampered = encode(made.with_pixels(new), followup.first.images[0])
        assert "stay" in str(mutation.guarantee(bundle, with_image(followup, tampered), draw))


def distance_to(where: np.ndarray) -> np.ndarray:
    import cv2

    return np.asarray(cv2.distanceTransform((where == 0).astype(np.uint8), cv2.DIST_L2, 5))


def test_what_persists_stays_where_it_is_from_frame_to_frame() -> None:
    first = street_in("bgr8")
    second = replace(first, index=1, stamp_ns=first.stamp_ns + LATER_NS)
    for name in ("lens_dirt", "lens_drops", "image_occluded", "pixels_dead"):
        mutation: Any = CATALOGUE[name]()
        places = []
        for bundle in (first, second):
            _, draw = derive(mutation, bundle, first=first)
            places.append(mutation.affected(View.of(bundle, bundle.images[0]), of_image(draw, bundle.images[0])))
        assert (places[0] == places[1]).all(), name


@pytest.mark.parametrize(
    ("weak", "strong", "measure"),
    [
        (BrightnessChanged(0.1), BrightnessChanged(0.3), measures.brightness),
        (SensorNoise(5000.0), SensorNoise(300.0), measures.noise),
        (ImageDefocused(4.0), ImageDefocused(1.5), measures.sharpness),
        (ImageMotionBlurred(60.0), ImageMotionBlurred(15.0), measures.sharpness),
    ],
    ids=["brightness", "noise", "defocus", "motion"],
)
def test_more_of_it_shows_more(weak: Mutation, strong: Mutation, measure: Any) -> None:
    bundle = street_in("bgr8")
    values = [measure(decode(b.images[0])) for b in (derive(weak, bundle)[0].first, derive(strong, bundle)[0].first)]
    assert values[0] < values[1]


def marked(pixels: np.ndarray) -> np.ndarray:
    """A picture with one black row, since one grey all over shows nothing."""
    pixels[0] = 0
    return pixels


def test_noise_has_the_deviation_of_the_model() -> None:
    """Of a grey of value v: electrons from the sRGB light of v, Poisson and read noise, back to values."""
    whole = street()
    mutation = SensorNoise(full_well_e=2000.0, read_noise_e=10.0)
    for value in (60, 120, 200):
        grey = replace(whole.images[0], pixels=marked(np.full((200, 300, 3), value, np.uint8)))
        made = derive(mutation, replace(whole, images=(grey,)))[0].first.images[0].pixels[1:].astype(float)
        light = ((value / 255 + 0.055) / 1.055) ** 2.4
        electrons = 2000.0 * light
        slope = 255 * 1.055 / 2.4 * light ** (1 / 2.4 - 1) / 2000.0
        assert made.std() == pytest.approx(np.sqrt(electrons + 100.0) * slope, rel=0.05)
        assert made.mean() == pytest.approx(value, abs=0.3)
        np.testing.assert_allclose(np.corrcoef(made.reshape(-1, 3).T), np.eye(3), atol=0.03)
        assert abs(np.corrcoef(made[:-1, :, 0].ravel(), made[1:, :, 0].ravel())[0, 1]) < 0.03


def test_motion_blur_leaves_what_is_straight_ahead_and_smears_what_is_near() -> None:
    bundle = street_in("bgr8")
    made = derive(ImageMotionBlurred(exposure_ms=60.0), bundle)[0].first
    apart = measures.difference(decode(bundle.images[0]), decode(made.images[0])).astype(float)
    camera = View.of(bundle, bundle.images[0]).camera()
    x, y = round(camera.k[0, 2]), round(camera.k[1, 2])
    ahead, near = apart[y - 6 : y + 6, x - 6 : x + 6], apart[-30:]
    detail = np.abs(np.diff(np.asarray(bundle.images[0].pixels).astype(float), axis=0))
    assert ahead.mean() / detail[y - 6 : y + 6, x - 6 : x + 6].mean() < near.mean() / detail[-30:].mean()


def test_a_warm_light_is_grey_times_a_black_body() -> None:
    grey = replace(street().images[0], pixels=marked(np.full((16, 16, 3), 90, np.uint8)))
    made = derive(WhiteBalanceShifted(3000.0), replace(street(), images=(grey,)))[0].first.images[0].pixels[1, 1]
    blue, green, red = made.tolist()
    assert green == 90
    assert red > 90 > blue


@pytest.mark.parametrize("kind", ["bgr8", "rgb8"])
def test_what_is_burnt_out_stays_white_in_a_warm_light(kind: str) -> None:
    bundle, warm = street_in(kind), WhiteBalanceShifted(3000.0)
    pixels = np.array(bundle.images[0].pixels)
    pixels[:40], pixels[40:44], pixels[44:48] = 255, 243, 200
    source = replace(bundle, images=(replace(bundle.images[0], pixels=pixels),))
    followup, drawn = derive(warm, source)
    new = np.asarray(followup.first.images[0].pixels, int)
    spread = np.ptp(new, axis=-1)
    assert (new[:40] == 255).all() and 0 < spread[42, 0] < spread[46, 0], "the change is gradual"
    assert warm.guarantee(source, followup, drawn) is None
    road = np.full_like(pixels, 100)
    road[-40:, 20:24] = 255
    narrow = derive(warm, replace(bundle, images=(replace(bundle.images[0], pixels=road),)))[0].first.images[0]
    assert np.ptp(np.asarray(narrow.pixels, int)[-40:, 20:24], axis=-1).min() > 20, "paint takes the light's colour"
    yellow = new.copy()
    yellow[:40, :, 0 if kind == "bgr8" else 2] = 160
    tampered = replace(followup.first, images=(replace(source.images[0], pixels=yellow.astype(np.uint8)),))
    assert "no longer white" in str(warm.guarantee(source, Followup(((0, tampered),), followup.effects), drawn))


def test_lossy_images_are_known() -> None:
    assert [lossy(street_in(kind).images[0]) for kind in KINDS] == [kind == "jpeg" for kind in KINDS]


@pytest.mark.parametrize(
    ("size", "least", "most", "refused"),
    [(200, 40, 216, True), (40, 88, 168, True), (200, 88, 168, False), (40, 120, 136, False)],
)
def test_noise_is_not_added_where_it_could_not_be_told_from_what_there_is(
    size: int, least: int, most: int, refused: bool
) -> None:
    pixels = np.random.default_rng(0).integers(least, most, (size, size, 3), dtype=np.uint8)
    bundle = Bundle(0, 0, 1, images=(Image("/camera/image", 1, "camera", pixels, "bgr8"),))
    noisy = SensorNoise(full_well_e=300.0)
    if refused:
        with pytest.raises(NotApplicable, match="hides noise"):
            noisy.draw(np.random.default_rng(0), bundle, 1)
        return
    for seed in range(20):  # not by luck
        draw = noisy.draw(np.random.default_rng(seed), bundle, seed)
        assert noisy.guarantee(bundle, noisy.apply(bundle, draw), draw) is None
