# SPDX-License-Identifier: Apache-2.0
"""Mutations of the stream: what goes out, when, under which stamps; and that a run sends just that."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_arms import FakeArm, relation, run, suite
from hypothesis import assume, given
from hypothesis import strategies as st
from mutations_for_tests import Shuffle
from recordings import PERIOD_NS, bundles, stamp

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.messages import Bundle
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.engine.send_order import split_followup
from mt_nodes.relations.mutations.base import Followup, Mutation
from mt_nodes.relations.mutations.stream.frame_mutations import (
    FramesDelayed,
    FramesDropped,
    FramesFrozen,
    FramesReordered,
    FramesRepeated,
    RateReduced,
)
from mt_nodes.relations.mutations.stream.stamp_mutations import ClockStepped, StampsJittered
from mt_nodes.relations.mutations.stream.whole_stream import OneKind, same_content, with_messages
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.relations.relation import load_relation

DRIVE = bundles(40)
MUTATIONS: tuple[Mutation, ...] = (
    FramesDropped(every=4, burst=2),
    FramesFrozen(every=5, burst=3),
    FramesFrozen(every=5, burst=3, stamps="old"),
    FramesDelayed(every=3),
    FramesDelayed(every=1, stamps="new"),
    FramesRepeated(every=3, times=2, after_s=0.01),
    FramesReordered(every=5, burst=2),
    StampsJittered(jitter_s=0.08),
    ClockStepped(step_s=-0.25, from_frame=7),
    RateReduced(one_of=2.5),
)
every_mutation = pytest.mark.parametrize("mutation", MUTATIONS, ids=repr)


def derived(mutation: Mutation, source: Iterable[Bundle] = DRIVE, seed: int = 7) -> list[DerivedFollowup]:
    pipeline = MutationPipeline([mutation], seed, "r")
    return [pipeline.derive(bundle) for bundle in source]


def sent(mutation: Mutation, source: Sequence[Bundle] = DRIVE, seed: int = 7) -> list[list[tuple[int, int, int]]]:
    """Of each bundle what goes out: delay, number of the bundle whose points they are, stamp in ns since the first."""
    numbers = {bundle.cloud().raw.tobytes(): bundle.index for bundle in source}
    return [
        [(d, numbers[b.cloud().raw.tobytes()], b.cloud().stamp_ns - stamp(0)) for d, b in made.followup.bundles]
        for made in derived(mutation, source, seed)
    ]


def struck(mutation: Mutation, seed: int = 7) -> list[int]:
    return [int(made.draws[0]["nth"]) for made in derived(mutation, seed=seed)]


@every_mutation
def test_it_proves_itself_and_acts(mutation: Mutation) -> None:
    made = derived(mutation)
    assert [d.broken for d in made] == [None] * len(DRIVE)
    plain = [[(0, b.index, b.stamp_ns - stamp(0))] for b in DRIVE]
    assert sent(mutation) != plain


@every_mutation
def test_all_sensors_go_together_and_the_rest_stays(mutation: Mutation) -> None:
    for bundle, made in zip(DRIVE, derived(mutation), strict=True):
        for _, b in made.followup.bundles:
            assert [m.topic for m in b.messages] == [m.topic for m in bundle.messages]
            assert {m.stamp_ns for m in b.messages} == {b.stamp_ns}
            assert b.transforms is (bundle if b.index == bundle.index else DRIVE[b.index]).transforms


# --- of one kind of sensor


OF_ONE: tuple[OneKind, ...] = tuple(
    cls(of=of, **rows)  # type: ignore[arg-type]
    for of in ("lidar", "camera")
    for cls, rows in (
        (FramesDropped, {"every": 4, "burst": 2}),
        (FramesFrozen, {"every": 5, "burst": 3}),
        (FramesFrozen, {"every": 5, "burst": 3, "stamps": "old"}),
        (FramesDelayed, {"every": 3, "delay_s": 0.03}),
        (FramesDelayed, {"every": 1, "delay_s": 0.03, "stamps": "new"}),
    )
)
WIRED = [replace(b, wires=wires_of_bundle(b)) for b in DRIVE[:12]]


def of_kind(bundle: Bundle, of: str) -> set[str]:
    return {"/points"} if of == "lidar" else {"/camera/image", "/camera/camera_info"}


@pytest.mark.parametrize("mutation", OF_ONE, ids=repr)
def test_one_kind_of_sensor_is_struck_and_the_other_passes(mutation: OneKind) -> None:
    made = derived(mutation, WIRED)
    assert [d.broken for d in made] == [None] * len(WIRED)
    assert any(d.draws[0]["nth"] for d in made)
    for bundle, d in zip(WIRED, made, strict=True):
        mine = of_kind(bundle, mutation.of)
        rest = {m.topic: m for m in bundle.messages if m.topic not in mine}
        got = {m.topic: (delay_ns, m, b) for delay_ns, b in d.followup.bundles for m in b.messages}
        assert {t: (0, m) for t, m in rest.items()} == {t: got[t][:2] for t in rest}, "in time, the very messages"
        if not d.draws[0]["nth"]:
            assert len(got) == 3 and all(got[m.topic][1] is m for m in bundle.messages)
        elif isinstance(mutation, FramesDropped):
            assert set(got) == set(rest)
        elif isinstance(mutation, FramesDelayed):
            assert {got[t][0] for t in mine} == {30_000_000}
            assert {got[t][1].stamp_ns - bundle.stamp_ns for t in mine} == {30_000_000 * (mutation.stamps == "new")}
        else:
            shown = WIRED[bundle.index - d.draws[0]["nth"]]
            assert all(same_content(got[m.topic][1], m) for m in shown.messages if m.topic in mine)


@pytest.mark.parametrize("mutation", OF_ONE, ids=repr)
def test_what_goes_out_of_a_part_is_what_it_says(mutation: OneKind) -> None:
    for bundle, d in zip(WIRED, derived(mutation, WIRED), strict=True):
        others, parts = split_followup(d.followup, bundle)
        pieces = [piece for part in parts for piece in (part, *part.late)]
        wires = [w.topic for p in pieces for w in wires_of_bundle(p.bundle, p.changed)]
        assert sorted(wires) == sorted(m.topic for _, b in d.followup.bundles for m in b.messages)
        assert len(parts) == 1, "one input, of which some may be late"
        assert others is None or not others.wires


def test_the_stamp_that_answers_bear_is_the_leading_sensors() -> None:
    rows = {"every": 1, "delay_s": 0.03, "stamps": "new"}
    moves = {
        of: {
            b.stamp_ns - DRIVE[0].stamp_ns
            for _, b in derived(FramesDelayed(of=of, **rows), DRIVE[:1])[0].followup.bundles
        }
        for of in ("lidar", "camera")
    }
    assert moves == {"lidar": {30_000_000}, "camera": {0}}
    alone = [replace(b, clouds=()) for b in DRIVE[:1]]
    [(_, made)] = derived(FramesDelayed(of="camera", **rows), alone)[0].followup.bundles
    assert made.stamp_ns - DRIVE[0].stamp_ns == 30_000_000, "of a stack that takes cameras alone they lead"


def test_a_bundle_without_the_kind_of_sensor_is_not_applicable() -> None:
    for of, bundle in (("camera", replace(DRIVE[0], images=())), ("lidar", replace(DRIVE[0], clouds=()))):
        with pytest.raises(NotApplicable, match=f"bundle 0 has no message of a {of}"):
            derived(FramesDropped(of=of), [bundle])
    nothing = derived(FramesDropped(every=2, of="camera"), [replace(b, clouds=()) for b in DRIVE[:4]])
    assert [len(d.followup.bundles) for d in nothing].count(0) == 2, "of cameras alone nothing is left"


def left_in(followup: Followup, source: Bundle) -> Followup:
    return Followup(((0, source),))


def recorded_left_in(followup: Followup, source: Bundle) -> Followup:
    return Followup(((0, replace(followup.first, wires=source.wires)),))


def other_changed(followup: Followup, source: Bundle) -> Followup:
    (delay_ns, first), *more = followup.bundles
    return Followup(((delay_ns, with_messages(first, first.stamp_ns, {"/points": replace(source.clouds[0])})), *more))


def too_soon(followup: Followup, source: Bundle) -> Followup:
    return Followup(tuple((0, b) for _, b in followup.bundles))


@pytest.mark.parametrize(
    ("mutation", "tamper", "says"),
    [
        (FramesDropped(every=2, of="camera"), left_in, "of a dropped frame, expected /points"),
        (FramesDropped(every=2, of="camera"), recorded_left_in, "/camera/image: the recorded message is still there"),
        (FramesDropped(every=2, of="camera"), other_changed, "of a dropped frame, expected"),
        (FramesFrozen(every=2, of="camera"), other_changed, "/points: changed, which was not to be frozen"),
        (FramesFrozen(every=2, of="camera"), left_in, "/camera/image: not what bundle 0 shows"),
        (FramesDelayed(every=2, of="camera"), too_soon, "delays .* expected"),
        (FramesDelayed(every=2, of="camera"), left_in, "delays .* expected"),
    ],
)
def test_a_broken_change_of_one_kind_is_found(mutation: OneKind, tamper: Any, says: str) -> None:
    pipeline = MutationPipeline([mutation], 1, "r")
    made = [(pipeline.meet(bundle), pipeline.derive(bundle)) for bundle in WIRED[:2]]
    [(source, d)] = [(bundle, d) for bundle, d in made if d.draws[0]["nth"]]
    assert mutation.guarantee(source, d.followup, d.draws[0]) is None
    broken = mutation.guarantee(source, tamper(d.followup, source), d.draws[0])
    assert broken is not None
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(broken)


@pytest.mark.parametrize("stateless", [True, False])
def test_a_late_camera_is_sent_before_its_answer_is_awaited(stateless: bool) -> None:
    source, followup = FakeArm("source"), FakeArm("followup")
    late = relation("late", FramesDelayed(every=1, delay_s=0.03, of="camera"))
    kept = run(suite(late), source, followup, stateless=stateless)
    assert set(kept.outcomes.values()) == {"HOLDS"}
    pieces = [p for p in followup.passed if p.delay_ns]
    assert [(p.bundle.index, p.delay_ns, len(p.bundle.images)) for p in pieces] == [
        (i, 30_000_000, 1) for i in range(4)
    ]
    names = [name for name, _ in followup.events]
    places = [i for i, name in enumerate(names) if name == "pass" and names[i - 1] == "send"]
    assert len(places) == 4 and all(names[i + 1] != "send" for i in places), "sent, then late, then answered"


# --- where it strikes


@given(st.integers(2, 12), st.integers(1, 5), st.integers(0, 9), st.integers(0, 2**31))
def test_every_stretch_holds_one_burst_which_never_begins_it(every: int, burst: int, first: int, seed: int) -> None:
    assume(burst < every)
    mutation = FramesDropped(every=every, burst=burst, from_frame=first)
    found = struck(mutation, seed)
    assert found[:first] == [0] * first
    stretches = [found[i : i + every] for i in range(first, len(DRIVE), every)]
    for stretch in (s for s in stretches if len(s) == every):
        place = stretch.index(1)
        assert place > 0
        assert stretch == [0] * place + list(range(1, burst + 1)) + [0] * (every - place - burst)


def test_where_it_strikes_is_a_matter_of_chance_and_of_the_number_only() -> None:
    patterns = {tuple(struck(FramesDropped(every=10), seed)) for seed in range(20)}
    assert len(patterns) > 15
    places = {row.index(1) % 10 for row in patterns}
    assert len(places) >= 6 and 0 not in places
    whole = struck(FramesDropped(every=10))
    pipeline = MutationPipeline([FramesDropped(every=10)], 7, "r")
    assert [pipeline.derive(DRIVE[i]).draws[0]["nth"] for i in (0, 31, 12, 25)] == [whole[i] for i in (0, 31, 12, 25)]


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (FramesDropped, {"every": 3, "burst": 3}),
        (FramesDropped, {"every": 1}),
        (FramesFrozen, {"every": 1}),
        (FramesReordered, {"every": 2, "burst": 1}),
        (FramesDelayed, {"every": 1, "burst": 2}),
        (FramesDelayed, {"delay_s": 0.0}),
        (StampsJittered, {"jitter_s": 1e-10}),
        (ClockStepped, {"step_s": 0.0}),
    ],
)
def test_what_makes_no_sense_is_refused(cls: type[Mutation], wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"^got .*expected"):
        cls(**wrong)


# --- what goes out


def test_a_dropped_frame_sends_nothing() -> None:
    mutation = FramesDropped(every=4, burst=2)
    for i, (nth, out) in enumerate(zip(struck(mutation), sent(mutation), strict=True)):
        assert out == ([] if nth else [(0, i, i * PERIOD_NS)])


@pytest.mark.parametrize("stamps", ["new", "old"])
def test_a_frozen_frame_shows_the_one_before_the_burst(stamps: str) -> None:
    mutation = FramesFrozen(every=6, burst=3, stamps=stamps)
    for i, (nth, out) in enumerate(zip(struck(mutation), sent(mutation), strict=True)):
        stamped = i if stamps == "new" else i - nth
        assert out == [(0, i - nth, stamped * PERIOD_NS)]


def test_frozen_goes_for_every_sensor_of_the_bundle() -> None:
    mutation = FramesFrozen(every=6, burst=3)
    for i, (nth, made) in enumerate(zip(struck(mutation), derived(mutation), strict=True)):
        assert np.array_equal(made.followup.first.images[0].pixels, DRIVE[i - nth].images[0].pixels)
        assert made.followup.first.images[0].stamp_ns == stamp(i)


@pytest.mark.parametrize("gone", ["frame", "camera"])
def test_what_is_not_there_cannot_be_frozen(gone: str) -> None:
    mutation = FramesFrozen(every=10)
    hit = struck(mutation).index(1)
    rest = {"frame": [], "camera": [replace(DRIVE[hit - 1], images=())]}[gone]
    with pytest.raises(NotApplicable, match=f"bundle {hit - 1}, which bundle {hit} would show, (is not there|has no)"):
        derived(mutation, [*DRIVE[: hit - 1], *rest, DRIVE[hit]])


@pytest.mark.parametrize(("stamps", "moved_ns"), [("kept", 0), ("new", 50_000_000)])
def test_a_delayed_frame_comes_later(stamps: str, moved_ns: int) -> None:
    mutation = FramesDelayed(every=3, delay_s=0.05, stamps=stamps)
    for i, (nth, out) in enumerate(zip(struck(mutation), sent(mutation), strict=True)):
        assert out == [(50_000_000 if nth else 0, i, i * PERIOD_NS + (moved_ns if nth else 0))]
    assert all(out[0][0] for out in sent(FramesDelayed(every=1)))


def test_a_repeated_frame_comes_again() -> None:
    mutation = FramesRepeated(every=3, times=2, after_s=0.01)
    for i, (nth, out) in enumerate(zip(struck(mutation), sent(mutation), strict=True)):
        assert out == [(delay, i, i * PERIOD_NS) for delay in ((0, 10_000_000, 20_000_000) if nth else (0,))]


def test_reordered_frames_come_behind_their_successor() -> None:
    mutation = FramesReordered(every=5, burst=2)
    for i, (nth, out) in enumerate(zip(struck(mutation), sent(mutation), strict=True)):
        numbers = {0: [i], 1: [], 2: [], 3: [i, i - 2, i - 1]}[nth]
        assert out == [(0, k, k * PERIOD_NS) for k in numbers]
    assert sorted(k for out in sent(mutation) for _, k, _ in out) == list(range(len(DRIVE))), "nothing is lost"


@given(st.floats(1e-3, 0.9), st.lists(st.integers(1, 300_000_000), min_size=2, max_size=20), st.integers(0, 2**31))
def test_jittered_stamps_keep_their_order_and_bound(jitter_s: float, gaps: list[int], seed: int) -> None:
    starts = [stamp(0) + int(t) for t in np.cumsum(gaps)]
    source = [replace(bundles(1)[0], index=i, stamp_ns=t) for i, t in enumerate(starts)]
    source = [b.with_clouds([replace(b.cloud(), stamp_ns=b.stamp_ns)]) for b in source]
    source = [replace(b, images=(), camera_infos=()) for b in source]
    made = derived(StampsJittered(jitter_s=jitter_s), source, seed)
    assert [d.broken for d in made] == [None] * len(source)
    stamps = [d.followup.first.cloud().stamp_ns for d in made]
    assert all(b > a for a, b in itertools.pairwise(stamps))
    assert max(abs(a - b) for a, b in zip(stamps, starts, strict=True)) <= jitter_s * 1e9 + 1


def test_stamps_that_went_back_are_not_jittered() -> None:
    with pytest.raises(NotApplicable, match="bundle 2 is 100000000 ns before the one before it"):
        derived(StampsJittered(), [DRIVE[0], DRIVE[1], replace(DRIVE[0], index=2)])


@pytest.mark.parametrize("step_s", [0.02, -0.25, 3600.0])
def test_a_clock_is_stepped_once_and_for_all(step_s: float) -> None:
    for i, out in enumerate(sent(ClockStepped(step_s=step_s, from_frame=7))):
        assert out == [(0, i, i * PERIOD_NS + (round(step_s * 1e9) if i >= 7 else 0))]


@pytest.mark.parametrize(("mutation", "at_ns"), [(ClockStepped(-1.0, 0), 5), (ClockStepped(1.0, 0), 2**31 * 10**9 - 1)])
def test_stamps_stay_within_what_a_message_can_hold(mutation: Mutation, at_ns: int) -> None:
    bundle = replace(DRIVE[0], stamp_ns=at_ns, images=(), camera_infos=())
    with pytest.raises(NotApplicable, match="not in 32 bits"):
        derived(mutation, [bundle.with_clouds([replace(bundle.cloud(), stamp_ns=at_ns)])])


@given(st.floats(1.001, 20.0))
def test_a_reduced_rate_is_kept_to_at_every_instant(one_of: float) -> None:
    outs = sent(RateReduced(one_of=one_of))
    kept = np.cumsum([len(out) for out in outs])
    owed = [math.ceil((n + 1) / one_of) for n in range(len(DRIVE))]
    assert np.abs(kept - owed).max() <= 1  # a float's quotient may miss a whole number that the exact one meets
    assert all(out in ([], [(0, i, i * PERIOD_NS)]) for i, out in enumerate(outs))


def test_whole_rates_send_every_nth() -> None:
    assert [i for i, out in enumerate(sent(RateReduced(one_of=3.0))) if out] == list(range(0, 40, 3))
    assert [i for i, out in enumerate(sent(RateReduced(one_of=1.25))) if not out][:3] == [4, 9, 14]


# --- proof


def copies(mutation: Mutation) -> list[tuple[Bundle, Followup, dict[str, Any]]]:
    """Of each bundle source, follow-up and draw, the source with what it looks back on."""
    pipeline = MutationPipeline([mutation], 7, "r")
    rows = []
    for bundle in DRIVE:
        met = pipeline.meet(bundle)
        made = pipeline.derive(bundle)
        rows.append((met, made.followup, made.draws[0]))
    return rows


def tampered(followup: Followup) -> Iterable[tuple[str, Followup]]:
    (delay, first), *rest = followup.bundles or ((0, DRIVE[0]),)
    if not followup.bundles:
        yield "something", Followup(((0, first),))
        return
    cloud = first.cloud()
    raw = cloud.raw.copy()
    raw.view(np.uint8)[3] ^= 1
    yield "nothing", Followup(())
    yield "twice", Followup((*followup.bundles, (delay, first)))
    yield "later", Followup(((delay + 1_000_000, first), *rest))
    yield "points", Followup(((delay, first.with_clouds([cloud.with_raw(raw)])), *rest))
    yield "fewer", Followup(((delay, first.with_clouds([cloud.with_raw(cloud.raw[:-1])])), *rest))
    image = replace(first.images[0], pixels=first.images[0].pixels + 1)
    yield "image", Followup(((delay, replace(first, images=(image,))), *rest))
    late = replace(cloud, stamp_ns=cloud.stamp_ns + 1000)
    yield "stamp", Followup(((delay, first.with_clouds([late])), *rest))
    yield "all stamps of a frame", Followup(((delay, replace(first, stamp_ns=first.stamp_ns + 1)), *rest))


@every_mutation
def test_a_broken_copy_is_found_out(mutation: Mutation) -> None:
    for source, followup, draw in copies(mutation):
        assert mutation.guarantee(source, followup, draw) is None
        for what, broken in tampered(followup):
            assert mutation.guarantee(source, broken, draw), f"{what} of bundle {source.index} was not found"


def test_jitter_beyond_bound_or_order_is_found_out() -> None:
    mutation = StampsJittered(jitter_s=0.08)
    source, _, _ = copies(mutation)[5]
    for by_ns in (-80_000_000, 90_000_000):  # before what the frame before may bear; beyond the bound
        assert mutation.guarantee(source, mutation.apply(source, {"by_ns": by_ns}), {"by_ns": by_ns})


# --- what is looked back on


@every_mutation
def test_followups_are_made_again_from_draws_alone(mutation: Mutation) -> None:
    again = MutationPipeline([mutation], 0, "another")
    for bundle, made in zip(DRIVE, derived(mutation), strict=True):
        assert sha256_of_followup(again.rebuild(bundle, made.draws)) == sha256_of_followup(made.followup)


def test_former_bundles_are_those_of_the_episode_as_far_back_as_asked() -> None:
    pipeline = MutationPipeline([FramesFrozen(every=5, burst=2)], 7, "r")

    def met(index: int, episode: int = 0) -> list[tuple[int, int]]:
        earlier = pipeline.meet(replace(DRIVE[index], episode=episode)).earlier
        assert all(not b.earlier for b in earlier), "the past is not kept for ever"
        return [(b.episode, b.index) for b in earlier]

    assert met(0) == []
    assert met(1) == met(1) == [(0, 0)]
    assert met(2) == [(0, 0), (0, 1)]
    assert met(4) == [(0, 2)], "a bundle that could not be read is missing"
    assert met(5, episode=1) == []
    assert met(2, episode=1) == [], "the episode begins anew"


def test_only_the_first_mutation_of_a_relation_can_look_back(tmp_path: Path) -> None:
    MutationPipeline([FramesFrozen(), Shuffle()], 7, "r")
    with pytest.raises(UsageError, match="r: frames_frozen looks back at former bundles of the source; make it the fi"):
        MutationPipeline([Shuffle(), FramesFrozen()], 7, "r")
    rows = {"id": "r", "kind": "expected", "because": "x", "check": "obstacles_kept"}
    mutate = [{"points_permuted": {}}, {"frames_frozen": {}}]
    (tmp_path / "r.yaml").write_text(json.dumps({**rows, "mutate": mutate}))
    with pytest.raises(UsageError, match=r"r.yaml: mutate: frames_frozen looks back .* make it the first"):
        load_relation(str(tmp_path / "r.yaml"))
