# SPDX-License-Identifier: Apache-2.0
"""Live runs in a time of their own: instances that somebody else runs, and errors that are told a while later."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fake_arms import FakeArm, Sent, answered, relation, seen, silent, suite
from live_simulation import BEGAN_S, PERIOD_S, Simulation, VirtualTime, arriving, drive, one, virtual_time

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build
from mt_nodes.data.outputs import Diagnostics
from mt_nodes.engine.judging import Answer, AnswerStatus
from mt_nodes.relations.checks.answer_checks import NoNewErrors
from mt_nodes.runs.live.attendance import LEASE_S, Attendance, Presence
from mt_nodes.runs.live.config import LiveConfig, Segments, check_live
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.settings import configured
from mt_nodes.stacks.stack import Stack

TURNS = Segments(settle_bundles=3, test_bundles=4, restart_after_bundles=6, give_up_after_restarts=1)
EXTERNAL: dict[str, Any] = {"start": "external", "domain": {"source": 10, "followup": 61}, "nodes": ("/tracker",)}
GONE = ["nobody publishes /obstacles"]
#: An instance is tested with the second input that it gets.
AT_ONCE: dict[str, Any] = {"segments": Segments(settle_bundles=1, test_bundles=99), "delay_s": 0.05}


@pytest.fixture
def time() -> Iterator[VirtualTime]:
    with virtual_time() as made:
        yield made


def reasons(live: Simulation, outcome: str) -> set[str]:
    return {v.judgement.reason for v in live.recorder.lines.values() if v.outcome.value == outcome}


def test_whoever_goes_is_away_and_whoever_comes_in_its_place_is_another(time: VirtualTime) -> None:
    who = Attendance("the stack")
    who.look({}, GONE)
    assert who.presence == Presence("the stack: nobody publishes /obstacles", 0), "it has not come yet"
    who.look({"a", "b"}, [])
    assert who.presence == Presence("", 0)
    time.now_s += 1.0
    who.look({"a"}, GONE)
    assert (bool(who.presence.away), who.presence.times_lost, who.lost_s) == (True, 1, time.now_s)
    who.look({}, GONE)
    who.look({"c"}, [])
    assert who.presence == Presence("", 1), "it is back, which is no second loss"
    time.now_s += 1.0
    who.look({"c", "d"}, [])
    assert who.presence == Presence("", 2) and who.lost_s == time.now_s, "one who was killed is still seen"
    who.look({"d"}, [])
    assert who.presence == Presence("", 2), "now it is not"


def test_silence_counts_when_something_was_said_later_on(time: VirtualTime) -> None:
    who = Attendance("the stack")
    who.look({"a"}, [])
    sent_s = BEGAN_S
    due_s = time.now_s = sent_s + 3.0
    assert who.unsure(sent_s, due_s, last_message_s=sent_s + 0.1), "it may have been killed since"
    assert not who.unsure(sent_s, due_s, last_message_s=due_s + 0.1)
    who.look({"b"}, [])
    assert who.unsure(sent_s, due_s, last_message_s=due_s + 0.1), "that was another one"
    time.now_s = 100.0 + due_s
    assert not who.unsure(time.now_s - 40.0, time.now_s - LEASE_S, last_message_s=0.0), "it hangs"
    assert who.unsure(time.now_s - 40.0, time.now_s - LEASE_S + 0.1, last_message_s=0.0)


@dataclass(eq=False)
class Going(FakeArm):
    """An instance that is killed at one time and there again at another; which is seen a while later."""

    killed_s: float = BEGAN_S + 0.9
    seen_s: float = BEGAN_S + 1.4
    back_s: float = BEGAN_S + 2.2

    def wait(self, ticket: Sent, until_s: float | None = None) -> Answer | None:
        if self.killed_s <= ticket.at_s < self.seen_s:
            return None
        if self.seen_s <= ticket.at_s < self.back_s:
            return Answer.nothing(AnswerStatus.SKIPPED, "not there: the stack")
        return super().wait(ticket, until_s)

    def presence(self, now_s: float) -> Presence:
        away = self.seen_s <= now_s < self.back_s
        return Presence("the stack" if away else "", int(now_s >= self.seen_s))


@pytest.mark.parametrize("stateless", [True, False])
def test_what_an_instance_was_given_when_it_went_is_an_error_and_then_it_settles_anew(
    stateless: bool, time: VirtualTime
) -> None:
    going = Going("followup", lambda sent: answered(seen(1)), 0.03)
    live = Simulation(
        time,
        arms=(one("source"), going),
        stack=EXTERNAL,
        stateless=stateless,
        publishes_when_empty=True,
        config={"segments": Segments(settle_bundles=2, test_bundles=99)},
        presence=lambda: going.presence(time.now_s),
    )
    kept = live.play(arriving(drive(40)))
    outcome = {v.pair.bundle: v.outcome.value for v in kept.lines.values() if v.pair.judged_for == "a"}
    lost = [n for n, what in outcome.items() if what == "ERROR"]
    # Bundle n comes at 0.1 n and goes to our instance 0.1 s later.
    assert lost and set(lost) <= set(range(8, 14)) and not set(outcome.values()) & {"VIOLATED", "UNPAIRED_FOLLOWUP"}
    assert {outcome[n] for n in range(15, 22)} == {"SKIPPED"} and "not there: the stack" in reasons(live, "SKIPPED")
    assert any("pause the run" in reason for reason in reasons(live, "ERROR"))
    after = [outcome[n] for n in range(23, 40)]
    assert after[0] == "SETTLING" and set(after[8:]) == {"HOLDS"}
    assert len(kept.lines) == live.owed() and live.driver.status["lost_instances"] == 1
    assert going.count("restart") == 0


@pytest.mark.parametrize("mode", ["shadow", "twin"])
def test_what_went_out_before_a_busy_suite_looked_at_it_holds_up_nothing_when_the_instance_is_back(
    mode: str, time: VirtualTime
) -> None:
    going = Going("followup", lambda sent: answered(seen(1)), 0.03)
    config = {"mode": mode, "segments": Segments(settle_bundles=2, test_bundles=99)}
    live = Simulation(
        time, arms=(one("source"), going), stack=EXTERNAL, config=config, presence=lambda: going.presence(time.now_s)
    )
    rows = drive(40)
    live.play(arriving(rows[:9]), 0.9)
    for bundle in rows[9:15]:  # the suite gets no processor time for 0.6 s; what it has received goes out by itself
        live.driver.received(bundle)
        time.now_s += PERIOD_S
        live.driver.line.send_due()
    kept = live.play(arriving(rows[15:], 1.5))
    outcome = {v.pair.bundle: v.outcome.value for v in kept.lines.values() if v.pair.judged_for == "a"}
    assert set(outcome) == set(range(40)) and len(kept.lines) == live.owed()
    assert all(outcome[n] in ("SKIPPED", "ERROR") for n in range(9, 22))
    assert {outcome[n] for n in range(32, 40)} == {"HOLDS"}
    assert any("pause the run" in reason for reason in reasons(live, "SKIPPED"))


def judged_since(live: Simulation, first: int) -> list[tuple[str, str]]:
    """Outcome and reason of each instant from one on, as the relation's own check has it."""
    lines = (v for v in live.recorder.lines.values() if v.pair.judged_for == "a")
    return [
        (v.outcome.value, v.judgement.reason) for v in lines if v.pair.bundle is not None and v.pair.bundle >= first
    ]


def test_what_the_former_instance_left_unanswered_is_no_memory_of_the_one_in_its_place(time: VirtualTime) -> None:
    """One comes in the place of another at once, so that nobody is away; the former had missed an input."""
    followup = FakeArm("followup", lambda sent: silent() if sent.bundle.index == 9 else answered(seen(1)), 0.03)
    live = Simulation(
        time,
        arms=(one("source"), followup),
        stack=EXTERNAL,
        stateless=False,
        config=AT_ONCE,
        presence=lambda: Presence("", int(time.now_s >= BEGAN_S + 1.25)),
    )
    live.play(arriving(drive(20)))
    since = judged_since(live, 13)
    assert {outcome for outcome, _ in since} == {"SETTLING", "HOLDS"} and live.driver.status["lost_instances"] == 1
    assert not any("remember differently" in reason for _, reason in since)


def test_inputs_that_nobody_was_there_for_are_no_memory_of_the_instance_that_comes_back(time: VirtualTime) -> None:
    going = Going("followup", lambda sent: answered(seen(1)), 0.03)
    live = Simulation(
        time,
        arms=(one("source"), going),
        stack=EXTERNAL,
        stateless=False,
        config=AT_ONCE,
        presence=lambda: going.presence(time.now_s),
    )
    live.play(arriving(drive(40)))
    since = judged_since(live, 23)
    assert since[-1][0] == "HOLDS" and not any("remember differently" in reason for _, reason in since)


def test_one_that_is_started_anew_while_the_run_is_paused_is_no_error(time: VirtualTime) -> None:
    going = Going("followup", lambda sent: answered(seen(1)), 0.03)
    live = Simulation(time, arms=(one("source"), going), stack=EXTERNAL, presence=lambda: going.presence(time.now_s))
    rows = drive(40)
    live.play(arriving(rows[:7]), 0.7)
    live.commands.pause()
    live.play(arriving(rows[7:25], 0.7), 2.5)
    live.commands.start()
    kept = live.play(arriving(rows[25:], 2.5))
    assert set(kept.count()) == {"SETTLING", "HOLDS", "SKIPPED"} and live.driver.status["lost_instances"] == 1
    assert kept.lines and list(kept.lines.values())[-1].outcome.value == "HOLDS"


def test_while_nobody_is_there_the_status_says_who_is_waited_for(time: VirtualTime) -> None:
    live = Simulation(time, stack=EXTERNAL, presence=lambda: Presence("the stack", 1))
    live.play(arriving(drive(2)), 0.3)
    assert live.driver.status["waiting_for"] == "the stack"


def disagreeing() -> FakeArm:
    return FakeArm("followup", lambda sent: answered(seen(0)), delay_s=0.03)


@pytest.mark.parametrize("reset", ["restart", "/tracker/reset"])
def test_an_external_stack_is_made_to_forget_by_its_service_or_it_is_told_that_it_is_not(
    reset: str, time: VirtualTime
) -> None:
    stack = {**EXTERNAL, "reset": reset}
    arms = (one("source"), disagreeing())
    live = Simulation(time, arms=arms, stack=stack, stateless=False, config={"segments": TURNS})
    live.play(arriving(drive(30)))
    said = " ".join(reasons(live, "SETTLING"))
    restarts = arms[1].count("restart")
    assert restarts == live.driver.status["restarts"] and bool(restarts) == reset.startswith("/")
    assert ("we do not restart it; name a service that makes it forget (reset:" in said) == (not restarts)
    assert ("1 restarts were of no use" in said) == bool(restarts) and "the next turn comes" in said


def live_stack(**rest: Any) -> Stack:
    return build(Stack, {"name": "x", **EXTERNAL, **rest}, "test")


def test_the_source_domain_of_a_shadow_may_be_the_live_one_and_the_followups_may_not() -> None:
    config = LiveConfig(live_domain=10, control_domain=62)
    check_live(config, live_stack())
    for domain, words in (
        ({"source": 10, "followup": 10}, "fixes domain 10"),
        ({"source": 10, "followup": 62}, "fixes domain 62"),
        ({"source": 10}, "expected one for followup"),
    ):
        with pytest.raises(UsageError, match=words):
            check_live(config, live_stack(domain=domain))
    twin = LiveConfig(mode="twin", live_domain=1)
    with pytest.raises(UsageError, match="a different one for each instance"):
        check_live(twin, live_stack(domain={"source": 10, "followup": 10}))
    with pytest.raises(UsageError, match="fixes domain 10"):
        check_live(LiveConfig(mode="twin", live_domain=10), live_stack())


def telling(name: str, errors: dict[int, str] | None = None) -> FakeArm:
    """A healthy arm but for the errors that are told with the answers to some inputs."""

    def behave(sent: Sent) -> Answer:
        error = (errors or {}).get(sent.bundle.index)
        return answered(replace(seen(1), diagnostics=Diagnostics({error: "no data"} if error else {})))

    return FakeArm(name, behave, 0.03)


ERRORS = suite(relation("errors", check=NoNewErrors()))


def judged(live: Simulation) -> list[tuple[str, str]]:
    """Return relation and outcome of each segment, in the order in which they were judged."""
    return [(v.pair.relation, v.outcome.value) for v in live.recorder.lines.values() if v.pair.judged_for == "errors"]


@pytest.mark.parametrize("at", range(12, 16))
def test_what_is_told_while_the_next_turn_settles_is_told_of_the_one_before(at: int, time: VirtualTime) -> None:
    """Turns: identity 0 to 5, errors 6 to 11, the sham 12 to 17; each settles with its first two."""
    arms = (telling("source"), telling("followup", {at: "lidar"}))
    live = Simulation(time, ERRORS, arms, config={"segments": TURNS})
    live.play(arriving(drive(20)))
    live.driver._abandon(KeyboardInterrupt())
    blamed = "errors" if at < 14 else "points_permuted"
    expected = [(name, "VIOLATED" if name == blamed else "HOLDS") for name in ("identity", "errors", "points_permuted")]
    assert judged(live)[:3] == expected


@pytest.mark.parametrize("mode", ["shadow", "alternate"])
def test_a_live_run_takes_last_words_in(mode: str, time: VirtualTime) -> None:
    source, followup = telling("source"), telling("followup")
    live = Simulation(time, ERRORS, (source, followup), config={"mode": mode, "segments": TURNS})
    live.play(arriving(drive(10)))
    live.arms[1].tells_last = [Diagnostics({"lidar": "no data"})]
    live.driver._abandon(KeyboardInterrupt())
    assert judged(live) == [("identity", "HOLDS"), ("errors", "VIOLATED")]


@pytest.mark.parametrize(
    ("tells", "at", "blamed"), [(0, 6, set()), (1, 6, {"identity"}), (0, 12, {"errors"}), (1, 12, set())]
)
def test_arms_that_change_their_roles_are_blamed_in_the_role_they_had(
    tells: int, at: int, blamed: set[str], time: VirtualTime
) -> None:
    """The second instance is the follow-up arm of the first turn, `identity`, the first one that of `errors`."""
    arms = (telling("source", {at: "lidar"} if tells == 0 else {}), telling("followup", {at: "lidar"} if tells else {}))
    turns = replace(TURNS, swap_arms=True)
    live = Simulation(time, ERRORS, arms, config={"mode": "twin", "segments": turns})
    live.play(arriving(drive(20)))
    assert {name for name, outcome in judged(live) if outcome == "VIOLATED"} == blamed


def test_what_is_told_in_another_episode_is_of_no_turn_before(time: VirtualTime) -> None:
    rows = drive(12)
    arms = (telling("source"), telling("followup", {0: "lidar", 1: "lidar"}))
    live = Simulation(time, ERRORS, arms, config={"segments": TURNS})
    live.play([*arriving(rows), *arriving(rows, 1.2)])
    live.driver._abandon(KeyboardInterrupt())
    assert {outcome for _, outcome in judged(live)} == {"HOLDS"}


def test_the_examples_fit_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).resolve().parents[2])
    stack = Path("examples/live/external.yaml")
    config = configured(Path("examples/live/live.yaml"), {"stack": str(stack), "live_domain": 10})
    run = LiveRun.make(config, Path("out"))
    plain = LiveRun.make(configured(Path("examples/live/live.yaml"), {"live_domain": 10}), Path("out"))
    same = ("topics", "outputs", "stateless", "map_free", "deadline_s")
    assert all(getattr(run.stack, name) == getattr(plain.stack, name) for name in same)
    assert f"ROS_DOMAIN_ID={run.stack.domain['followup']}" in Path("docs/live.md").read_text()
