# SPDX-License-Identifier: Apache-2.0
"""Live runs in a time of their own: turns, settling, what is left out, and that every pair ends exactly once."""

from __future__ import annotations

import itertools
import weakref
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from fake_arms import FakeArm, Sent, answered, relation, seen, silent, suite
from hypothesis import given, settings
from hypothesis import strategies as st
from live_simulation import BEGAN_S, PERIOD_S, TICK_S, Simulation, VirtualTime, arriving, drive, one, virtual_time
from mutations_for_tests import Echo, Shuffle

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import NO_MESSAGES, Bundle, Cloud, Wire
from mt_nodes.data.outputs import Control, Output
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.relations.checks.answer_checks import OutputRateNotLower
from mt_nodes.relations.checks.speed_checks import SpeedNotHigher
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.runs.live.commands import Commands
from mt_nodes.runs.live.config import Limits, Segments
from mt_nodes.runs.live.live_driver import MOST_UNANSWERED

TURNS = Segments(settle_bundles=3, test_bundles=4, restart_after_bundles=6, give_up_after_restarts=1)


@pytest.fixture
def time() -> Iterator[VirtualTime]:
    with virtual_time() as made:
        yield made


def reasons(simulation: Simulation, outcome: str) -> Counter[str]:
    lines = simulation.recorder.lines.values()
    return Counter(v.judgement.reason for v in lines if v.outcome.value == outcome)


def changed(arm: FakeArm) -> list[bool]:
    """Whether each input of an arm was a changed one."""
    return [bool(sent.changed) for sent in arm.sent]


def test_relations_take_turns_and_every_pair_of_every_instant_ends_once(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS})
    live.play(arriving(drive(26)))
    names = ["identity", "a", "b", "points_permuted", "identity"]
    assert [name for name, _ in live.segments] == names
    # An answer takes 130 ms, so that two instants come before the first one's agreement is known.
    assert all(counts == {"SETTLING": 2, "HOLDS": 4} for _, counts in live.segments[:4])
    assert len(live.recorder.lines) == live.owed() and live.driver.status["instants"] == 26
    assert live.driver.status["done"] == live.owed()
    assert [v.marks["round"] for v in live.recorder.lines.values()] == [0] * (len(live.recorder.lines) - 4) + [1] * 4


def test_what_remembers_settles_on_so_many_in_a_row_and_each_turn_anew(time: VirtualTime) -> None:
    live = Simulation(time, stateless=False, config={"segments": TURNS})
    live.play(arriving(drive(20)))
    assert [(name, dict(counts)) for name, counts in live.segments[:3]] == [
        ("identity", {"SETTLING": 4, "HOLDS": 4}),
        ("a", {"SETTLING": 4, "HOLDS": 4}),
        ("b", {"SETTLING": 4}),
    ]


def test_the_live_stack_is_given_nothing_and_the_shadow_everything_equally_late(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS, "delay_s": 0.2})
    source, followup = live.arms
    rows = arriving(drive(16))
    live.driver.passes(Wire("/speed", "std_msgs/msg/Float64", 5, b"abcd"))
    live.play(rows)
    late_s = [sent.at_s - BEGAN_S - at_s for sent, (at_s, _) in zip(followup.sent, rows, strict=True)]
    assert late_s == pytest.approx([0.2] * len(rows), abs=TICK_S + 1e-6)
    assert [s.bundle.stamp_ns for s in followup.sent] == [b.stamp_ns for _, b in rows]
    assert [s.bundle.wires[0].topic for s in followup.passed] == ["/speed"] and not source.passed
    assert followup.passed[0].at_s == pytest.approx(BEGAN_S + 0.2, abs=TICK_S + 1e-6)
    assert not any(changed(source)), "the live stack's input is not ours to change"
    assert followup.count("restart") == source.count("restart") == 0
    assert any(changed(followup))


def test_the_control_is_judged_for_every_relation_and_so_is_the_sham(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS})
    live.play(arriving(drive(25)))
    pairs = Counter((v.pair.relation, v.pair.draw) for v in live.recorder.lines.values())
    assert pairs["identity", "0@a"] == pairs["identity", "0@b"] > 0
    assert pairs["points_permuted", "0@a"] == pairs["points_permuted", "0@b"] > 0
    assert ("a", "0") in pairs and ("a", "0@a") not in pairs


def test_a_violation_is_found(time: VirtualTime) -> None:
    blind = FakeArm("followup", lambda sent: answered(seen(0 if sent.changed else 1)), 0.03)
    live = Simulation(time, arms=(one("source"), blind), config={"segments": TURNS})
    kept = live.play(arriving(drive(18)))
    assert kept.count()["VIOLATED"] > 0
    assert {v.pair.relation for v in kept.lines.values() if v.outcome.value == "VIOLATED"} == {"a", "b"}


def disagreeing(until: int) -> FakeArm:
    """An instance that sees another number of obstacles until it was restarted so often."""
    arm = FakeArm("followup", delay_s=0.03)
    arm.behave = lambda sent: answered(seen(0 if arm.count("restart") < until else 1))
    return arm


def test_without_agreement_our_instance_is_restarted_and_the_live_one_never(time: VirtualTime) -> None:
    live = Simulation(time, stateless=False, arms=(one("source"), disagreeing(1)), config={"segments": TURNS})
    kept = live.play(arriving(drive(30)))
    source, followup = live.arms
    assert followup.count("restart") == 1 and source.count("restart") == 0
    assert live.driver.status["restarts"] == 1 and kept.count()["HOLDS"] > 0
    assert any("differ by a" in reason for reason in reasons(live, "SETTLING"))
    assert reasons(live, "SKIPPED") == {"our instances were being restarted": 2}
    assert len(kept.lines) == live.owed()


def test_after_so_many_restarts_the_next_turn_comes(time: VirtualTime) -> None:
    live = Simulation(time, stateless=False, arms=(one("source"), disagreeing(99)), config={"segments": TURNS})
    kept = live.play(arriving(drive(60)))
    assert set(kept.count()) == {"SETTLING", "SKIPPED"}
    assert [name for name, _ in live.segments][:3] == ["identity", "a", "b"]
    assert live.driver.status["gave_up"] >= 3
    assert live.driver.status["restarts"] in (live.driver.status["gave_up"], live.driver.status["gave_up"] + 1)
    assert any("were of no use" in reason for reason in reasons(live, "SETTLING"))


def test_arms_that_are_given_the_source_in_turn_swap_their_roles(time: VirtualTime) -> None:
    turns = Segments(settle_bundles=1, test_bundles=2, swap_arms=True)
    live = Simulation(time, config={"mode": "twin", "segments": turns})
    live.play(arriving(drive(30)))
    first, second = live.arms
    assert any(changed(first)) and any(changed(second))
    assert not any(a and b for a, b in zip(changed(first), changed(second), strict=True))
    plain = Simulation(time, config={"mode": "twin", "segments": Segments(settle_bundles=1, test_bundles=2)})
    plain.play(arriving(drive(30)))
    assert not any(changed(plain.arms[0])) and any(changed(plain.arms[1]))


def test_both_instances_of_ours_get_everything_at_once(time: VirtualTime) -> None:
    live = Simulation(time, config={"mode": "twin", "segments": TURNS, "delay_s": 0.2})
    live.driver.passes(Wire("/speed", "std_msgs/msg/Float64", 5, b"abcd"))
    kept = live.play(arriving(drive(12)))
    first, second = ([(s.at_s, s.bundle.stamp_ns) for s in arm.sent] for arm in live.arms)
    assert first == second and len(first) == 12
    assert all(len(arm.passed) == 1 for arm in live.arms)
    assert kept.count()["HOLDS"] > 0


def test_one_instance_answers_the_source_and_then_the_followup(time: VirtualTime) -> None:
    live = Simulation(time, config={"mode": "alternate", "segments": TURNS})
    kept = live.play(arriving(drive(24)))
    [arm] = set(live.arms)
    stamps = [s.bundle.stamp_ns for s in arm.sent]
    assert stamps[0::2] == stamps[1::2] and len(set(stamps)) == len(stamps) / 2
    assert not any(changed(arm)[0::2]) and any(changed(arm)[1::2])
    names = [name for name, _ in arm.events if name in ("send", "answer")]
    assert names == ["send", "answer"] * (len(names) // 2), "never two inputs at a time"
    assert kept.count()["HOLDS"] > 0 and len(kept.lines) == live.owed()


def test_one_instance_that_is_busy_is_left_alone(time: VirtualTime) -> None:
    slow = one("source", delay_s=0.12)
    live = Simulation(time, arms=(slow, slow), config={"mode": "alternate", "segments": TURNS})
    kept = live.play(arriving(drive(24)))
    assert set(reasons(live, "SKIPPED")) == {"the instance was still at work on the instant before"}
    assert len(slow.sent) == 2 * 8, "every third instant finds it free"
    assert len(kept.lines) == live.owed()


def test_paused_the_shadow_gets_the_source_and_settles_when_it_goes_on(time: VirtualTime) -> None:
    live = Simulation(time, stateless=False, config={"segments": Segments(settle_bundles=3, test_bundles=99)})
    rows = drive(40)
    live.play(arriving(rows[:8]), 0.8)
    live.commands.pause()
    live.play(arriving(rows[8:16], 0.8), 1.6)
    paused = live.driver.status
    live.commands.start()
    kept = live.play(arriving(rows[16:], 1.6))
    assert reasons(live, "SKIPPED")["paused"] >= 8 and paused["state"] == "paused"
    followup = live.arms[1]
    assert len(followup.sent) == 40 and not any(changed(followup)[9:17])
    after = [v for v in kept.lines.values() if v.pair.bundle in (16, 17, 18)]
    assert {v.outcome.value for v in after} == {"SETTLING"}


@pytest.mark.parametrize(("stateless", "state"), [(True, "refused"), (True, "paused"), (False, "refused")])
def test_while_nothing_is_tested_only_an_instance_that_remembers_is_at_work(
    time: VirtualTime, stateless: bool, state: str
) -> None:
    """Otherwise the live stack could not recover from what our instance takes, and tests would never go on."""
    refused = [False]
    live = Simulation(
        time,
        stateless=stateless,
        config={"segments": Segments(settle_bundles=3, test_bundles=99)},
        refusal=lambda: "the live stack suffers" if refused[0] else "",
    )
    rows = drive(40)
    live.play(arriving(rows[:8]), 0.8)
    refused[0] = state == "refused"
    if state == "paused":
        live.commands.pause()
    live.play(arriving(rows[8:16], 0.8), 1.6)
    refused[0] = False
    live.commands.start()
    kept = live.play(arriving(rows[16:], 1.6))
    skipped = {v.pair.bundle for v in kept.lines.values() if v.outcome.value == "SKIPPED"}
    sent = {one.bundle.index for one in live.arms[1].sent}
    assert len(skipped) >= 7 and skipped <= set(range(6, 17))
    assert skipped.isdisjoint(sent) if stateless else skipped <= sent
    assert set(range(17, 40)) <= sent and live.driver.status["tested"] >= 20


def test_nothing_is_owed_before_the_run_was_begun(time: VirtualTime) -> None:
    live = Simulation(time, config={"autostart": False})
    rows = drive(12)
    live.play(arriving(rows[:5]), 0.5)
    assert not live.recorder.lines and live.driver.status["state"] == "waiting" and len(live.arms[1].sent) > 2
    live.commands.start()
    live.play(arriving(rows[5:], 0.5))
    assert {v.pair.bundle for v in live.recorder.lines.values()} == set(range(5, 12))


def test_stop_judges_what_is_on_its_way_and_takes_nothing_more(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS})
    rows = drive(20)
    live.play(arriving(rows[:8]), 0.71)
    live.commands.stop()
    kept = live.play(arriving(rows[8:], 0.8))
    assert {v.pair.bundle for v in kept.lines.values()} == set(range(8))
    assert "SKIPPED" not in kept.count() and not live.driver.step()


@pytest.mark.parametrize("config", [{"bundles": 7}, {"duration_s": 0.65}])
def test_it_ends_when_what_was_asked_for_is_done(time: VirtualTime, config: dict[str, Any]) -> None:
    live = Simulation(time, config={"segments": TURNS, **config})
    kept = live.play(arriving(drive(20)))
    assert {v.pair.bundle for v in kept.lines.values()} == set(range(7))
    assert not live.driver.step()


def test_relations_can_be_chosen_while_it_goes_on(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS})
    rows = drive(60)
    live.play(arriving(rows[:2]), 0.2)
    assert live.commands.choose(["b"]).ok
    live.play(arriving(rows[2:], 0.2))
    assert [name for name, _ in live.segments][:4] == ["identity", "b", "points_permuted", "identity"]


def test_limits_leave_instants_out_and_say_so(time: VirtualTime) -> None:
    turns = Segments(settle_bundles=1, test_bundles=100)
    live = Simulation(time, config={"segments": turns, "limits": Limits(rate_hz=5.0)})
    live.play(arriving(drive(42)))
    assert 18 <= live.driver.status["tested"] <= 22
    assert reasons(live, "SKIPPED").keys() == {"over rate: limits.rate_hz is 5"}
    half = Simulation(time, config={"segments": turns, "limits": Limits(duty=0.25)})
    half.play(arriving(drive(42)))
    assert 9 <= half.driver.status["tested"] <= 11
    none = Simulation(time, config={"segments": turns})
    none.play(arriving(drive(42)))
    assert none.driver.status["tested"] == 40
    assert none.commands.change("limits.rate_hz", 1.0).ok


@pytest.mark.parametrize("mode", ["shadow", "twin", "alternate"])
def test_what_is_over_duty_is_skipped_and_costs_a_stateless_instance_nothing(time: VirtualTime, mode: str) -> None:
    """The rest is tested as ever, in turns as long as without."""
    asked: list[float] = []

    def every_second_is_over(most_ms_per_s: float) -> str:
        asked.append(most_ms_per_s)
        return "over duty: much was taken" if len(asked) % 2 else ""

    config = {"mode": mode, "segments": TURNS, "limits": Limits(duty_ms_per_s=70.0)}
    live = Simulation(time, config=config, over_duty=every_second_is_over)
    kept = live.play(arriving(drive(40), period_s=0.2))
    assert set(asked) == {70.0} and live.owed() == len(kept.lines)
    over = reasons(live, "SKIPPED")["over duty: much was taken"]
    assert over >= 15 and live.driver.status["skipped"] >= 15 and live.driver.status["tested"] >= 15
    skipped = {v.pair.bundle for v in kept.lines.values() if v.outcome.value == "SKIPPED"}
    assert {sent.bundle.index for sent in live.arms[1].sent}.isdisjoint(skipped)
    assert not set(kept.count()) - {"HOLDS", "SKIPPED", "SETTLING"}


def test_an_instance_that_remembers_gets_the_source_of_what_is_over_duty(time: VirtualTime) -> None:
    live = Simulation(time, stateless=False, config={"segments": TURNS}, over_duty=lambda most_ms_per_s: "over duty")
    kept = live.play(arriving(drive(30)))
    assert len(live.arms[1].sent) == 30 and not any(changed(live.arms[1]))
    assert set(kept.count()) == {"SKIPPED", "SETTLING"}


def test_a_run_that_tested_nothing_for_its_duty_is_not_green(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS}, over_duty=lambda most_ms_per_s: "over duty")
    verdicts = list(live.play(arriving(drive(60))).lines.values())
    assert verdicts and live.driver.status["tested"] == 0
    assert {v.outcome.value for v in verdicts} == {"SKIPPED", "SETTLING"}
    summary = summarise([v.as_plain() for v in verdicts], [RelationInfo(name, "necessary") for name in "ab"])
    assert summary["exit_code"] == 3 and {row["outcome"] for row in summary["relations"].values()} == {"INCONCLUSIVE"}


@dataclass(frozen=True)
class Slow(Mutation):
    """Takes a while of the test's time to apply; the line's thread goes on meanwhile."""

    takes_s: float = 0.0
    sensors = ("lidar",)

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        return None

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        return {}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        process_time_s._now_s.now_s += self.takes_s  # type: ignore[attr-defined]
        LINES[-1]()
        return Followup(((0, bundle.with_clouds([c.with_raw(c.raw.copy()) for c in bundle.clouds])),))


LINES: list[Any] = []


def test_a_followup_that_is_not_ready_in_time_leaves_its_place_to_the_source(time: VirtualTime) -> None:
    slow = relation("a", Slow(0.15))
    live = Simulation(time, suite(slow), config={"segments": Segments(settle_bundles=1, test_bundles=8)})
    LINES.append(live.driver.line.send_due)
    kept = live.play(arriving(drive(40)))
    followup = live.arms[1]
    assert len(followup.sent) == 40, "the shadow misses nothing"
    late = [v for v in kept.lines.values() if v.pair.relation == "a"]
    ended = Counter(v.outcome.value for v in late)
    assert ended["SKIPPED"] == 8 and "HOLDS" not in ended
    assert any("over budget: made in" in v.judgement.reason and "delay_s is 0.1" in v.judgement.reason for v in late)
    assert len(kept.lines) == live.owed()
    assert "points_permuted" in {v.pair.relation for v in kept.lines.values()}, "its turn ends all the same"


def test_of_more_than_can_be_made_as_much_is_tested_as_there_is_time_for(time: VirtualTime) -> None:
    """A follow-up takes 2.5 periods: what cannot be in time is not begun, or all would be late and none tested."""
    turn = Segments(settle_bundles=1, test_bundles=60)
    live = Simulation(time, suite(relation("a", Slow())), config={"segments": turn, "delay_s": 0.4})
    coming = arriving(drive(130))

    def come() -> None:
        while coming and BEGAN_S + coming[0][0] <= time.now_s + 1e-9:
            live.driver.received(coming.pop(0)[1])
        live.driver.line.send_due()

    def meanwhile() -> None:
        for _ in range(25):
            time.now_s += 0.01
            come()

    LINES.append(meanwhile)
    while coming or live.driver.busy:
        come()
        live.driver.step()
        time.now_s += TICK_S
    outcomes = Counter(v.outcome.value for v in live.recorder.lines.values() if v.pair.relation == "a")
    assert outcomes["HOLDS"] >= 20 and outcomes["HOLDS"] + outcomes["SKIPPED"] == 60, "one in 2.5 can be made"
    assert len(live.recorder.lines) == live.owed()
    assert len(live.arms[1].sent) == 130, "the shadow misses nothing"


def test_a_frame_of_no_instant_goes_out_by_itself_as_long_after_it_came_as_the_others(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS, "delay_s": 0.1})
    rows = []
    for at_s, bundle in arriving(drive(12)):
        frame = Wire("/camera", codec.IMAGE, bundle.stamp_ns - 60_000_000, b"a frame", came_s=at_s - 0.06)
        own = Wire("/lidar", codec.POINT_CLOUD, bundle.stamp_ns, b"a cloud", came_s=at_s)
        rows.append((at_s, replace(bundle, wires=(frame, own), loose=(frame,))))
    live.play(rows)
    alone, whole = live.arms[1].passed, live.arms[1].sent
    assert len(alone) == len(whole) == 12
    assert all(not sent.bundle.loose and not any(w.topic == "/camera" for w in sent.bundle.wires) for sent in whole)
    early_s = [b.at_s - a.at_s for a, b in zip(alone, whole, strict=True)]
    assert max(early_s) == pytest.approx(0.06, abs=TICK_S + 0.001) == min(early_s)


def test_a_pause_of_the_input_begins_an_episode_and_settles_anew(time: VirtualTime) -> None:
    live = Simulation(time, stateless=False, config={"segments": TURNS, "gap_s": 1.0})
    rows = drive(60)
    kept = live.play([*arriving(rows[:10]), *arriving(rows[40:55], 4.0)])
    assert {v.pair.episode for v in kept.lines.values()} == {0, 1}
    again = [v for v in kept.lines.values() if v.pair.episode == 1]
    assert {v.outcome.value for v in again if v.pair.bundle in (0, 1, 2)} == {"SETTLING"}
    assert min(v.pair.bundle for v in again if v.pair.bundle is not None) == 0
    assert live.arms[1].count("restart") == 0 and live.arms[1].count("begin_episode") == 1


def test_a_bag_that_loops_restarts_what_remembers(time: VirtualTime) -> None:
    rows = drive(12)
    looped = [*arriving(rows), *arriving(rows, 12 * PERIOD_S)]
    for stateless, restarts in ((False, 1), (True, 0)):
        live = Simulation(time, stateless=stateless, config={"segments": TURNS})
        kept = live.play(looped)
        assert live.arms[1].count("restart") == restarts and live.arms[0].count("restart") == 0
        assert {v.pair.episode for v in kept.lines.values()} == {0, 1}
        assert len(kept.lines) == live.owed()
        assert [v for v in kept.lines.values() if v.pair.episode == 1 and v.outcome.value == "HOLDS"]
        told = summarise([v.as_plain() for v in kept.lines.values()], [RelationInfo(name, "expected") for name in "ab"])
        assert {relation["control"]["drives"] for relation in told["relations"].values()} == {1}


def test_a_loop_that_is_shorter_than_a_restart_does_not_restart_for_ever(time: VirtualTime) -> None:
    rows = drive(6)
    followup = one("followup")
    live = Simulation(time, stateless=False, arms=(one("source"), followup), config={"segments": TURNS})
    restart = followup.restart

    def slow() -> None:
        restart()
        for bundle in (*rows, *rows):
            time.now_s += PERIOD_S
            live.driver.received(bundle)

    followup.restart = slow  # type: ignore[method-assign]
    kept = live.play([*arriving(rows), *arriving(rows[:1], 0.6)])
    assert followup.count("restart") == 1 and live.driver.status["restarts"] == 1
    assert {v.pair.episode for v in kept.lines.values()} == {0, 1, 2} and len(kept.lines) == live.owed()


def test_a_live_stack_that_keeps_silent_is_waited_for(time: VirtualTime) -> None:
    away = range(9, 14)
    source = FakeArm("source", delay_s=0.03)
    source.behave = lambda sent: silent() if sent.bundle.index in away else answered(seen(1))
    live = Simulation(time, arms=(source, one("followup")), config={"segments": TURNS})
    kept = live.play(arriving(drive(30)))
    count = kept.count()
    assert count["UNPAIRED_SOURCE"] > 0 and count["HOLDS"] > 0 and len(kept.lines) == live.owed()
    assert live.arms[1].count("restart") == 0
    after = [v.outcome.value for v in kept.lines.values() if v.pair.bundle is not None and v.pair.bundle >= 20]
    assert "HOLDS" in after


def test_an_instance_that_dies_ends_the_run_and_what_was_on_its_way_says_so(time: VirtualTime) -> None:
    def dies(sent: Sent) -> Any:
        return InfrastructureError("the stack died; its log ends") if sent.bundle.index == 5 else answered(seen(1))

    live = Simulation(time, arms=(one("source"), FakeArm("followup", dies, 0.03)), config={"segments": TURNS})
    with pytest.raises(InfrastructureError, match="the stack died"):
        live.play(arriving(drive(12)))
    live.driver._abandon(InfrastructureError("the stack died; its log ends"))
    assert set(reasons(live, "ERROR")) == {"the stack died"}
    assert len(live.recorder.lines) == live.owed()


def test_an_interruption_leaves_a_line_for_everything(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS})
    live.play(arriving(drive(9)), 0.81)
    assert live.driver.busy
    live.driver._abandon(KeyboardInterrupt())
    assert reasons(live, "SKIPPED") == {"interrupted": 2}, "a control is judged for two relations"
    assert len(live.recorder.lines) == live.owed()


def test_what_is_sent_twice_is_sent_in_its_order(time: VirtualTime) -> None:
    live = Simulation(time, suite(relation("a", Echo(150_000_000))), config={"segments": TURNS})
    live.play(arriving(drive(14)))
    sent = [(s.at_s, s.bundle.stamp_ns) for s in live.arms[1].sent]
    assert sent == sorted(sent, key=lambda row: row[0])
    echoes = [s for s in live.arms[1].sent if s.delay_ns]
    assert echoes and all(s.at_s > BEGAN_S + 0.25 for s in echoes)


@settings(max_examples=60)
@given(data=st.data())
def test_whatever_happens_every_pair_ends_exactly_once_and_the_totals_reconcile(data: st.DataObject) -> None:
    mode = data.draw(st.sampled_from(["shadow", "twin", "alternate"]))
    stateless = mode == "alternate" or data.draw(st.booleans())
    periods = data.draw(st.lists(st.sampled_from([0.02, 0.1, 0.3, 1.2]), min_size=5, max_size=30))
    stamps = data.draw(st.lists(st.sampled_from([0, 0, 0, -9, 50]), min_size=len(periods), max_size=len(periods)))
    quiet = data.draw(st.sets(st.integers(0, 30), max_size=8))
    differs = data.draw(st.sets(st.integers(0, 30), max_size=8))
    deeds = data.draw(st.lists(st.tuples(st.integers(0, 29), st.integers(0, 5)), max_size=5))
    turns = Segments(**data.draw(SEGMENTS), swap_arms=mode == "twin" and data.draw(st.booleans()))
    limits = Limits(rate_hz=data.draw(st.sampled_from([0.0, 4.0])), duty=data.draw(st.sampled_from([1.0, 0.4])))
    shifts = list(itertools.accumulate(stamps))
    rows = drive(len(periods))
    rows = [_shifted(b, shift) for b, shift in zip(rows, shifts, strict=True)]
    times = list(itertools.accumulate(periods))

    def behave(sent: Sent) -> Any:
        return silent() if sent.nth in quiet else answered(seen(0 if sent.nth in differs else 1))

    with virtual_time() as time:
        config = {"gap_s": 1.0, "mode": mode, "segments": turns, "limits": limits}
        arms = (FakeArm("source", behave, 0.04), one("followup", 0.06))
        live = Simulation(time, stateless=stateless, arms=arms, config=config)
        played = 0
        for at, deed in sorted(deeds):
            until = min(at + 1, len(rows))
            live.play(list(zip(times[played:until], rows[played:until], strict=True)), times[max(until - 1, 0)] + 0.03)
            played = max(played, until)
            _do(live.commands, deed)
        live.play(list(zip(times[played:], rows[played:], strict=True)))
        for _ in range(20_000):
            if not live.driver.busy:
                break
            time.now_s += 0.05
            live.driver.line.send_due()
            live.driver.step()
        status = live.driver.status
    instants = {(v.pair.episode, v.pair.bundle) for v in live.recorder.lines.values()}
    assert not live.driver.busy and len(instants) == status["instants"]
    assert len(live.recorder.lines) == live.owed() == status["done"]
    per_instant: dict[Any, set[str]] = {}
    for v in live.recorder.lines.values():
        per_instant.setdefault((v.pair.episode, v.pair.bundle), set()).add(v.pair.relation)
    assert all(len(names) == 1 for names in per_instant.values()), "one relation an instant"
    if mode == "shadow":
        assert not live.arms[0].count("restart") and not any(changed(live.arms[0]))


SEGMENTS = st.fixed_dictionaries(
    {
        "settle_bundles": st.integers(1, 4),
        "test_bundles": st.integers(1, 5),
        "restart_after_bundles": st.integers(1, 6),
        "give_up_after_restarts": st.integers(0, 2),
    }
)


def _shifted(bundle: Bundle, periods: int) -> Bundle:
    return replace(bundle, stamp_ns=bundle.stamp_ns + periods * 100_000_000)


def _do(commands: Commands, deed: int) -> None:
    (
        commands.pause,
        commands.start,
        lambda: commands.choose(["b"]),
        lambda: commands.choose(["b", "a"]),
        lambda: commands.change("segments.test_bundles", 2),
        lambda: commands.change("limits.duty", 0.3),
    )[deed]()


def test_what_our_taps_lost_our_instance_does_not_remember(time: VirtualTime) -> None:
    rows = drive(30)
    gone = rows[14].stamp_ns
    for stateless, settles in ((False, True), (True, False)):
        live = Simulation(
            time,
            stateless=stateless,
            config={"segments": Segments(settle_bundles=2, test_bundles=40)},
            missed=lambda after_ns, before_ns: int(after_ns < gone < before_ns),
        )
        came = [row for row in arriving(rows) if row[1].stamp_ns != gone]
        kept = live.play(came)
        after = {v.pair.bundle: v for v in kept.lines.values() if v.pair.draw == "0@a"}
        unlike = [n for n, v in after.items() if "remember differently" in v.judgement.reason]
        assert unlike == ([14, 15, 16, 17, 18] if settles else [])
        assert live.driver.status["lost"] == 1


def test_what_cannot_be_read_is_an_error_and_passes_as_it_is(time: VirtualTime) -> None:
    live = Simulation(time, config={"segments": TURNS})
    torn = replace(drive(1)[0], clouds=(), images=(), camera_infos=(), stamp_ns=10**13)
    live.play(arriving(drive(8)), 0.8)
    live.driver.received(torn, "/points: torn")
    kept = live.play(arriving(drive(16)[8:], 0.9))
    assert reasons(live, "ERROR") == {"cannot be read: /points: torn": 1}
    assert torn.stamp_ns in [s.bundle.stamp_ns for s in live.arms[1].sent] and len(kept.lines) == live.owed()


@dataclass(frozen=True)
class Elsewhere(Shuffle):
    """Asks for a frame that is not known before the fourth instant of a turn."""

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        if bundle.index < 10:
            bundle.transforms.lookup("map", "nowhere")
        return super().draw(rng, bundle, state)


def test_a_transform_that_is_late_is_told_and_the_run_goes_on(time: VirtualTime) -> None:
    live = Simulation(time, suite(relation("a", Elsewhere(every_third=False))), config={"segments": TURNS})
    kept = live.play(arriving(drive(14)))
    [reason] = reasons(live, "ERROR")
    assert reason.startswith("cannot be made: no transform from frame")
    outcomes = {v.pair.bundle: v.outcome.value for v in kept.lines.values() if v.pair.relation == "a"}
    assert outcomes == {6: "SETTLING", 7: "SETTLING", 8: "ERROR", 9: "ERROR", 10: "HOLDS", 11: "HOLDS"}


def test_an_answer_that_later_ones_overtook_is_not_waited_for(time: VirtualTime) -> None:
    """The arm would tell its silence only after ten seconds."""
    source = FakeArm("source", delay_s=0.03)
    source.behave = lambda sent: answered(seen(1))
    wait = source.wait
    source.wait = lambda ticket, until_s=None: None if ticket.bundle.index == 9 else wait(ticket, until_s)  # type: ignore[method-assign]
    live = Simulation(time, arms=(source, one("followup")), config={"segments": TURNS})
    kept = live.play(arriving(drive(20)), 2.5)
    assert reasons(live, "UNPAIRED_SOURCE") == {"source arm: no answer, but 5 later inputs were answered": 1}
    assert len(kept.lines) == live.owed() and live.driver.status["instants"] == 20 and not live.driver.busy


@pytest.mark.parametrize(("speed_mps", "settles"), [(5.0, True), (4.0, False)])
def test_commands_agree_in_both_directions_or_the_arms_settle_on(
    time: VirtualTime, speed_mps: float, settles: bool
) -> None:
    """Who is slower violates nothing that this relation asks for, and yet is in another state."""

    def drives(name: str, speed: float) -> FakeArm:
        return FakeArm(
            name, lambda sent: answered(Output(control=Control(None, steering_rad=0.0, speed_mps=speed))), 0.03
        )

    slower = suite(relation("a", check=SpeedNotHigher()))
    turns = Segments(settle_bundles=3, test_bundles=4, restart_after_bundles=99)
    live = Simulation(
        time,
        slower,
        (drives("source", 5.0), drives("followup", speed_mps)),
        stateless=False,
        config={"segments": turns},
    )
    kept = live.play(arriving(drive(20)))
    assert ("HOLDS" in kept.count()) == settles
    if not settles:
        assert set(reasons(live, "SETTLING")) == {"the arms settle; they differ by their commands"}


def test_a_check_over_a_sequence_judges_each_turn_as_a_whole(time: VirtualTime) -> None:
    rates = relation("rate", check=OutputRateNotLower())
    live = Simulation(time, suite(rates, relation("a")), config={"segments": TURNS})
    kept = live.play(arriving(drive(32)))
    live.driver._abandon(KeyboardInterrupt())
    turns = [v for v in kept.lines.values() if v.pair.judged_for == "rate"]
    assert [(v.pair.relation, v.pair.bundle, v.marks["round"]) for v in turns] == [
        *(("identity", 0, 0), ("rate", 6, 0), ("points_permuted", 18, 0)),
        *(("identity", 24, 1), ("rate", 30, 1)),
    ]
    assert {v.outcome.value for v in turns[:3]} == {"HOLDS"}


def in_a_ring(bundle: Bundle, standing: bool) -> Bundle:
    """What stands around the ego: poles, which are elsewhere in each bundle unless the ego stands."""
    (cloud,) = bundle.clouds
    angle = np.arange(30) * 0.2 + 1e-3
    range_m = np.random.default_rng(0 if standing else bundle.index).uniform(5.0, 30.0, 30)
    points = np.zeros(30, cloud.points.dtype)
    points["x"], points["y"] = range_m * np.cos(angle), range_m * np.sin(angle)
    return replace(bundle, clouds=(replace(cloud, points=points),))


def test_lines_of_an_ego_that_stands_are_of_one_scene_in_each_episode(time: VirtualTime) -> None:
    rates = relation("rate", check=OutputRateNotLower())
    live = Simulation(time, suite(rates, relation("a")), config={"segments": TURNS})
    first = [in_a_ring(bundle, 4 <= bundle.index < 9) for bundle in drive(20)]
    second = [in_a_ring(bundle, True) for bundle in drive(20, first_ns=10**11)]
    kept = live.play(arriving([*first, *second]))
    expected = {**{(0, i): 4 for i in range(5, 9)}, **{(1, i): 0 for i in range(1, 20)}}
    for verdict in kept.lines.values():
        where = (verdict.pair.episode, verdict.pair.bundle)
        # The first segment of this relation ends when the ego has gone on: not all of it is of the scene.
        crosses = verdict.pair.judged_for == "rate" and where[0] == 0
        assert "round" in verdict.marks
        assert verdict.marks.get("scene") == (None if crosses else expected.get(where))
    assert {(0, 6), (1, 6)} <= {(v.pair.episode, v.pair.bundle) for v in kept.lines.values()}


def test_a_mutation_that_does_not_apply_says_so(time: VirtualTime) -> None:
    live = Simulation(time, suite(relation("a", Shuffle())), config={"segments": TURNS})
    live.play(arriving(drive(14)))
    applies = {v.pair.bundle: v.outcome.value for v in live.recorder.lines.values() if v.pair.relation == "a"}
    assert applies == {6: "SETTLING", 7: "SETTLING", 8: "NOT_APPLICABLE", 9: "HOLDS", 10: "HOLDS", 11: "NOT_APPLICABLE"}


class ForgetfulArm(FakeArm):
    """Keeps nothing of what it was given."""

    def send(self, bundle: Bundle, *rest: Any, **more: Any) -> Sent:
        ticket = super().send(replace(bundle, wires=(), **NO_MESSAGES), *rest, **more)
        self.events.clear()
        self.sent.clear()
        return ticket


def test_input_that_is_not_tested_does_not_pile_up_while_a_stack_is_silent(time: VirtualTime) -> None:
    live = Simulation(time, arms=(ForgetfulArm("source", delay_s=600.0), ForgetfulArm("followup", delay_s=600.0)))
    came: list[weakref.ref[Cloud]] = []
    held: list[int] = []
    for number, bundle in enumerate(drive(300)):
        cloud = replace(bundle.cloud(), points=bundle.cloud().points.copy())
        came.append(weakref.ref(cloud))
        arriving_now = [(number * PERIOD_S, replace(bundle, clouds=(cloud,), wires=()))]
        del cloud, bundle
        time.now_s = BEGAN_S + number * PERIOD_S
        live.driver.received(arriving_now.pop()[1])
        for _ in range(round(PERIOD_S / TICK_S)):
            live.driver.line.send_due()
            live.driver.step()
            time.now_s += TICK_S
        held.append(sum(ref() is not None for ref in came))
    assert live.recorder.count()["SKIPPED"] > 200
    assert max(held) < MOST_UNANSWERED + 10
