# SPDX-License-Identifier: Apache-2.0
"""Objects removed, moved and replaced in pictures: by one draw with the clouds, near the truth, and proven."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

import cv2
import numpy as np
import pytest
from drives import KITTI
from made_images import PEDESTRIAN_CAMERA as CAMERA
from made_images import PEDESTRIAN_FRAME as FRAME
from made_images import PEDESTRIAN_FRAMES as FRAMES
from made_images import PEDESTRIAN_SEED as SEED
from made_images import street_with_pedestrian as street

from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.seeds import generator
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.data.transforms import Transform, move
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.camera.each_image import View
from mt_nodes.relations.mutations.camera.image_tones import BrightnessChanged
from mt_nodes.relations.mutations.objects import removal_in_pictures
from mt_nodes.relations.mutations.objects.object_moved import ObjectMoved
from mt_nodes.relations.mutations.objects.object_removed import ObjectRemoved
from mt_nodes.relations.mutations.objects.object_replaced import ObjectReplaced
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.world.camera import fill_quality
from mt_nodes.world.scene import meshes
from mt_nodes.world.scene.camera_rendering import photograph
from mt_nodes.world.scene.drive import IMAGE_TOPIC
from mt_nodes.world.scene.street import EGO_SPEED_MPS, PERSON, Street

MOVED = ObjectMoved(ahead_m=(6.0, 30.0), shift_m=(1.0, 2.5))
CHANGES: dict[str, Mutation] = {
    "removed": ObjectRemoved(),
    "moved": MOVED,
    "replaced": ObjectReplaced(size="person", by="child"),
}


@lru_cache(maxsize=8)
def derived(name: str) -> tuple[Followup, Draw]:
    return derive(CHANGES[name], street())


def derive(mutation: Mutation, bundle: Bundle) -> tuple[Followup, Draw]:
    rng = generator(3, "pictures", 0, 0, "0")
    drawn = mutation.draw(rng, bundle, mutation.begin(rng, bundle))
    return mutation.apply(bundle, drawn), drawn


def pixels(bundle: Bundle) -> np.ndarray:
    return decode(bundle.images[0]).pixels.astype(int)


def changed(followup: Followup) -> np.ndarray:
    return np.abs(pixels(followup.first) - pixels(street())).max(axis=2) > 0


def true_picture(place_m: tuple[float, ...]) -> np.ndarray:
    """The picture without the pedestrian at a place."""
    whole, time_s = Street(SEED, FRAMES * 0.1), FRAME * 0.1
    ego_m = EGO_SPEED_MPS * time_s
    pieces = whole.pieces(time_s)
    apart = {id(p): p.mesh.vertices_m[:, :2].mean(axis=0) - (ego_m, 0.0) - place_m for p in pieces if p.kind == PERSON}
    nearest = min(apart, key=lambda key: float(np.hypot(*apart[key])))
    left = [p for p in pieces if id(p) != nearest]
    mesh = whole.road.on_road(meshes.merged(p.mesh for p in left), ego_m)
    return photograph(left, mesh, ego_m, CAMERA, generator(SEED, "camera", 0, FRAME, "noise")).astype(int)


@pytest.mark.parametrize("name", CHANGES)
def test_cloud_and_picture_change_by_one_draw_and_prove_themselves(name: str) -> None:
    followup, draw = derived(name)
    bundle = street()
    assert CHANGES[name].guarantee(bundle, followup, draw) is None
    assert followup.first.changed_topics(bundle) == {bundle.clouds[0].topic, IMAGE_TOPIC}
    numbers = followup.effects.numbers
    assert 0.0 < numbers["fill_error"] <= fill_quality.MOST_LIGHT
    assert numbers["fill_given"] >= fill_quality.LEAST_GIVEN
    assert numbers["fill_from_earlier"] > 0.2, "what is behind the pedestrian was seen before"
    assert (numbers["pictures_changed"], numbers["pictures_out_of_sight"]) == (1.0, 0.0)


def test_the_picture_is_near_the_true_one_without_the_pedestrian() -> None:
    followup, _ = derived("removed")
    true, where = true_picture(followup.effects.removed[0].center_m[:2]), changed(followup)
    before = np.abs(pixels(street()) - true).max(axis=2)
    after = np.abs(pixels(followup.first) - true).max(axis=2)
    assert after[where].mean() < 0.5 * before[where].mean()
    assert (before[~where] > 24).mean() < 2e-4, "a part of the pedestrian, or of his shadow, is left"
    assert (after[~where] == before[~where]).all()


@pytest.mark.parametrize("name", CHANGES)
def test_a_draw_holds_all_that_applying_it_needs(name: str) -> None:
    followup, draw = derived(name)
    alone = CHANGES[name].apply(replace(street(), earlier=(), motion=None), draw)
    assert (pixels(alone.first) == pixels(followup.first)).all()
    assert alone.first.clouds[0].raw.tobytes() == followup.first.clouds[0].raw.tobytes()


@pytest.mark.parametrize("name", ["moved", "replaced"])
def test_returns_of_the_new_object_lie_within_its_silhouette(name: str) -> None:
    followup, _ = derived(name)
    bundle, [box] = street(), followup.effects.image_boxes
    assert box.visible > 0.9
    cloud, image = bundle.clouds[0], bundle.images[0]
    hits = np.asarray(followup.effects.added_points[cloud.topic], float)
    at = View.of(bundle, image).camera().project(move(bundle.transforms.lookup(image.frame_id, cloud.frame_id), hits))
    x0, y0, x1, y1 = box.box_px
    within = (at >= (x0 - 2, y0 - 2)).all(axis=1) & (at <= (x1 + 2, y1 + 2)).all(axis=1)
    x, y = np.rint(at[within]).astype(int).T
    assert within.mean() >= 0.98
    assert changed(followup)[y, x].mean() >= 0.98


def test_the_moved_pedestrian_looks_as_before() -> None:
    followup, draw = derived("moved")
    [box] = followup.effects.image_boxes
    x0, y0, x1, y1 = (round(edge) for edge in box.box_px)
    new = pixels(followup.first)[y0 + 4 : y1 - 4, x0 + 4 : x1 - 4].astype(np.uint8)
    found = cv2.matchTemplate(pixels(street()).astype(np.uint8), new, cv2.TM_CCOEFF_NORMED)
    _, best, _, place = cv2.minMaxLoc(found)
    assert best > 0.6
    turn = float(draw[f"{street().clouds[0].topic}|turn_rad"])
    assert np.sign(place[0] - (x0 + 4)) == np.sign(turn), "moved to the left, it was farther right before"


def test_a_camera_that_looks_elsewhere_keeps_its_picture_and_the_record_says_so() -> None:
    bundle = street()
    image = bundle.images[0]
    back = np.diag([-1.0, 1.0, -1.0, 1.0])
    tree = bundle.transforms.extended([Transform(image.frame_id, "camera_back", back)])
    infos = tuple(replace(info, frame_id="camera_back") for info in bundle.camera_infos)
    away = replace(bundle, images=(replace(image, frame_id="camera_back"),), camera_infos=infos, transforms=tree)
    followup, draw = derive(ObjectRemoved(), away)
    assert ObjectRemoved().guarantee(away, followup, draw) is None
    assert followup.first.images[0] is away.images[0]
    assert "does not show the object" in followup.effects.unchanged[IMAGE_TOPIC]
    assert followup.effects.numbers["pictures_out_of_sight"] == 1.0


@pytest.mark.parametrize("name", CHANGES)
def test_without_pictures_a_cloud_changes_as_with_pictures_that_stay(name: str) -> None:
    blind = replace(street(), images=(), camera_infos=())
    alone, _ = derive(CHANGES[name], blind)
    stays, _ = derive(replace(CHANGES[name], pictures="stay"), street())  # type: ignore[type-var]
    assert alone.first.clouds[0].raw.tobytes() == stays.first.clouds[0].raw.tobytes()
    assert stays.first.images[0] is street().images[0]


def test_what_cannot_be_removed_cleanly_is_not_applicable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal_in_pictures, "_known", {})
    monkeypatch.setattr(fill_quality, "MOST_LIGHT", 1e-4)
    with pytest.raises(NotApplicable, match=r"image: the object cannot be removed.*beside it.*allowed 0\.000"):
        derive(ObjectRemoved(), street())


def test_what_a_picture_hardly_shows_is_not_taken_for_out_of_sight(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal_in_pictures, "_known", {})
    monkeypatch.setattr(removal_in_pictures, "_LEAST_PX", 10**6)
    with pytest.raises(NotApplicable, match=r"image: the object cannot be removed.*\d+ of its returns are in sight"):
        derive(ObjectRemoved(), street())


def test_a_radar_that_would_go_on_to_see_the_object_is_not_contradicted() -> None:
    radar = replace(street().clouds[0], topic="/radar")
    with pytest.raises(NotApplicable, match="/radar: what object_removed does to a radar is not known"):
        derive(ObjectRemoved(), replace(street(), radars=(radar,)))


def tampered(followup: Followup, image: Image) -> Followup:
    return Followup(((0, replace(followup.first, images=(image,))),), followup.effects)


def test_proofs_find_what_is_wrong() -> None:
    followup, draw = derived("removed")
    bundle, removed = street(), ObjectRemoved()
    image = followup.first.images[0]
    assert "no pixel differs" in str(removed.guarantee(bundle, tampered(followup, replace(bundle.images[0])), draw))
    elsewhere = image.pixels.copy()
    elsewhere[5, 5] ^= 255
    assert "was to stay" in str(removed.guarantee(bundle, tampered(followup, replace(image, pixels=elsewhere)), draw))
    worse = {**draw, f"{IMAGE_TOPIC}|fill_error": 0.3}
    assert "the fill is 0.300" in str(removed.guarantee(bundle, followup, worse))
    unmeasured = {**draw, f"{IMAGE_TOPIC}|fill_error": float("nan")}
    assert "the fill is nan" in str(removed.guarantee(bundle, followup, unmeasured))
    faint = (0.7 * bundle.images[0].pixels + 0.3 * image.pixels).astype(np.uint8)
    still = replace(image, pixels=np.where(changed(followup)[..., None], faint, image.pixels))
    assert "like before" in str(removed.guarantee(bundle, tampered(followup, still), draw))
    bits = np.unpackbits(draw[f"{IMAGE_TOPIC}|changed"])
    part = {**draw, f"{IMAGE_TOPIC}|changed": np.packbits(bits * (np.arange(len(bits)) > len(bits) // 2))}
    assert "returns in sight" in str(removed.guarantee(bundle, followup, part))


@pytest.mark.parametrize("suffix", [".png", ".jpg"])
def test_compressed_pictures(suffix: str) -> None:
    bundle = street()
    coded = bytes(cv2.imencode(suffix, bundle.images[0].pixels)[1])
    image = Image(IMAGE_TOPIC, bundle.images[0].stamp_ns, "camera", np.zeros((0, 0, 3), np.uint8), suffix[1:], coded)
    packed = replace(bundle, images=(image,))
    followup, draw = derive(ObjectRemoved(), packed)
    assert ObjectRemoved().guarantee(packed, followup, draw) is None
    plain = pixels(derived("removed")[0].first)
    assert np.abs(pixels(followup.first) - plain).mean() < 2.0
    assert followup.first.images[0].compressed != coded


def test_a_camera_alone_is_changed_by_the_clouds_beside_it() -> None:
    bundle = street()
    alone = replace(bundle, clouds=(), extra_clouds=bundle.clouds)
    followup, draw = derive(ObjectRemoved(), alone)
    assert ObjectRemoved().guarantee(alone, followup, draw) is None
    assert (pixels(followup.first) == pixels(derived("removed")[0].first)).all()
    assert followup.effects.removed


def test_earlier_bundles_come_with_pictures_only_and_to_the_first_step_only() -> None:
    seen: list[tuple[int, ...]] = []

    class Spy(ObjectRemoved):
        def draw(self, rng: np.random.Generator, bundle: Bundle, state: object) -> Draw:
            seen.append(tuple(b.index for b in bundle.earlier))
            raise NotApplicable("spied")

    instants = [*street().earlier, replace(street(), earlier=())]
    for mutations, pictures in (([Spy()], True), ([Spy()], False), ([BrightnessChanged(), Spy()], True)):
        pipeline = MutationPipeline(mutations, 0, "spy")
        for instant in instants:
            given = instant if pictures else replace(instant, images=(), camera_infos=())
            with pytest.raises(NotApplicable, match="spied"):
                pipeline.derive(given)
    first, blind, later = seen[: len(instants)], seen[len(instants) : -len(instants)], seen[-len(instants) :]
    assert first[-1] == (2, 4, 6, 8, 9, 10, 11)
    assert not any(blind) and not any(later)


@pytest.mark.skipif(not KITTI.is_dir(), reason=f"no recorded drive at {KITTI}")
def test_recorded_pictures_change_cleanly_or_not_at_all() -> None:
    pipeline, changed_frames, reasons = MutationPipeline([ObjectRemoved()], 0, "recorded"), 0, []
    with BagSource(KITTI) as source:
        for bundle in source:
            if bundle.index % 5:
                pipeline.meet(bundle)
                continue
            try:
                result = pipeline.derive(bundle)
            except NotApplicable as reason:
                reasons.append(str(reason))
                continue
            assert result.broken is None
            changed_frames += 1
    assert changed_frames + len(reasons) == 6
    # Some frames show no more than three things that are wholly within the limits.
    assert all(re.match("none of the nearest [34] objects can be removed: ", reason) for reason in reasons)
    assert all("image: the object cannot be removed from the picture: " in reason for reason in reasons)
