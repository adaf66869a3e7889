# SPDX-License-Identifier: Apache-2.0
"""The parts of a live run each by itself: turns, limits, episodes, equal delay, and answers found by their arrival."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_arms import FakeArm, relation, suite
from hypothesis import given
from hypothesis import strategies as st
from live_simulation import BEGAN_S, VirtualTime, drive, virtual_time

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import read_result, write_result
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.arrival import HISTORY, Arrivals
from mt_nodes.engine.judging import offers
from mt_nodes.engine.plan import ReplayRequest, check_request
from mt_nodes.engine.realtime import Sending
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.send_order import Part
from mt_nodes.relations.checks.steering_checks import SteeringWithin
from mt_nodes.runs.live.config import Limits, LiveConfig, Segments
from mt_nodes.runs.live.delay import DelayedInput, DelayLine
from mt_nodes.runs.live.live_episodes import Episodes, Start
from mt_nodes.runs.live.live_followups import Limiter
from mt_nodes.runs.live.live_run import LiveRun, read_domains
from mt_nodes.runs.live.segments import Next, Phase, Rotation
from mt_nodes.stacks.stack import load_stack


@pytest.fixture
def time() -> Iterator[VirtualTime]:
    with virtual_time() as made:
        yield made


# --- turns

SUITE = suite(relation("a"), relation("b"))
CONTROL, SHAM, A, B = offers(SUITE)
ORDER = (CONTROL, A, B, SHAM)


def rotation(remembers: bool = True, order: Any = ORDER, **segments: Any) -> Rotation:
    return Rotation(order, Segments(**{"settle_bundles": 2, "test_bundles": 3, **segments}), remembers=remembers)


def settle(turns: Rotation, agrees: bool | None = True, now_s: float = 0.0) -> Next:
    return turns.settled(turns.turn(now_s), agrees, now_s)


def names(turns: Rotation, count: int) -> list[str]:
    """Whose the next turns are, if the arms always agree at once."""
    found = []
    for _ in range(count):
        while turns.turn(0.0).phase is Phase.SETTLING:
            settle(turns)
        found.append(turns.turn(0.0).offer.relation.id)
        for _ in range(turns.segments.test_bundles):
            turns.tested()
    return found


def test_control_comes_first_the_sham_last_and_then_all_over_again() -> None:
    turns = rotation()
    assert names(turns, 6) == ["identity", "a", "b", "points_permuted", "identity", "a"]
    assert turns.turn(0.0).round == 1 and turns.turn(0.0).segment == 6


def test_only_so_many_in_a_row_are_agreement() -> None:
    turns = rotation()
    for agrees in (True, False, True, None, True):
        settle(turns, agrees)
        assert turns.turn(0.0).phase is Phase.SETTLING
    settle(turns)
    assert turns.turn(0.0).phase is Phase.TESTING


def test_what_does_not_remember_needs_to_agree_once() -> None:
    turns = rotation(remembers=False)
    settle(turns)
    assert turns.turn(0.0).phase is Phase.TESTING
    turns.interrupted()
    assert turns.turn(0.0).phase is Phase.TESTING, "nothing to settle"


def test_what_an_older_stretch_came_to_says_nothing() -> None:
    turns = rotation(settle_bundles=1)
    old = turns.turn(0.0)
    turns.settle_anew()
    assert turns.settled(old, True, 0.0) is Next.CONTINUE and turns.turn(0.0).phase is Phase.SETTLING


def test_restarts_are_asked_for_so_often_and_then_it_gives_up() -> None:
    turns = rotation(restart_after_bundles=2, give_up_after_restarts=1)
    said = [settle(turns, False) for _ in range(4)]
    assert said == [Next.CONTINUE, Next.RESTART, Next.CONTINUE, Next.GAVE_UP]
    assert turns.turn(0.0).offer is A
    assert [settle(turns, None) for _ in range(9)] == [Next.CONTINUE] * 9, "an arm that is not heard says nothing"


@pytest.mark.parametrize(("remembers", "reads", "until_s"), [(True, True, 2.0), (True, False, 1e9), (False, True, 1e9)])
def test_commands_of_what_remembers_are_judged_for_a_while_only(remembers: bool, reads: bool, until_s: float) -> None:
    check = SteeringWithin() if reads else None
    own = relation("a", check=check)
    order = offers(suite(own))
    turns = rotation(remembers, (order[0], order[2], order[1]), settle_bundles=1, control_horizon_s=2.0)
    settle(turns, now_s=5.0)
    assert turns.turn(min(5.0 + until_s, 1e8) - 1e-6).phase is Phase.TESTING
    turns.tested()
    assert turns.turn(5.0 + until_s + 1e-6).phase is Phase.SETTLING if until_s == 2.0 else True
    assert turns.turn(5.0 + until_s + 1e-6).segment == 0, "the turn goes on when they agree again"


def test_choosing_ends_a_turn_that_was_not_chosen() -> None:
    turns = rotation()
    assert names(turns, 2) == ["identity", "a"]
    assert turns.turn(0.0).offer is B
    turns.choose(["a"])
    assert turns.turn(0.0).offer is CONTROL and turns.turn(0.0).phase is Phase.SETTLING
    assert names(turns, 4) == ["identity", "a", "points_permuted", "identity"]
    turns.choose(["b", "a"])
    assert names(turns, 3) == ["b", "a", "points_permuted"]


# --- limits


def allowed(limits: Limits, times: list[float]) -> int:
    limiter = Limiter(limits)
    return sum(limiter.refuses(at_s) is None for at_s in times)


@given(st.floats(0.5, 20.0), st.lists(st.floats(0.01, 0.3), min_size=50, max_size=200))
def test_a_rate_is_kept_whatever_the_input_does(rate_hz: float, periods: list[float]) -> None:
    times = [sum(periods[:i]) for i in range(len(periods))]
    lasting_s = times[-1]
    got = allowed(Limits(rate_hz=rate_hz), times)
    assert got <= rate_hz * lasting_s + 2.0
    if all(period < 0.5 / rate_hz for period in periods):
        assert got >= 0.5 * rate_hz * lasting_s - 1.0


def test_a_rate_as_high_as_the_inputs_is_not_halved_by_jitter() -> None:
    jitter = [0.004, -0.004]
    times = [0.1 * i + jitter[i % 2] for i in range(100)]
    assert allowed(Limits(rate_hz=10.0), times) >= 97


@given(st.floats(0.0, 1.0), st.integers(1, 300))
def test_a_duty_is_that_share_of_the_instants(duty: float, count: int) -> None:
    got = allowed(Limits(duty=duty), [0.1 * i for i in range(count)])
    assert duty * count - 1.0 <= got <= duty * count + 1.0


# --- episodes


def test_episodes_end_where_the_input_does_not_go_on() -> None:
    episodes = Episodes(gap_s=2.0)
    came = [(10.0, 0.0), (10.1, 0.1), (10.1, 0.15), (9.0, 0.2), (9.1, 0.3), (20.0, 0.4), (20.1, 5.0), (20.2, 5.1)]
    placed = [episodes.place(round(stamp_s * 1e9), at_s) for stamp_s, at_s in came]
    assert [(p.episode, p.index) for p in placed] == [
        *((0, 0), (0, 1), (0, 2)),
        *((1, 0), (1, 1)),
        (2, 0),
        *((3, 0), (3, 1)),
    ]
    starts = [p.start for p in placed if p.start is not Start.CONTINUES]
    assert starts == [Start.FIRST, Start.BACK, Start.JUMP, Start.GAP]


@given(st.lists(st.tuples(st.integers(-5, 5), st.floats(0.0, 4.0)), max_size=40))
def test_every_instant_has_a_place_of_its_own(steps: list[tuple[int, float]]) -> None:
    episodes, stamp_s, at_s, places = Episodes(gap_s=2.0), 100, 0.0, []
    for step_s, later_s in steps:
        stamp_s, at_s = stamp_s + step_s, at_s + later_s
        places.append(episodes.place(stamp_s * 10**9, at_s))
    keys = [(p.episode, p.index) for p in places]
    assert len(set(keys)) == len(keys) and keys == sorted(keys)
    assert all((p.index == 0) == (p.start is not Start.CONTINUES) for p in places)


# --- equal delay


def slot(arm: FakeArm, due_s: float, index: int = 0, *later_s: float) -> DelayedInput:
    part = Part(drive(8)[index], frozenset(), 0, 0)
    return DelayedInput(due_s, [Sending(arm, part, due_s + more_s) for more_s in (0.0, *later_s)])


def run_until(time: VirtualTime, line: DelayLine, until_s: float) -> None:
    while time.now_s < until_s - 1e-9:
        time.now_s = round(time.now_s + 0.01, 6)
        line.send_due()


def test_a_slot_goes_out_when_it_is_due_and_its_lane_is_a_queue(time: VirtualTime) -> None:
    arm, line = FakeArm("followup"), DelayLine()
    line.put("sensors", slot(arm, BEGAN_S + 0.1, 0, 0.25))
    line.put("sensors", slot(arm, BEGAN_S + 0.2, 1))
    line.put("beside", slot(arm, BEGAN_S + 0.15, 2))
    assert line.send_due() == BEGAN_S + 0.1 and not arm.sent
    run_until(time, line, BEGAN_S + 0.5)
    sent = [(round(s.at_s - BEGAN_S, 2), s.bundle.index) for s in arm.sent]
    assert sent == [(0.1, 0), (0.15, 2), (0.35, 0), (0.35, 1)]


def test_what_is_delayed_itself_is_waited_for_by_what_comes_behind_it(time: VirtualTime) -> None:
    arm, line = FakeArm("followup"), DelayLine()
    late, behind = slot(arm, BEGAN_S + 0.1, 0, 0.195), slot(arm, BEGAN_S + 0.15, 1)
    late.sendings = late.sendings[1:]
    line.put("sensors", late)
    line.put("sensors", behind)
    run_until(time, line, BEGAN_S + 0.5)
    assert [(round(s.at_s - BEGAN_S, 2), s.bundle.index) for s in arm.sent] == [(0.3, 0), (0.3, 1)]


def test_what_is_in_a_slot_can_be_changed_until_it_begins_to_go_out(time: VirtualTime) -> None:
    arm, line = FakeArm("followup"), DelayLine()
    first, second = slot(arm, BEGAN_S + 0.1, 0), slot(arm, BEGAN_S + 0.2, 1)
    line.put("sensors", first)
    line.put("sensors", second)
    other = slot(arm, BEGAN_S + 0.1, 5).sendings
    assert line.exchange({first: other})
    run_until(time, line, BEGAN_S + 0.15)
    assert not line.exchange({second: other, first: ()}), "all or none"
    assert line.exchange({second: ()})
    run_until(time, line, BEGAN_S + 0.3)
    assert [s.bundle.index for s in arm.sent] == [5] and second.is_released and not second.dropped


def test_while_nobody_is_there_what_is_due_is_dropped(time: VirtualTime) -> None:
    arm, line = FakeArm("followup"), DelayLine()
    slots = [slot(arm, BEGAN_S + 0.1 * (i + 1), i) for i in range(4)]
    line.put("sensors", slots[0])
    line.hold()
    for each in slots[1:]:
        line.put("sensors", each)
    run_until(time, line, BEGAN_S + 0.25)
    time.now_s = BEGAN_S + 0.35
    line.release()
    run_until(time, line, BEGAN_S + 0.5)
    assert [s.bundle.index for s in arm.sent] == [3]
    assert [each.dropped for each in slots] == [True, True, True, False]


def test_the_line_has_a_thread_of_its_own_and_tells_what_ended_it() -> None:
    sent = threading.Event()

    class Arm(FakeArm):
        def send(self, *args: Any, **rest: Any) -> Any:
            sent.set()
            raise RuntimeError("no arm any more")

    line = DelayLine()
    line.start()
    line.put("sensors", slot(Arm("followup"), 0.0))
    assert sent.wait(150.0)
    line.close()
    assert isinstance(line.failure, RuntimeError)


# --- answers by stamp and by arrival


def heard(arrivals: Arrivals, ticket: Any) -> dict[str, Any]:
    return {role: payload for role, (payload, _) in ticket.parts.items()} if arrivals.complete(ticket) else {}


def test_an_answer_may_come_before_its_input_is_known(time: VirtualTime) -> None:
    early, own = (Arrivals(("detections",), "stamp", 0.1, before_s=before_s) for before_s in (1.0, 0.0))
    for arrivals in (early, own):
        arrivals.put("detections", 7, "early")
    time.now_s += 0.5
    assert heard(early, early.expect(7)) == {"detections": "early"}
    assert heard(own, own.expect(7)) == {}, "our own instance answers what it was given"
    time.now_s += 1.0
    assert heard(early, early.expect(7)) == {}, "of a former loop of the bag"


def test_of_a_looped_bag_each_lap_has_its_own_answers(time: VirtualTime) -> None:
    """A lap takes 0.6 s, less than an answer may come ahead; the stack answers the first lap and then no more."""
    arrivals, answered = Arrivals(("detections",), "stamp", 0.1, before_s=1.0, deadline_s=10.0), []
    for lap in range(3):
        for stamp in range(6):
            ticket = arrivals.expect(stamp, lap)
            time.now_s += 0.05
            if lap == 0 and stamp != 2:
                arrivals.put("detections", stamp, f"{lap}/{stamp}")
            time.now_s += 0.05
            answered.append((lap, stamp, heard(arrivals, ticket)))
    assert [row for row in answered if row[2]] == [
        (0, stamp, {"detections": f"0/{stamp}"}) for stamp in range(6) if stamp != 2
    ]


def test_an_input_that_was_not_answered_gets_no_output_of_the_next_lap(time: VirtualTime) -> None:
    """Even one that came before it was known that the next lap has begun."""
    arrivals = Arrivals(("detections",), "stamp", 0.1, before_s=1.0, deadline_s=10.0)
    first = arrivals.expect(7, lap=0)
    time.now_s += 2.0
    arrivals.put("detections", 7, "ahead")
    time.now_s += 0.1
    second = arrivals.expect(7, lap=1)
    time.now_s += 0.1
    arrivals.put("detections", 7, "again")
    assert heard(arrivals, first) == {} and heard(arrivals, second) == {"detections": "ahead"}


def test_what_an_input_was_judged_by_is_no_answer_of_the_next_lap(time: VirtualTime) -> None:
    """Though it came nearer to that: the stack may have died since then."""
    arrivals = Arrivals(("detections",), "stamp", 0.1, before_s=1.0, deadline_s=10.0)
    first = arrivals.expect(7, lap=0)
    time.now_s += 0.5
    arrivals.put("detections", 7, "slow")
    assert heard(arrivals, first) == {"detections": "slow"}
    arrivals.close(first)
    time.now_s += 0.1
    second = arrivals.expect(7, lap=1)
    assert heard(arrivals, second) == {} and heard(arrivals, first) == {"detections": "slow"}


def test_one_output_is_no_answer_to_two_inputs_of_one_stamp(time: VirtualTime) -> None:
    arrivals = Arrivals(("detections",), "stamp", 0.1)
    first, second = arrivals.expect(7), arrivals.expect(7)
    arrivals.put("detections", 7, "one")
    assert heard(arrivals, first) == {"detections": "one"} and heard(arrivals, second) == {}
    arrivals.put("detections", 7, "two")
    assert heard(arrivals, second) == {"detections": "two"}


def test_an_output_after_the_deadline_answers_nothing(time: VirtualTime) -> None:
    arrivals = Arrivals(("detections",), "stamp", 0.1, deadline_s=1.0)
    ticket = arrivals.expect(7)
    time.now_s += 1.1
    arrivals.put("detections", 7, "late")
    assert heard(arrivals, ticket) == {} and vars(arrivals.strays) == {"repeated": 0, "late": 1, "unknown": 0}


def test_outputs_that_answer_nothing_are_counted(time: VirtualTime) -> None:
    arrivals = Arrivals(("detections",), "stamp", 0.1)
    arrivals.expect(7)
    for stamp in (7, 7, 8):
        arrivals.put("detections", stamp, "x")
    assert vars(arrivals.strays) == {"repeated": 1, "late": 0, "unknown": 1} and arrivals.unknown_stamp_ns == 8
    arrivals.expect(9)
    assert arrivals.unknown_stamp_ns is None


def test_outputs_by_arrival_that_are_more_than_inputs_are_counted(time: VirtualTime) -> None:
    arrivals = Arrivals(("control",), "arrival", 0.1)
    arrivals.put("control", None, "before any input")
    for _ in range(3):
        arrivals.expect(7)
        time.now_s += 0.05
        arrivals.put("control", None, "x")
        time.now_s += 0.05
    assert arrivals.strays.repeated == 0
    time.now_s += 0.05
    arrivals.put("control", None, "surplus")
    assert arrivals.strays.repeated == 1


def test_an_output_without_a_stamp_answers_by_its_arrival_and_the_last_one_counts(time: VirtualTime) -> None:
    arrivals = Arrivals(("control",), "stamp", 0.1)
    arrivals.put("control", None, "before")
    time.now_s += 0.01
    ticket = arrivals.expect(7)
    time.now_s += 0.05
    arrivals.put("control", None, "within")
    assert heard(arrivals, ticket) == {}, "a later one may still come"
    time.now_s += 0.04
    arrivals.put("control", None, "last")
    time.now_s += 0.02
    arrivals.put("control", None, "too late")
    assert heard(arrivals, ticket) == {"control": "last"} and ticket.by_arrival == {"control"}


def test_an_output_without_a_stamp_that_came_before_the_input_is_no_answer(time: VirtualTime) -> None:
    """A stack that has died since then would be judged by its last words."""
    arrivals = Arrivals(("control",), "stamp", 0.1)
    arrivals.put("control", None, "before")
    time.now_s += 0.01
    ticket = arrivals.expect(7)
    time.now_s += 0.2
    assert heard(arrivals, ticket) == {} and not ticket.by_arrival


def test_a_stack_can_be_paired_by_arrival_altogether(time: VirtualTime) -> None:
    arrivals = Arrivals(("detections", "control"), "arrival", 0.1)
    ticket = arrivals.expect(7)
    time.now_s += 0.05
    arrivals.put("detections", 99, "boxes")
    arrivals.put("control", 98, "command")
    time.now_s += 0.1
    assert heard(arrivals, ticket) == {"detections": "boxes", "control": "command"}
    assert ticket.by_arrival == {"detections", "control"}


def test_part_of_an_answer_is_none(time: VirtualTime) -> None:
    arrivals = Arrivals(("detections", "control"), "stamp", 0.1)
    ticket = arrivals.expect(7)
    arrivals.put("control", 7, "command")
    assert not arrivals.complete(ticket) and set(ticket.parts) == {"control"}
    arrivals.put("detections", 7, "boxes")
    assert arrivals.complete(ticket) and not ticket.by_arrival


@given(st.lists(st.tuples(st.sampled_from(["stamped", "plain"]), st.integers(0, 9)), max_size=3 * HISTORY))
def test_what_is_kept_of_outputs_is_bounded(outputs: list[tuple[str, int]]) -> None:
    arrivals = Arrivals(("stamped", "plain"), "stamp", 0.1)
    for i, (role, stamp) in enumerate(outputs):
        arrivals.put("plain", None, i)
        ticket = arrivals.expect(i if stamp else 0, lap=i)
        ticket.until_s = ticket.sent_s
        arrivals.put(role, stamp if role == "stamped" else None, i)
    assert sum(map(len, arrivals._stamped["stamped"].values())) == len(arrivals._order["stamped"]) <= HISTORY
    assert len(arrivals._awaited) <= HISTORY and all(len(same) <= 2 for same in arrivals._awaited.values())
    assert len(arrivals._unstamped["plain"]) <= HISTORY
    arrivals.clear()
    assert not arrivals._order["stamped"]


def test_who_waits_is_told_when_the_answer_comes() -> None:
    arrivals, got = Arrivals(("detections",), "stamp", 0.1), []
    ticket = arrivals.expect(7)
    thread = threading.Thread(target=lambda: got.append(arrivals.wait(ticket, ticket.sent_s + 60.0)))
    thread.start()
    arrivals.put("detections", 7, "boxes")
    thread.join(150.0)
    assert got == [True]


# --- what a run is


def test_a_run_is_what_its_directory_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", "17")
    config = LiveConfig(mode="twin", segments=Segments(test_bundles=7), relations=("noise_outside_roi_10",))
    made = LiveRun.create(config, str(tmp_path / "run"))
    again = LiveRun.load(made.out)
    assert again.request == made.request and again.request.segments.test_bundles == 7
    assert again.request.live_domain == 17, "that of this process"
    assert [o.relation.id for o in again.offers] == ["identity", "noise_outside_roi_10", "points_permuted"]
    with pytest.raises(UsageError, match="expected the directory of a running `mt live`"):
        read_domains(made.out)
    made.write_domains({"live": 17, "control": 3})
    assert read_domains(made.out) == {"live": 17, "control": 3}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"relations": ("no_such_relation",)}, "no_such_relation"),
        ({"relations": ("dust_monotone",)}, "has a baseline"),
        ({"stack": "reference_camera"}, "requires a lidar"),
        ({"mode": "alternate", "stack": "reference_tracker"}, "remembers"),
        ({"segments": Segments(swap_arms=True)}, "expected mode: twin"),
        ({"waivers": "/no/such/file.yaml"}, "/no/such/file.yaml"),
    ],
)
def test_what_cannot_run_is_refused_and_nothing_is_written(config: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        LiveRun.create(LiveConfig(**config), str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


def test_a_replay_is_no_live_run_and_a_live_run_no_replay(tmp_path: Path) -> None:
    made = LiveRun.create(LiveConfig(live_domain=3, relations=("noise_outside_roi_10",)), str(tmp_path / "run"))
    record = read_result(made.out / "run.json")
    record["request"] = ReplayRequest(("bag",)).as_plain()
    write_result(made.out / "run.json", record)
    with pytest.raises(UsageError, match="holds another kind of run, expected one of `mt live`"):
        LiveRun.load(made.out)
    verdict = Verdict(Pair(0, 7, "noise_outside_roi_10"), 5, Judgement(Outcome.VIOLATED))
    finished = RecordedPair(made.out, {"request": made.request.as_plain()}, verdict.pair, verdict, "sha")
    with pytest.raises(UsageError, match=r"a run of `mt live`, whose input is gone.*0_7_noise_outside_roi_10_0\.mcap"):
        finished.request()
    stack = replace(load_stack("reference_detector"), match="arrival")
    with pytest.raises(UsageError, match="match: arrival, which is for `mt live`"):
        check_request(ReplayRequest(("bag",)), stack)


def test_of_a_pattern_what_cannot_be_judged_beside_a_live_stack_is_left_out(tmp_path: Path) -> None:
    shadow, twin = (LiveRun.make(LiveConfig(mode=mode, relations=("fog_*",)), tmp_path) for mode in ("shadow", "twin"))
    assert "has a baseline" in shadow.left_out["fog_monotone"] and "fog_monotone" in twin.request.relations
    assert tuple(r.id for r in shadow.suite.relations) == shadow.request.relations
    assert not {*shadow.request.relations} & {*shadow.left_out} and "requires a camera" in str(shadow.left_out)
    assert shadow.more_of_record == {"left_out": dict(shadow.left_out)}
    with pytest.raises(UsageError, match="has a baseline"):
        LiveRun.make(LiveConfig(mode="shadow", relations=("fog_monotone",)), tmp_path)
