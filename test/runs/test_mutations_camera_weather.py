# SPDX-License-Identifier: Apache-2.0
"""Weather that clouds and images see by one draw, and the light that only images see."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from made_images import street, street_in, street_with_pedestrian_in

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.seeds import generator
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.low_light import Night
from mt_nodes.relations.mutations.camera.low_sun import LowSun
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor
from mt_nodes.relations.mutations.joint.fog_dust_smoke import LN_20, Fog
from mt_nodes.relations.mutations.joint.particles_in_pictures import _boxes, _particles, streaks
from mt_nodes.relations.mutations.joint.rain_snow_hail import Rain, Snow
from mt_nodes.relations.mutations.joint.sun_glare import SunGlare
from mt_nodes.relations.mutations.joint.weather_light import fresnel
from mt_nodes.relations.mutations.joint.wet_ground import WetGround
from mt_nodes.relations.mutations.objects.picture_exchange import PictureExchange
from mt_nodes.world.camera import measures
from mt_nodes.world.camera.light import light_of
from mt_nodes.world.camera.relight import coarse_light, grey, relit
from mt_nodes.world.camera.surroundings import surroundings_of
from mt_nodes.world.scene.camera_rendering import CameraSensor
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

#: The generated street's sun stands in the picture; its direction is looked for there.
SUN: dict[str, Any] = {"azimuth_rad": 0.0, "elevation_rad": 0.25}
KINDS = ("bgr8", "mono8", "jpeg", "rgb16")
#: Those that deform one object in clouds. They have no change for pictures: one that shows the object is refused, or
#: stays. So they cannot claim that one draw changes both, and have a test of what they claim instead.
OF_CLOUDS_ALONE = ("object_rotated", "object_scaled", "object_sheared", "object_smeared")
#: Those that take an object out of pictures. One small picture does not show what is behind it: they get a street with
#: a pedestrian, behind whom earlier pictures show the road. They look for a person, because no nearer car can be
#: removed from the pictures: with cameras they would choose another object than without.
EXCHANGES: dict[str, dict[str, Any]] = {
    "object_moved": {"ahead_m": (6.0, 30.0), "shift_m": (1.0, 2.5), "size": "person"},
    "object_removed": {"largest_m": 1.5},
    "object_replaced": {"size": "person", "by": "child"},
}
JOINT: dict[str, Any] = {
    name: cls for name, cls in plugins.catalogue("mutations").items() if issubclass(cls, EverySensor)
}
WEATHER: dict[str, Any] = {name: cls for name, cls in JOINT.items() if name not in OF_CLOUDS_ALONE}
#: Each of them in each encoding; which of them is always tested goes round: what decodes and encodes is shared.
ENCODED = [
    pytest.param(name, kind, marks=() if KINDS[n % len(KINDS)] == kind else pytest.mark.long, id=f"{name}-{kind}")
    for n, name in enumerate(WEATHER)
    for kind in KINDS
]


def derive(mutation: Mutation, bundle: Bundle, state: Any = None) -> tuple[Followup, Draw]:
    state = mutation.begin(generator(7, "walk", 0, None, 0), bundle) if state is None else state
    draw = mutation.draw(generator(7, "walk", bundle.episode, bundle.index, 0), bundle, state)
    return mutation.apply(bundle, draw), draw


@pytest.fixture(params=WEATHER, ids=str)
def mutation(request: pytest.FixtureRequest) -> Mutation:
    made: Mutation = WEATHER[request.param](**{"sun_glare": SUN, **EXCHANGES}.get(request.param, {}))
    return made


def bundle_for(mutation: Mutation, kind: str = "bgr8") -> Bundle:
    return street_with_pedestrian_in(kind) if isinstance(mutation, PictureExchange) else street_in(kind)


def picture_of(followup: Followup) -> Any:
    return decode(followup.first.images[0])


def test_all_weather_of_the_air_and_the_road_is_seen_by_cameras() -> None:
    assert {"fog", "dust", "rain", "snow", "wet_ground", "sun_glare"} <= set(WEATHER)


def test_exactly_those_are_left_out_that_have_no_change_for_cameras() -> None:
    assert sorted(name for name, cls in JOINT.items() if "camera" not in cls.sensors) == sorted(OF_CLOUDS_ALONE)
    assert {name for name, cls in WEATHER.items() if issubclass(cls, PictureExchange)} == set(EXCHANGES)


@pytest.mark.parametrize("name", OF_CLOUDS_ALONE)
def test_what_only_clouds_show_leaves_the_very_pictures(name: str) -> None:
    bundle, mutation = street_in("bgr8"), JOINT[name](pictures="stay")
    followup, draw = derive(mutation, bundle)
    assert mutation.guarantee(bundle, followup, draw) is None
    made, cloud = followup.first, bundle.clouds[0]
    assert made.images[0] is bundle.images[0]
    assert made.clouds[0].raw.tobytes() != cloud.raw.tobytes()
    alone = replace(bundle, images=(), camera_infos=())
    assert derive(mutation, alone)[0].first.clouds[0].raw.tobytes() == made.clouds[0].raw.tobytes()
    tampered = replace(bundle.images[0], pixels=np.asarray(bundle.images[0].pixels) // 2)
    for broken in (replace(made, images=(tampered,)), made.with_clouds([replace(cloud)])):
        assert mutation.guarantee(bundle, Followup(((0, broken),), followup.effects), draw)
    with pytest.raises(NotApplicable, match="goes on to show what only clouds are freed of"):
        derive(JOINT[name](pictures="refuse"), bundle)


@pytest.mark.parametrize(("mutation", "kind"), ENCODED, indirect=["mutation"])
def test_clouds_and_images_change_by_one_draw_and_prove_themselves(mutation: Mutation, kind: str) -> None:
    bundle = bundle_for(mutation, kind)
    followup, draw = derive(mutation, bundle)
    again = mutation.apply(bundle, draw)
    for other in (again, derive(mutation, bundle)[0]):
        assert other.first.clouds[0].raw.tobytes() == followup.first.clouds[0].raw.tobytes()
        assert other.first.images[0].pixels.tobytes() == followup.first.images[0].pixels.tobytes()
        assert other.first.images[0].compressed == followup.first.images[0].compressed
    assert mutation.guarantee(bundle, followup, draw) is None
    assert followup.first.clouds[0].raw.tobytes() != bundle.clouds[0].raw.tobytes()
    assert (picture_of(followup).pixels != decode(bundle.images[0]).pixels).any()


def test_a_stack_without_cameras_gets_the_very_same_clouds(mutation: Mutation) -> None:
    bundle = bundle_for(mutation)
    alone = replace(bundle, images=(), camera_infos=())
    assert derive(mutation, alone)[0].first.clouds[0].raw.tobytes() == (
        derive(mutation, bundle)[0].first.clouds[0].raw.tobytes()
    )


def test_a_stack_without_lidars_gets_the_very_same_images(mutation: Mutation) -> None:
    bundle = bundle_for(mutation)
    alone = replace(bundle, clouds=(), extra_clouds=bundle.clouds)
    followup, draw = derive(mutation, alone)
    assert mutation.guarantee(alone, followup, draw) is None
    if not isinstance(mutation, SunGlare):  # its azimuth apart, nothing of it is drawn
        state = mutation.begin(generator(7, "walk", 0, None, 0), bundle)
        both = derive(mutation, bundle, state)[0]
        assert (picture_of(derive(mutation, alone, state)[0]).pixels == picture_of(both).pixels).all()


def test_the_guarantee_fails_on_what_only_one_sensor_sees(mutation: Mutation) -> None:
    bundle = bundle_for(mutation)
    followup, draw = derive(mutation, bundle)
    made = followup.first
    dry = Followup(((0, replace(made, images=tuple(replace(i) for i in bundle.images))),), followup.effects)
    assert mutation.guarantee(bundle, dry, draw)
    clear = Followup(((0, made.with_clouds([replace(bundle.clouds[0])])),), followup.effects)
    assert mutation.guarantee(bundle, clear, draw)


def test_what_cannot_be_looked_at_together_is_refused(mutation: Mutation) -> None:
    bundle = bundle_for(mutation)
    late = replace(bundle, images=(replace(bundle.images[0], stamp_ns=bundle.stamp_ns + 80_000_000),))
    with pytest.raises(NotApplicable, match=r"80\.0 ms apart"):
        derive(mutation, late)
    anew = (replace(bundle.images[0]),)  # what is known of an image is known of the very object
    for odd in (
        replace(bundle, images=anew, camera_infos=()),
        replace(bundle, images=anew, clouds=(), extra_clouds=()),
    ):
        with pytest.raises(NotApplicable):
            derive(mutation, odd)


def cells(bundle: Bundle, made: Bundle | None = None) -> tuple[Any, np.ndarray]:
    """What the cells of the source show, and the brightness of their light in another bundle."""
    view = View.of(bundle, bundle.images[0])
    around = surroundings_of(bundle, bundle.images[0], view.camera())
    picture = decode((made or bundle).images[0])
    return around, grey(coarse_light(picture, around.shape, around.depth.step_px))


def test_fog_follows_koschmieder_over_range() -> None:
    """Of a picture that is one grey all over, what is left of its distance to the air's light is e^(-α r)."""
    bundle = street_in("bgr8")
    pixels = np.full_like(np.asarray(bundle.images[0].pixels), 60)
    pixels[-1] = 0  # one grey all over shows nothing
    grey_one = replace(bundle.images[0], pixels=pixels)
    bundle = replace(bundle, images=(grey_one,))
    fog = Fog(visibility_m=80.0, patchiness=0.0)
    _, draw = derive(fog, bundle)
    air, before = 0.6, float(light_of(60 / 255))
    draw["/sensing/camera/image|air_light"] = np.full(3, air, np.float32)
    around, light = cells(bundle, fog.apply(bundle, draw).first)
    near = ~around.sky & (around.range_m < 60.0)
    left = (light[near] - air) / (before - air)
    expected = np.exp(-LN_20 / 80.0 * around.range_m[near])
    assert np.abs(np.median(left - expected)) < 0.01
    assert np.quantile(np.abs(left - expected), 0.9) < 0.05


@pytest.mark.parametrize(
    ("weak", "strong"),
    [
        (Fog(visibility_m=400.0), Fog(visibility_m=60.0)),
        (Rain(rain_mm_per_h=2.0), Rain(rain_mm_per_h=60.0)),
        (WetGround(water_mm=0.2), WetGround(water_mm=1.2)),
    ],
    ids=["fog", "rain", "wet"],
)
def test_more_of_it_changes_more(weak: Mutation, strong: Mutation) -> None:
    bundle = street_in("bgr8")
    old = decode(bundle.images[0])
    apart = [measures.mean_difference(old, picture_of(derive(m, bundle)[0])) for m in (weak, strong)]
    assert 0 < apart[0] < apart[1]


def test_more_fog_leaves_less_contrast_the_farther_it_is() -> None:
    bundle = street_in("bgr8")
    around, before = cells(bundle)
    far = (around.range_m > 40) & (around.range_m < 60)
    deviations = [before[far].std()]
    for visibility_m in (500.0, 150.0, 60.0):
        deviations.append(cells(bundle, derive(Fog(visibility_m=visibility_m), bundle)[0].first)[1][far].std())
    assert deviations == sorted(deviations, reverse=True)


def test_drops_move_by_their_own_speed_from_frame_to_frame() -> None:
    bundle = street()
    view, rain = View.of(bundle, bundle.images[0]), Rain()
    frames = [list(_particles(5, rain.spectrum, _boxes(view), rain._velocities, s)) for s in (10.0, 10.02)]
    for (before, sizes), (after, same) in zip(*frames, strict=True):
        assert (sizes == same).all()
        step = after - before
        usual = np.median(step, axis=0)
        np.testing.assert_allclose(usual[:2], rain._velocities(sizes[:1])[0][:2] * 0.02, atol=1e-6)
        assert usual[2] < 0
        wrapped = np.abs(step - usual) > 1e-6
        assert wrapped.any(axis=1).mean() < 0.9


def test_snow_covers_the_ground_where_it_is_asked_to() -> None:
    bundle = street_in("bgr8")
    around, _ = cells(bundle)
    bare, white = (cells(bundle, derive(Snow(ground_cover=c), bundle)[0].first)[1] for c in (0.0, 0.8))
    ground = around.ground & (around.range_m < 20)
    assert white[ground].mean() > bare[ground].mean() + 0.2
    assert np.abs(white[~around.ground] - bare[~around.ground]).mean() < 0.05


@pytest.mark.parametrize(("drawn", "asked"), [(0.0, 1.0), (1.0, 0.2)])
def test_a_road_that_is_not_as_wet_as_promised_breaks_the_guarantee(drawn: float, asked: float) -> None:
    bundle = street_in("bgr8")
    followup, draw = derive(Rain(road_film=drawn), bundle)
    assert Rain(road_film=drawn).guarantee(bundle, followup, draw) is None
    assert "wet ground right ahead" in str(Rain(road_film=asked).prove_images(bundle, followup.first, draw))
    assert Rain(road_film=asked).guarantee(bundle, followup, draw)


def test_a_road_that_is_wet_in_pictures_alone_breaks_the_guarantee() -> None:
    bundle = street_in("bgr8")
    (dry, _), (wet, draw) = (derive(Rain(road_film=film), bundle) for film in (0.0, 0.8))
    mixed = replace(wet.first, clouds=dry.first.clouds)
    broken = Rain(road_film=0.8).guarantee(bundle, Followup(((0, mixed),), wet.effects), draw)
    assert broken is not None
    lost = {drawn.effects.numbers["returns_lost"] for drawn in (dry, wet)}
    assert len(lost) == 2 and max(lost) == wet.effects.numbers["returns_lost"]
    assert wet.effects.numbers["clouds_without_road"] == 0.0
    alone = replace(bundle, images=())
    dry, draw = derive(Rain(road_film=0.0), alone)
    assert "left dry" in str(Rain(road_film=0.8).guarantee(alone, dry, draw))


def test_the_road_is_as_wet_for_lidars_in_rain_as_under_wet_ground() -> None:
    """One film: what is left of the ground's intensities is what the film of the same depth leaves."""
    bundle, film = street_in("bgr8"), 0.8
    wet = WetGround(water_mm=1.2 * film)
    ground, _ = derive(wet, bundle)
    rain, draw = derive(Rain(rain_mm_per_h=0.1, road_film=film), bundle)
    cloud = bundle.clouds[0]
    plane = draw[f"{cloud.topic}|plane"]
    share = {}
    for name, followup in (("ground", ground), ("rain", rain)):
        new = followup.first.clouds[0]
        road = np.abs(new.xyz @ plane[:3] + plane[3]) < 0.1
        near = road & (np.linalg.norm(new.xyz, axis=1) < 15.0)
        share[name] = float(new.points["intensity"][near].mean())
    old = np.abs(cloud.xyz @ plane[:3] + plane[3]) < 0.1
    before = float(cloud.points["intensity"][old & (np.linalg.norm(cloud.xyz, axis=1) < 15.0)].mean())
    assert share["rain"] == pytest.approx(share["ground"], rel=0.02)
    assert share["rain"] < 0.95 * before


def test_rain_says_where_a_cloud_shows_no_road() -> None:
    bundle = street_in("bgr8")
    cloud = bundle.clouds[0]
    high = cloud.with_raw(np.ascontiguousarray(cloud.raw[cloud.xyz[:, 2] > -1.0]))
    alone = replace(bundle, images=(), clouds=(high,))
    followup, draw = derive(Rain(), alone)
    assert followup.effects.numbers["clouds_without_road"] == 1.0
    assert Rain().guarantee(alone, followup, draw) is None


def test_shadows_of_the_day_in_fog_break_the_guarantee() -> None:
    """Koschmieder's law over the light of the day, which thick fog hides."""
    bundle, fog = street_in("bgr8"), Fog(visibility_m=40.0, patchiness=0.0)
    followup, draw = derive(fog, bundle)
    assert fog.guarantee(bundle, followup, draw) is None
    view = View.of(bundle, bundle.images[0])
    passing = np.exp(-fog.visible_extinction_per_m * cells(bundle)[0].range_m)
    veil = relit(
        view.picture,
        passing.astype(np.float32),
        ((1.0 - passing)[..., None] * draw[f"{view.image.topic}|air_light"]).astype(np.float32) * 1.3,
        surroundings_of(bundle, view.image, view.camera()).depth.step_px,
    )
    tampered = replace(followup.first, images=(replace(bundle.images[0], pixels=veil),))
    assert fog.guarantee(bundle, Followup(((0, tampered),), followup.effects), draw)


@pytest.mark.parametrize("part", ["sky", "road"])
def test_a_night_with_a_bright_sky_or_a_road_without_headlamps_breaks_the_guarantee(part: str) -> None:
    bundle, night = street_in("bgr8"), Night()
    followup, draw = derive(night, bundle)
    assert night.guarantee(bundle, followup, draw) is None
    if part == "sky":
        around, _ = cells(bundle)
        pixels = np.array(followup.first.images[0].pixels)
        rows = np.flatnonzero(around.sky.any(axis=1))[-1] * around.depth.step_px
        pixels[:rows] = np.asarray(bundle.images[0].pixels)[:rows] // 2
        broken, why = replace(followup.first, images=(replace(bundle.images[0], pixels=pixels),)), "sky"
    else:
        broken, why = derive(Night(headlights=0.0), bundle)[0].first, "road ahead"
    assert why in str(night.guarantee(bundle, Followup(((0, broken),), followup.effects), draw))


def test_the_exposure_follows_the_sun_with_a_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was hidden 0.1 s ago: the camera still exposes for that, more so than if it had been hidden 0.5 s ago."""
    bundle, glare = street_in("bgr8"), SunGlare(**SUN)
    state = glare.begin(generator(7, "walk", 0, None, 0), bundle)
    image = bundle.images[0]
    exposures = []
    for ago_ns in (100_000_000, 500_000_000, 5_000_000_000):
        before = replace(bundle, images=(replace(image, stamp_ns=image.stamp_ns - ago_ns),))
        monkeypatch.setattr(SunGlare, "visible", lambda _, of, state, before=before: 0.0 if of is before else 1.0)
        draw = glare.draw_image(np.random.default_rng(0), View.of(replace(bundle, earlier=(before,)), image), state)
        exposures.append(draw["exposure"])
    assert 0.4 <= exposures[2] < exposures[1] < exposures[0] < 1.0
    assert exposures[0] - exposures[2] > 0.1


def test_water_reflects_as_fresnel_says() -> None:
    straight_down = ((1.33 - 1.0) / (1.33 + 1.0)) ** 2
    assert fresnel(np.array([1.0]))[0] == pytest.approx(straight_down)
    assert fresnel(np.array([0.01]))[0] > 0.9
    angles = np.linspace(0.02, 1.0, 50)
    assert (np.diff(fresnel(angles)) <= 1e-12).all()


def test_a_sun_behind_the_camera_leaves_the_very_picture() -> None:
    bundle = street_in("bgr8")
    followup, draw = derive(SunGlare(azimuth_rad=3.1), bundle)
    assert followup.first.images[0] is bundle.images[0]
    assert SunGlare(azimuth_rad=3.1).guarantee(bundle, followup, draw) is None
    tampered = replace(bundle.images[0], pixels=np.asarray(bundle.images[0].pixels) // 2)
    broken = Followup(((0, replace(followup.first, images=(tampered,))),), followup.effects)
    assert "drawn to stay" in str(SunGlare(azimuth_rad=3.1).guarantee(bundle, broken, draw))


def test_headlights_light_the_road_ahead_and_not_the_sky() -> None:
    bundle = street_in("bgr8")
    around, dark = cells(bundle, derive(Night(headlights=0.0), bundle)[0].first)
    _, lit = cells(bundle, derive(Night(headlights=1.0), bundle)[0].first)
    road = around.ground & (around.range_m > 5) & (around.range_m < 15)
    assert lit[road].mean() > 3 * dark[road].mean()
    assert np.abs(lit[around.sky] - dark[around.sky]).mean() < 0.01


def test_long_shadows_lie_where_the_sun_does_not_get() -> None:
    """What stands to the left casts its shadow to the right when the sun is on the left, and the longer the lower."""
    bundle = street_in("bgr8")
    around, before = cells(bundle)
    shares = []
    for elevation_rad in (0.5, 0.15):
        made = derive(LowSun(azimuth_rad=1.5708, elevation_rad=elevation_rad), bundle)[0].first
        _, after = cells(bundle, made)
        ratio = after[around.ground] / np.maximum(before[around.ground], 1e-4)
        shares.append(float((ratio < 0.6).mean()))
    assert 0 < shares[0] < shares[1]


def test_shadows_fall_away_from_the_sun() -> None:
    """With the sun on the left shadows lie farther to the right than with the sun on the right."""
    bundle = street_in("bgr8")
    around, before = cells(bundle)
    left_m = []
    for azimuth_rad in (1.5708, -1.5708):
        made = derive(LowSun(azimuth_rad=azimuth_rad, elevation_rad=0.3), bundle)[0].first
        shadow = around.ground & (cells(bundle, made)[1] < 0.6 * before)
        left_m.append(float(around.points()[..., 1][shadow].mean()))
    assert left_m[0] < left_m[1] - 0.5


def test_relit_light_is_linear_light() -> None:
    picture = decode(street_in("bgr8").images[0])
    shape = (picture.size[0] // 8, picture.size[1] // 8)
    half = relit(picture, np.full(shape, 0.5, np.float32), np.zeros((*shape, 3), np.float32), 8)
    expected = light_of(picture.pixels / 255.0) * 0.5
    assert np.abs(light_of(half / 255.0) - expected).max() < 0.005
    added = relit(picture, np.zeros(shape, np.float32), np.full((*shape, 3), 0.25, np.float32), 8)
    assert np.abs(light_of(added / 255.0) - 0.25).max() < 0.005


@lru_cache(maxsize=1)
def before_a_large_picture() -> View:
    bundle = next(iter(generate_drive(1, lidar=replace(hdl_64e(), azimuths=450), camera=CameraSensor(960, 720))))
    return View.of(bundle, bundle.images[0])


@pytest.mark.parametrize("weather", [Rain(rain_mm_per_h=0.5), Snow(snow_mm_per_h=0.02)], ids=["rain", "snow"])
def test_as_many_particles_are_drawn_as_there_are_before_the_camera(
    weather: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted by the volume in which a diameter is wide enough to be seen, nothing standing before any of them."""
    module = "mt_nodes.relations.mutations.joint.particles_in_pictures"
    view = before_a_large_picture()
    camera, clear = view.camera(), surroundings_of(view.bundle, view.image, view.camera())
    depth = replace(clear.depth, range_m=np.full_like(clear.depth.range_m, np.inf))
    monkeypatch.setattr(f"{module}.surroundings", lambda _: replace(clear, depth=depth))
    edges_mm = np.linspace(0.25, weather.spectrum.most_mm, 400)
    far_m = np.minimum(12.0, camera.k[0, 0] * edges_mm[1:] * weather.spectrum.swell * 1e-3 / 0.3)
    opening = camera.width * camera.height / (camera.k[0, 0] * camera.k[1, 1])
    volume_m3 = opening * (np.maximum(far_m, 0.4) ** 3 - 0.4**3) / 3.0
    expected = float((weather.spectrum.per_m3(edges_mm[:-1], edges_mm[1:]) * volume_m3).sum())
    still = [streaks(view, key, weather.spectrum, lambda d: np.zeros((len(d), 3)), 1e-3) for key in range(5)]
    shown = np.mean([len(made.width_px) for made in still])
    assert 100 < shown < 2000  # fewer than what is drawn at most: nothing was left out
    assert shown == pytest.approx(expected, rel=5.0 / np.sqrt(5.0 * expected) + 0.02)


def test_of_too_many_particles_the_widest_in_the_picture_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    module = "mt_nodes.relations.mutations.joint.particles_in_pictures"
    view = before_a_large_picture()
    weather = Rain(rain_mm_per_h=50.0)

    def shown(most: int) -> Any:
        monkeypatch.setattr(f"{module}._MOST", most)
        return np.sort(streaks(view, 1, weather.spectrum, lambda d: np.zeros((len(d), 3)), 1e-3).width_px)

    every, few = shown(20_000), shown(500)
    assert len(every) > 2000
    # What stands before them hides some of those chosen, and nothing else is missing.
    assert 250 <= len(few) <= 500
    assert np.array_equal(few, every[-len(few) :])
