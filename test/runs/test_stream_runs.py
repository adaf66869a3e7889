# SPDX-License-Identifier: Apache-2.0
"""What a run sends of changes of the stream, in every mode, and which stacks it finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fake_arms import FakeArm, answered, relation, run, seen, silent, suite
from recordings import PERIOD_NS, bundles, stamp
from test_mutations_stream import DRIVE, every_mutation

from mt_nodes.data.messages import Bundle, Wire
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
from mt_nodes.relations.mutations.stream.whole_stream import NowAndThen
from mt_nodes.relations.pipeline import MutationPipeline

# --- what a run sends of it

MODES = [("twin", True), ("twin", False), ("alternate", True), ("two_pass", True), ("two_pass", False)]


def with_others(count: int) -> list[Bundle]:
    """A drive with recorded messages, some of them of no sensor."""
    made = []
    for bundle in bundles(count):
        wires = [Wire(m.topic, "t", m.stamp_ns, b"recorded") for m in bundle.messages]
        made.append(replace(bundle, wires=(*wires, Wire("/tf", "t", bundle.stamp_ns, b"frames"))))
    return made


def test_what_is_no_sensor_message_passes_once_and_in_time() -> None:
    source = with_others(1)[0]
    whole, sensors = source.wires, source.wires[:-1]
    others, parts = split_followup(Followup(((0, source),)), source)
    assert others is None and parts[0].bundle is source and not parts[0].changed
    for followup in (Followup(()), Followup(((5, source),)), Followup(((0, source), (0, source)))):
        others, parts = split_followup(followup, source)
        assert others is not None and (others.wires, others.messages) == (whole[-1:], ())
        assert [part.bundle.wires for part in parts] == [sensors] * len(followup.bundles)
        assert [part.delay_ns for part in parts] == [delay for delay, _ in followup.bundles]


@pytest.mark.parametrize(("mode", "stateless"), MODES)
@every_mutation
def test_every_mode_sends_what_was_derived_and_the_totals_reconcile(
    mutation: Mutation, mode: str, stateless: bool
) -> None:
    drive = with_others(10)
    arms = FakeArm("source"), FakeArm("followup") if mode == "twin" else None
    kept = run(suite(relation("a", mutation)), *arms, mode=mode, stateless=stateless, episodes=(drive,))
    assert len(kept.lines) == 3 * len(drive)
    made = {pair: d for pair, d in kept.followups if "/a/" in pair}
    assert len(made) == len(drive), "what sends nothing is in the ledger, too"
    for pair, d in made.items():
        skipped = kept.outcomes[pair] == "SKIPPED"
        assert skipped == (not d.followup.bundles)
        assert not skipped or kept.lines[pair].judgement.reason == "the follow-up sends nothing"
    again = MutationPipeline([mutation], 7, "a")
    expected = [part for b in drive for part in split_followup(again.derive(b).followup, b)[1]]
    numbers = {part.bundle.cloud().raw.tobytes() for part in expected}
    heard = [s for s in (arms[1] or arms[0]).sent if not stateless or s.bundle.cloud().raw.tobytes() in numbers]
    out = [(s.bundle.stamp_ns, s.bundle.cloud().raw.tobytes(), s.delay_ns) for s in heard]
    wanted = [(p.bundle.stamp_ns, p.bundle.cloud().raw.tobytes(), p.delay_ns) for p in expected]
    if stateless:  # control, sham and, in one arm, the source go out in between
        left = iter(out)
        assert all(row in left for row in wanted), "in order"
    else:
        assert out[-len(wanted) :] == wanted


def test_of_a_dropped_frame_the_rest_passes_by() -> None:
    arm = FakeArm("followup")
    run(suite(relation("a", FramesDropped(every=3))), FakeArm("source"), arm, stateless=False, episodes=(DRIVE[:6],))
    last = [row for row in arm.events if row[0] in ("send", "pass", "begin_episode")][-6:]
    assert [name for name, _ in last].count("pass") == 2
    assert [i for i, (name, _) in enumerate(last) if name == "pass"] == [
        i for i, nth in enumerate(struck_of("a", FramesDropped(every=3), 6)) if nth
    ]


def struck_of(relation_id: str, mutation: NowAndThen, count: int) -> list[int]:
    pipeline = MutationPipeline([mutation], 7, relation_id)
    return [pipeline.derive(b).draws[0]["nth"] for b in DRIVE[:count]]


def test_the_first_answer_is_judged_and_each_is_awaited() -> None:
    order: list[str] = []

    def behave(sent: Any) -> Any:
        order.append(f"answer {len(order)}")
        return answered(seen(1 if sent.nth % 2 == 0 else 0))  # the repeated ones lose everything

    arm = FakeArm("followup", behave)
    source = FakeArm("source", lambda sent: answered(seen(1)))
    kept = run(suite(relation("a", FramesRepeated(every=1))), source, arm, stateless=False, episodes=(DRIVE[:4],))
    assert [kept.outcomes[f"0/{i}/a/0"] for i in range(4)] == ["HOLDS"] * 4
    names = [name for name, _ in arm.events if name in ("send", "answer")][-16:]
    assert names == ["send", "answer"] * 8


class Nervous:
    """Stacks that lose everything when the stream is not as ever; each sees one thing of it."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._nth, self._last_ns, self._latest_ns, self._shown = 0, -1, -1, b""

    def __call__(self, sent: Any) -> Any:
        if sent.nth == 0:
            self.__init__(self._about)  # type: ignore[misc]
        bundle, shown = sent.bundle, sent.bundle.cloud().raw.tobytes()
        wrong = {
            "gap": self._last_ns >= 0 and bundle.stamp_ns - self._last_ns > 1.5 * PERIOD_NS,
            "order": bundle.stamp_ns < self._latest_ns or self._last_ns < self._latest_ns,
            "content": shown == self._shown,
            "count": self._nth % 2 == 0,
            "latency": sent.delay_ns > 0,
            "stamp": (bundle.stamp_ns - stamp(0)) % PERIOD_NS != 0,
        }[self._about]
        self._nth, self._last_ns, self._shown = self._nth + 1, bundle.stamp_ns, shown
        self._latest_ns = max(self._latest_ns, bundle.stamp_ns)
        return answered(seen(0 if wrong else 1))


FINDS: list[tuple[Mutation, str]] = [
    (FramesDropped(every=4), "gap"),
    (RateReduced(one_of=3.0), "gap"),
    (FramesFrozen(every=4), "content"),
    (FramesFrozen(every=4, burst=2, stamps="old"), "gap"),
    (FramesRepeated(every=1), "count"),
    (FramesReordered(every=4), "order"),
    (FramesDelayed(every=4), "latency"),
    (FramesDelayed(every=1, stamps="new"), "stamp"),
    (StampsJittered(), "stamp"),
    (ClockStepped(step_s=0.1), "gap"),
]


@pytest.mark.parametrize("mode", ["twin", "two_pass"])
@pytest.mark.parametrize(("mutation", "about"), FINDS, ids=str)
def test_a_stack_that_cannot_bear_it_is_found_and_one_that_can_is_not(
    mutation: Mutation, about: str, mode: str
) -> None:
    def outcomes(*arms: FakeArm) -> dict[str, str]:
        there = arms if mode == "twin" else arms[:1]
        made = suite(relation("a", mutation))
        return run(made, *there, mode=mode, stateless=False, episodes=(DRIVE[:12],)).outcomes

    broken = outcomes(FakeArm("source", Nervous(about)), FakeArm("followup", Nervous(about)))
    assert "VIOLATED" in {o for pair, o in broken.items() if "/a/" in pair}
    assert {o for pair, o in broken.items() if "/identity/" in pair} == {"HOLDS"}
    honest = outcomes(*(FakeArm(name, lambda sent: answered(seen(1))) for name in ("source", "followup")))
    assert set(honest.values()) <= {"HOLDS", "SKIPPED"}


def test_a_repeated_frame_that_is_not_answered_holds_the_bundles_other_followups_back() -> None:
    """Its late answer would be taken for theirs: all bear one stamp."""
    made = suite(relation("a", FramesRepeated(every=1)), relation("b"))
    source = FakeArm("source", lambda sent: answered(seen(1)))
    arm = FakeArm("followup", lambda sent: silent() if sent.nth == 3 else answered(seen(1)))
    kept = run(made, source, arm, episodes=(DRIVE[:2],))
    assert kept.outcomes["0/0/a/0"] == "HOLDS"
    assert (kept.outcomes["0/0/b/0"], kept.outcomes["0/1/b/0"]) == ("SKIPPED", "HOLDS")
    assert "may still come" in kept.lines["0/0/b/0"].judgement.reason
