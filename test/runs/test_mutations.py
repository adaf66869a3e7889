# SPDX-License-Identifier: Apache-2.0
"""Walks the catalogue: a new mutation is tested by being there."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from drives import street
from made_bundles import LAYOUTS, made_bundle, made_cloud

from mt_nodes.base import plugins
from mt_nodes.base.errors import NotApplicable
from mt_nodes.base.params import describe
from mt_nodes.base.seeds import generator
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations import keyed_draws
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.lidar.points_permuted import PointsPermuted
from mt_nodes.relations.mutations.stream.identity import Identity

#: What changes images, radars or navigation alone is walked in test_mutations_camera.py, _radar.py and _drift.py.
ALONE = (("camera",), ("radar",), ("gnss",), ("imu",), ("odometry",))
CATALOGUE = {n: cls for n, cls in plugins.catalogue("mutations").items() if getattr(cls, "sensors", ()) not in ALONE}
BUNDLES = {
    **{layout: made_bundle(made_cloud(layout)) for layout in LAYOUTS},
    "organised": made_bundle(made_cloud("ouster", 8192, height=64, holes=0.3)),
    "street": street(),
}


def later(bundle: Bundle, index: int) -> Bundle:
    """The same street a while after, its points in another order."""
    cloud, after_ns = bundle.cloud(), index * 100_000_000
    turned = replace(cloud.with_raw(np.roll(cloud.raw, index)), stamp_ns=cloud.stamp_ns + after_ns)
    return replace(bundle, index=index, stamp_ns=bundle.stamp_ns + after_ns).with_clouds([turned])


#: What some mutations do shows in a stream only; each of its frames comes with those before it.
FRAMES = [later(BUNDLES["street"], i) for i in range(12)]
STREAM = [replace(bundle, earlier=tuple(FRAMES[: bundle.index])) for bundle in FRAMES]


def rng(bundle: Bundle, number: int = 0) -> np.random.Generator:
    return generator(7, "walk", bundle.episode, bundle.index, number)


def derive(mutation: Mutation, bundle: Bundle, number: int = 0) -> tuple[Followup, Draw]:
    state = mutation.begin(generator(7, "walk", bundle.episode, None, 0), bundle)
    draw = mutation.draw(rng(bundle, number), bundle, state)
    return mutation.apply(bundle, draw), draw


def derive_each(mutation: Mutation, number: int = 0) -> Iterator[Followup | None]:
    """Of every bundle of the stream, as a run does: what persists begins with the first."""
    state = mutation.begin(generator(7, "walk", 0, None, 0), STREAM[0])
    for bundle in STREAM:
        try:
            yield mutation.apply(bundle, mutation.draw(rng(bundle, number), bundle, state))
        except NotApplicable:
            yield None


def said(followup: Followup | None) -> list[Any] | None:
    return followup and [(delay, content(b)) for delay, b in followup.bundles]


def content(bundle: Bundle) -> list[Any]:
    clouds = [(c.topic, c.stamp_ns, c.frame_id, c.points.dtype, c.height, c.raw.tobytes()) for c in bundle.clouds]
    given = [(t.child, t.matrix.tobytes()) for t in bundle.transforms.given.transforms]
    return clouds + given + [(i.topic, i.stamp_ns, i.encoding, i.pixels.tobytes()) for i in bundle.images]


@pytest.fixture(params=CATALOGUE, ids=str, scope="module")
def mutation(request: pytest.FixtureRequest) -> Mutation:
    """In the module's scope, so that all tests of a mutation come one after the other and share what it made."""
    made: Mutation = CATALOGUE[request.param]()
    return made


@pytest.fixture(params=BUNDLES, ids=str, scope="module")
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@dataclass(frozen=True)
class Derived:
    """A follow-up, and what its source held before it was made."""

    bundle: Bundle
    before: list[Any]
    followup: Followup
    draw: Draw


@pytest.fixture(scope="module")
def derived(mutation: Mutation, layout: str) -> Derived:
    """Every mutation has a follow-up of a real scan; of some other clouds it may say that there is none."""
    bundle = fitting(BUNDLES[layout], mutation)
    before = content(bundle)
    try:
        return Derived(bundle, before, *derive(mutation, bundle))
    except NotApplicable as reason:
        if layout == "street":
            raise
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def stream(mutation: Mutation) -> list[Followup | None]:
    return list(derive_each(mutation))


def fitting(bundle: Bundle, mutation: Mutation) -> Bundle:
    """What changes images, too, is walked with them in test_mutations_camera_weather.py; here are clouds alone."""
    seen = bundle.images and "camera" in mutation.sensors and "lidar" in mutation.sensors
    return replace(bundle, images=(), camera_infos=()) if seen else bundle


def test_catalogue_holds_control_and_sham() -> None:
    assert {"noise_outside_roi", "points_permuted", "identity"} <= set(CATALOGUE)
    roles = [c.role for c in CATALOGUE.values()]
    assert (roles.count("control"), roles.count("sham")) == (1, 1)


@pytest.mark.by_turns("mutation", "layout", of=len(BUNDLES) - 1, always="street")
def test_mutation_is_deterministic_pure_and_proves_itself(mutation: Mutation, derived: Derived) -> None:
    bundle, followup, draw = derived.bundle, derived.followup, derived.draw
    again, same_draw = derive(mutation, bundle)
    assert list(draw) == list(same_draw)
    for name, value in draw.items():
        np.testing.assert_array_equal(np.asarray(value), np.asarray(same_draw[name]))
        assert np.asarray(value).dtype != object
    repeated = mutation.apply(bundle, draw)
    for other in (again, repeated):
        assert [delay for delay, _ in other.bundles] == [delay for delay, _ in followup.bundles]
        assert [content(b) for _, b in other.bundles] == [content(b) for _, b in followup.bundles]
    assert content(bundle) == derived.before, "the mutation wrote into its source"
    assert mutation.guarantee(bundle, followup, draw) is None
    # Layout, stamp and frame are kept.
    for old, new in ((o, n) for _, b in followup.bundles for o, n in zip(bundle.clouds, b.clouds, strict=True)):
        assert new.points.dtype == old.points.dtype
        assert new.points.dtype.itemsize == old.points.dtype.itemsize
        assert (new.topic, new.frame_id) == (old.topic, old.frame_id)
        assert new.stamp_ns == old.stamp_ns or mutation.about_stamps
        assert len(new) == new.height * new.width


def test_another_draw_differs_unless_nothing_is_left_to_chance(
    mutation: Mutation, stream: list[Followup | None]
) -> None:
    pairs = zip(stream, derive_each(mutation, 1), strict=True)
    assert any(said(first) != said(second) for first, second in pairs) == mutation.random
    made = zip(STREAM, stream, strict=True)
    changed = any(followup and said(followup) != [(0, content(bundle))] for bundle, followup in made)
    assert changed == (mutation.role != "control")


@pytest.mark.parametrize("layout", ["street"], indirect=True)
def test_no_draw_holds_a_number_for_every_point(derived: Derived) -> None:
    """A ledger keeps every draw: of a follow-up's size it would be as long as the drive."""
    held = {name: np.size(value) for name, value in derived.draw.items()}
    assert max(held.values(), default=0) < 0.5 * len(derived.bundle.cloud()), held


def test_stamps_change_where_they_are_what_it_is_about(mutation: Mutation, stream: list[Followup | None]) -> None:
    made = {b.stamp_ns for followup in stream if followup for _, b in followup.bundles}
    assert bool(made - {bundle.stamp_ns for bundle in STREAM}) == mutation.about_stamps


def test_every_parameter_has_help(mutation: Mutation) -> None:
    assert plugins.summary_of(type(mutation))
    assert all(row["help"] for row in describe(type(mutation)))


def test_mutation_survives_odd_clouds_or_says_why(mutation: Mutation) -> None:
    empty, blind = made_cloud(count=0), made_cloud(count=50, holes=1.1)
    for bundle in (fitting(b, mutation) for b in (made_bundle(empty), made_bundle(blind), Bundle(0, 0, 0))):
        try:
            followup, draw = derive(mutation, bundle)
        except NotApplicable as reason:
            assert str(reason)
        else:
            assert mutation.guarantee(bundle, followup, draw) is None


def test_identity_sends_the_very_objects() -> None:
    bundle = BUNDLES["kitti"]
    followup, draw = derive(Identity(), bundle)
    assert followup.first is bundle
    assert draw == {}
    tampered = Followup(((0, bundle.with_clouds([made_cloud("kitti", seed=4)])),))
    assert "changed /sensing/lidar/points" in str(Identity().guarantee(bundle, tampered, draw))
    assert Identity().guarantee(bundle, Followup(((5, bundle),)), draw)


def with_cloud(followup: Followup, cloud: Cloud) -> Followup:
    return Followup(((0, followup.first.with_clouds([cloud])),), followup.effects)


@pytest.mark.parametrize("bundle", BUNDLES.values(), ids=BUNDLES)
def test_permuted_is_the_same_multiset_and_another_order(bundle: Bundle) -> None:
    followup, _ = derive(PointsPermuted(), bundle)
    old, new = bundle.cloud(), followup.first.cloud()
    assert old.raw.tobytes() != new.raw.tobytes()
    if not old.organised:
        assert sorted(old.raw.tolist()) == sorted(new.raw.tolist())
        assert (new.points["x"] != old.points["x"]).mean() > 0.9


def test_organised_cloud_keeps_its_order_and_moves_along_rays() -> None:
    bundle = BUNDLES["organised"]
    old, new = bundle.cloud(), derive(PointsPermuted(), bundle)[0].first.cloud()
    assert new.height == old.height
    known = np.isfinite(old.xyz).all(axis=1)
    assert 0 < np.linalg.norm(new.xyz[known] - old.xyz[known], axis=1).max() < 1e-4
    assert (np.isfinite(new.xyz).all(axis=1) == known).all()
    for name in ("intensity", "ring", "t", "range"):
        assert (old.points[name] == new.points[name]).all()


@pytest.mark.parametrize("tamper", ["double", "drop", "change", "add"])
def test_permuted_catches_tampering(tamper: str) -> None:
    bundle = BUNDLES["velodyne"]
    followup, draw = derive(PointsPermuted(), bundle)
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    if tamper == "double":
        raw[0] = raw[1]
    elif tamper == "change":
        raw.view(cloud.points.dtype)["time"][5] += 1e-3
    raw = {"drop": raw[1:], "add": np.concatenate([raw, raw[:1]])}.get(tamper, raw)
    assert PointsPermuted().guarantee(bundle, with_cloud(followup, cloud.with_raw(raw)), draw)


def test_permuted_catches_an_order_that_is_no_permutation(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = BUNDLES["velodyne"]

    def lying(key: int, count: int) -> npt.NDArray[np.int64]:
        order = keyed_draws.order_of(key, count).copy()
        order[0] = order[1]
        return order

    monkeypatch.setattr("mt_nodes.relations.mutations.lidar.points_permuted.order_of", lying)
    followup, draw = derive(PointsPermuted(), bundle)
    assert "no permutation" in str(PointsPermuted().guarantee(bundle, followup, draw))


def test_a_key_stands_for_the_same_numbers_wherever_it_is_asked() -> None:
    """As the ledger of an earlier run counts on: these bytes change only where the numbers do."""
    order, normal = keyed_draws.order_of(5, 1000), keyed_draws.cut_normals(5, 20_000, 2.0)
    assert sorted(order.tolist()) == list(range(1000))
    assert np.abs(normal).max() == 2.0 and abs(float(normal.mean())) < 0.03 and abs(float(normal.std()) - 0.96) < 0.02
    script = "from mt_nodes.relations.mutations.keyed_draws import *; import hashlib; "
    script += "print(*(hashlib.sha256(a.tobytes()).hexdigest()"
    script += " for a in (order_of(5, 1000), cut_normals(5, 20_000, 2.0))))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=100)
    assert told.stdout.split() == [hashlib.sha256(array.tobytes()).hexdigest() for array in (order, normal)]
    for array in (order, normal):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(("field", "by"), [("x", 0.01), ("intensity", 1.0), ("x", np.nan)])
def test_jitter_catches_tampering(field: str, by: float) -> None:
    bundle = BUNDLES["organised"]
    followup, draw = derive(PointsPermuted(), bundle)
    cloud = followup.first.cloud()
    raw = cloud.raw.copy()
    row = int(np.flatnonzero(np.isfinite(cloud.xyz).all(axis=1))[0])
    raw.view(cloud.points.dtype)[field][row] += by
    assert PointsPermuted().guarantee(bundle, with_cloud(followup, cloud.with_raw(raw, height=cloud.height)), draw)
