# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import fake_arms
import pytest
from fake_arms import Behaviour, FakeArm, FakeRecorder, Sent, answered, pairs_owed, relation, seen, silent, suite
from live_simulation import VirtualTime, virtual_time
from mutations_for_tests import Shuffle
from recordings import PERIOD_NS, bundles

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.engine import realtime
from mt_nodes.engine.pair_judge import MEMORY
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.realtime import Pace, Realtime
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.stream.frame_mutations import (
    FramesDelayed,
    FramesReordered,
    FramesRepeated,
    RateReduced,
)

A = relation("a")
BUNDLES = bundles(8)
RATE = 10.0
PERIOD_S = PERIOD_NS / 1e9 / RATE


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualTime]:
    """Time that passes only where somebody waits, and then at once: what goes out when is exact on any machine."""
    with virtual_time() as clock:

        def sleep(lasts_s: float) -> None:
            clock.now_s += lasts_s

        for module in (realtime, fake_arms):
            monkeypatch.setattr(module, "time", SimpleNamespace(sleep=sleep))
        yield clock


def run(
    source: FakeArm,
    followup: FakeArm,
    *,
    stateless: bool = True,
    publishes_when_empty: bool = False,
    count: int = 8,
    rate: float = RATE,
    recorder: FakeRecorder | None = None,
    episodes: int = 1,
    shift_ns: Callable[[int], int] = lambda index: 0,
) -> FakeRecorder:
    kept = recorder or FakeRecorder()
    loop = Realtime(
        PlaySettings(
            suite(A),
            7,
            rate=rate,
            stateless=stateless,
            publishes_when_empty=publishes_when_empty,
        ),
        kept,  # type: ignore[arg-type]
    )
    made = [
        [replace(b, episode=e, stamp_ns=b.stamp_ns + shift_ns(b.index)) for b in BUNDLES[:count]]
        for e in range(episodes)
    ]
    loop.run([lambda rows=rows: iter(rows) for rows in made], source, followup)
    return kept


def one() -> Behaviour:
    return lambda sent: answered(seen(1))


def silent_at(*nth: int) -> Behaviour:
    """Silent to the n-th inputs since the beginning, whatever was restarted."""
    count = itertools.count()
    return lambda sent: silent() if next(count) in nth else answered(seen(1))


def passes(arm: FakeArm) -> list[list[Sent]]:
    starts = [i for i, s in enumerate(arm.sent) if s.bundle.index == 0] + [len(arm.sent)]
    return [arm.sent[a:b] for a, b in itertools.pairwise(starts)]


def test_every_pair_is_decided_one_relation_after_the_other() -> None:
    source, followup = FakeArm("source", one()), FakeArm("followup", one())
    kept = run(source, followup)
    assert set(kept.lines) == pairs_owed("a", 8) and set(kept.outcomes.values()) == {"HOLDS"}
    assert source.count("begin_episode") == 3 and source.count("restart") == 0
    assert [bool(s.changed) for s in followup.sent] == [False] * 8 + [True] * 16


def test_bundles_go_out_when_they_are_due_and_not_before(clock: VirtualTime) -> None:
    source = FakeArm("source", one())
    run(source, FakeArm("followup", one()))
    for sent in passes(source):
        gaps_s = [s.at_s - sent[0].at_s for s in sent]
        assert gaps_s == pytest.approx([i * PERIOD_S for i in range(8)], abs=1e-9)


def test_a_pass_takes_as_long_as_the_recording_at_its_rate() -> None:
    began_s = time.monotonic()
    kept = run(FakeArm("source", one()), FakeArm("followup", one()))
    assert len(kept.lines) == 3 * 8 and time.monotonic() - began_s >= 3 * 7 * PERIOD_S


@pytest.mark.parametrize("jump_s", [86_400, -3_600])
def test_a_jump_of_the_recording_is_not_lived_through(jump_s: int, clock: VirtualTime) -> None:
    source, began_s = FakeArm("source", one()), clock.now_s
    kept = run(source, FakeArm("followup", one()), shift_ns=lambda index: jump_s * 10**9 * (index >= 4), rate=1.0)
    assert set(kept.outcomes.values()) == {"HOLDS"} and len(kept.lines) == 24
    assert clock.now_s - began_s < 30.0
    for sent in passes(source):
        gaps_s = [s.at_s - sent[0].at_s for s in sent]
        assert gaps_s == pytest.approx([i * PERIOD_NS / 1e9 for i in range(8)], abs=1e-9), "a pause, and no burst"
    steps = [value for name, value in source.events if name == "time"]
    assert len(steps) < 10_000, "time does not run over the jump in steps"


def test_nobody_waits_for_a_slow_stack(clock: VirtualTime) -> None:
    """Answers take fifty periods; bundles go out meanwhile all the same, and each finds its answer."""
    source, followup = (FakeArm(name, one(), delay_s=50 * PERIOD_S) for name in ("source", "followup"))
    kept = run(source, followup, count=4)
    assert set(kept.outcomes.values()) == {"HOLDS"} and len(kept.lines) == 12
    names = [name for name, _ in source.events if name in ("send", "answer")]
    assert names[:4] == ["send"] * 4


def test_time_goes_on_in_small_steps_and_never_ahead_of_the_next_bundle() -> None:
    source = FakeArm("source", one())
    run(source, FakeArm("followup", one()), rate=2.0, count=4)
    now = steps = 0
    for (name, value), (following, about) in itertools.pairwise(source.events):
        if name == "begin_episode":
            now = 0
        if name == "time":
            assert value >= now
            now, steps = value, steps + 1
            if following == "send":
                assert value <= BUNDLES[about[0]].stamp_ns
    assert steps >= 3 * 3 * 2, "several steps a period"


@pytest.mark.parametrize("arm", ["source", "followup"])
def test_a_stack_that_remembers_settles_after_a_silence(arm: str) -> None:
    arms = {name: FakeArm(name, silent_at(1) if name == arm else one()) for name in ("source", "followup")}
    kept = run(arms["source"], arms["followup"], stateless=False)
    ended = [kept.outcomes[f"0/{i}/identity/0@a"] for i in range(8)]
    missing = "UNPAIRED_SOURCE" if arm == "source" else "UNPAIRED_FOLLOWUP"
    assert ended == ["HOLDS", missing, *["SETTLING"] * MEMORY, "HOLDS"]
    assert "remember differently" in kept.lines["0/2/identity/0@a"].judgement.reason


def test_a_stack_that_remembers_not_is_judged_right_after_a_silence() -> None:
    kept = run(FakeArm("source", silent_at(1)), FakeArm("followup", one()))
    assert kept.count() == {"UNPAIRED_SOURCE": 1, "HOLDS": 23}


def test_settling_ends_with_its_pass() -> None:
    kept = run(FakeArm("source", silent_at(7)), FakeArm("followup", one()), stateless=False)
    assert kept.count() == {"UNPAIRED_SOURCE": 1, "HOLDS": 23}


def test_arms_that_remember_start_anew_before_each_pass() -> None:
    source, followup = FakeArm("source", one()), FakeArm("followup", one())
    run(source, followup, stateless=False, count=2, episodes=2)
    assert source.count("restart") == followup.count("restart") == 5
    assert source.count("ready") == 5


def test_arms_that_owe_an_answer_start_anew_lest_it_be_taken_for_the_next_pass() -> None:
    source, followup = FakeArm("source", one()), FakeArm("followup", silent_at(3))
    run(source, followup)
    assert source.count("restart") == followup.count("restart") == 1
    names = [name for name, _ in followup.events if name in ("restart", "begin_episode")]
    assert names == ["begin_episode", "restart", "begin_episode", "begin_episode"]


def test_not_applicable_and_invalid_pairs_send_the_source() -> None:
    source, followup = FakeArm("source", one()), FakeArm("followup", one())
    kept = FakeRecorder()
    loop = Realtime(
        PlaySettings(
            suite(relation("n", Shuffle()), relation("lie", Shuffle(every_third=False, lie=True))),
            7,
            rate=RATE,
            stateless=True,
            publishes_when_empty=True,
        ),
        kept,  # type: ignore[arg-type]
    )
    loop.run([lambda: iter(BUNDLES[:3])], source, followup)
    assert [kept.outcomes[f"0/{i}/n/0"] for i in range(3)] == ["HOLDS", "HOLDS", "NOT_APPLICABLE"]
    assert [kept.outcomes[f"0/{i}/lie/0"] for i in range(3)] == ["INVALID"] * 3
    assert len(source.sent) == len(followup.sent) == 12
    assert [bool(s.changed) for s in followup.sent[-6:]] == [True, True, False, False, False, False]


def death(after: int) -> Callable[[Sent], Any]:
    return lambda s: InfrastructureError("it died; log") if s.bundle.index >= after else answered(seen(1))


@pytest.mark.parametrize("arm", ["source", "followup"])
def test_the_death_of_a_stack_ends_the_run_and_every_pair_on_its_way(arm: str) -> None:
    arms = {n: FakeArm(n, death(3) if n == arm else one(), delay_s=2.5 * PERIOD_S) for n in ("source", "followup")}
    kept = FakeRecorder()
    with pytest.raises(InfrastructureError, match="it died"):
        run(arms["source"], arms["followup"], recorder=kept)
    sent = {s.bundle.index for s in arms["followup"].sent}
    assert set(kept.lines) == {f"0/{i}/identity/0@a" for i in sent}
    assert [kept.outcomes[f"0/{i}/identity/0@a"] for i in sorted(sent)] == ["HOLDS"] * 3 + ["ERROR"] * (len(sent) - 3)
    assert kept.lines["0/3/identity/0@a"].judgement.reason == "it died"


def test_a_stack_found_dead_while_sending_is_an_error_of_that_pair() -> None:
    class Dead(FakeArm):
        def send(self, *rest: Any) -> Sent:
            if self.nth == 2:
                raise InfrastructureError("it died; log")
            return super().send(*rest)

    kept = FakeRecorder()
    with pytest.raises(InfrastructureError):
        # Answers are there before they are waited for: on a busy machine the next cloud is due already.
        run(Dead("source", one(), delay_s=-60.0), FakeArm("followup", one(), delay_s=-60.0), recorder=kept)
    assert list(kept.outcomes.values()) == ["HOLDS", "HOLDS", "ERROR"]


def at_the_pace_of(mutation: Mutation, *, stateless: bool = True, episodes: int = 1, **traits: Any) -> Any:
    """The last pass of each episode, with a relation about the stream: recorder, inputs of both arms."""
    arms = FakeArm("source", one()), FakeArm("followup", traits.pop("behave", None) or one(), **traits)
    kept = FakeRecorder()
    made = suite(relation("a", mutation))
    loop = Realtime(PlaySettings(made, 7, stateless, False, rate=RATE), kept)  # type: ignore[arg-type]
    loop.run([lambda e=e: iter([replace(b, episode=e) for b in BUNDLES]) for e in range(episodes)], *arms)
    begun = [[i for i, (name, _) in enumerate(arm.events) if name == "begin_episode"][-1] for arm in arms]
    counts = [sum(name == "send" for name, _ in arm.events[i:]) for arm, i in zip(arms, begun, strict=True)]
    return kept, *(arm.sent[-count:] for arm, count in zip(arms, counts, strict=True)), arms[1]


def test_a_frame_that_is_not_sent_is_skipped_and_the_rest_goes_on() -> None:
    kept, source, followup, arm = at_the_pace_of(RateReduced(one_of=2.0), stateless=False)
    assert [s.bundle.index for s in source] == list(range(8))
    assert [s.bundle.index for s in followup] == [0, 2, 4, 6]
    assert arm.count("pass") == 4, "all but the sensors' messages"
    ended = [kept.outcomes[f"0/{i}/a/0"] for i in range(8)]
    assert ended == ["HOLDS", "SKIPPED"] * 4, "nothing is missing that would have to settle"
    assert kept.lines["0/1/a/0"].judgement.reason == "the follow-up sends nothing"
    assert {pair for pair, _ in kept.followups if "/a/" in pair} == {f"0/{i}/a/0" for i in range(8)}


def test_delayed_frames_go_out_when_they_are_due_in_their_order(clock: VirtualTime) -> None:
    """Each by twenty periods, so that all are on their way at once."""
    mutation = FramesDelayed(every=1, delay_s=20 * PERIOD_NS / 1e9)
    kept, source, followup, _ = at_the_pace_of(mutation)
    assert [s.bundle.index for s in followup] == list(range(8))
    late = [f.at_s - source[0].at_s for f in followup]
    assert all(gap >= (i + 20) * PERIOD_S - 3e-3 for i, gap in enumerate(late))
    assert followup[0].at_s > source[3].at_s, "the source does not wait"
    assert set(kept.outcomes.values()) == {"HOLDS"} and len(kept.lines) == 24


def test_a_late_camera_comes_when_it_is_due_and_one_answer_closes_the_pair() -> None:
    mutation = FramesDelayed(every=1, delay_s=0.5 * PERIOD_NS / 1e9, of="camera")
    kept, source, followup, arm = at_the_pace_of(mutation)
    assert [s.bundle.index for s in followup] == list(range(8))
    assert all(s.bundle.clouds and not s.bundle.images for s in followup)
    late = [p for p in arm.passed if p.delay_ns][-8:]
    assert [p.bundle.index for p in late] == list(range(8)) and all(p.bundle.images for p in late)
    assert all(p.at_s - source[0].at_s >= (i + 0.5) * PERIOD_S - 3e-3 for i, p in enumerate(late))
    assert set(kept.outcomes.values()) == {"HOLDS"} and len(kept.lines) == 24


def test_what_is_due_behind_a_delayed_frame_waits_for_it() -> None:
    mutation = FramesDelayed(every=4, delay_s=5 * PERIOD_NS / 1e9)
    _, source, followup, _ = at_the_pace_of(mutation)
    assert [s.bundle.index for s in followup] == list(range(8))
    hit, *_ = [s.bundle.index for s in followup if s.delay_ns]
    for later in followup[hit : hit + 2]:
        assert later.at_s - source[0].at_s >= (hit + 5) * PERIOD_S - 3e-3
    assert [f.at_s for f in followup] == sorted(f.at_s for f in followup)


def test_a_delay_ends_with_the_recordings_pace_when_that_jumps(clock: VirtualTime) -> None:
    followup, began_s = FakeArm("followup", one()), clock.now_s
    made = suite(relation("a", FramesDelayed(every=1, delay_s=0.5 * PERIOD_NS / 1e9)))
    rows = [replace(b, stamp_ns=b.stamp_ns - (b.index >= 4) * 3_600 * 10**9) for b in BUNDLES]
    kept = FakeRecorder()
    loop = Realtime(PlaySettings(made, 7, True, False, rate=1.0), kept)  # type: ignore[arg-type]
    loop.run([lambda: iter(rows)], FakeArm("source", one()), followup)
    assert [s.bundle.index for s in followup.sent[-8:]] == list(range(8))
    assert set(kept.outcomes.values()) == {"HOLDS"} and clock.now_s - began_s < 30.0


@pytest.mark.parametrize(("lost", "ended"), [(0, "UNPAIRED_FOLLOWUP"), (1, "HOLDS")])
def test_of_a_repeated_frame_the_first_answer_is_judged(lost: int, ended: str) -> None:
    def behave(sent: Sent) -> Any:
        return silent() if sent.bundle.index == 3 and count[3] - 1 == lost + 2 else answered(seen(1))

    count: dict[int, int] = defaultdict(int)

    def counted(sent: Sent) -> Any:
        count[sent.bundle.index] += 1
        return behave(sent)

    kept, _, followup, _ = at_the_pace_of(FramesRepeated(every=1), behave=counted)
    assert [s.bundle.index for s in followup] == [i for i in range(8) for _ in range(2)]
    assert kept.outcomes["0/3/a/0"] == ended
    assert kept.outcomes["0/4/a/0"] == "HOLDS"


def test_what_looks_back_begins_anew_with_each_episode() -> None:
    kept, _, followup, _ = at_the_pace_of(FramesReordered(every=4), episodes=2)
    assert len(kept.lines) == 2 * 24
    order = [s.bundle.index for s in followup]
    assert sorted(order) in (list(range(8)), list(range(7))) and order != sorted(order)
    assert {s.bundle.episode for s in followup} == {1}


def test_pace() -> None:
    pace = Pace(process_time_s() - 2.0, 1_000_000_000, 0.5)
    assert pace.due_s(1_000_000_000) == pace.began_s
    assert pace.due_s(2_000_000_000) == pytest.approx(pace.began_s + 2.0)
    assert 2_000_000_000 <= pace.now_ns() < 3_000_000_000
