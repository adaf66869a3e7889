# SPDX-License-Identifier: Apache-2.0
"""What looks for leaks says so at once, takes nobody for a leak who only has no name yet, and costs little."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ros_support import LIMIT_S, Peer, until
from std_msgs.msg import Float32
from std_srvs.srv import SetBool

from mt_nodes.base.errors import InfrastructureError, IsolationError
from mt_nodes.base.safety_settings import Actuators, Guard
from mt_nodes.nodes import leak_watch
from mt_nodes.nodes.graph_guard import Ours, endpoints, participant
from mt_nodes.nodes.isolation import NAMES_S, NOT_KNOWN_YET
from mt_nodes.nodes.leak_watch import LATE_S, SOON_S, WORTH_S, GraphSnapshot, LeakWatch, Suspicion, pause_s
from mt_nodes.nodes.live_safety import LiveSafety
from mt_nodes.runs.vehicle.leaks import (
    PUBLISHER,
    SERVER,
    SUBSCRIPTION,
    GraphEndpoint,
    LeakQuery,
    leaks_in_arm,
    leaks_in_live,
)
from mt_nodes.runs.vehicle.live_guard import ComputerGuard

STEER = "/vehicle/steer"
WATCHED = LeakQuery(Actuators(topics=(STEER,)), observers=("/recorder",))
DRIVER = GraphEndpoint("/driver", SUBSCRIPTION, STEER, "std_msgs/msg/Float32")
NAMELESS, RECORDER = replace(DRIVER, node=NOT_KNOWN_YET), replace(DRIVER, node="/recorder")


def looked(*found: GraphEndpoint) -> GraphSnapshot:
    return GraphSnapshot(leaks_in_arm(set(found), WATCHED, ()), set(found))


def after(*looks: tuple[float, GraphSnapshot]) -> Suspicion:
    suspicion = Suspicion()
    for now_s, look in looks:
        suspicion.take(now_s, look)
    return suspicion


def test_a_leak_with_a_name_is_sure_and_stays_so() -> None:
    suspicion = after((0.0, looked()), (1.0, looked(DRIVER)), (2.0, looked()))
    assert suspicion.sure and suspicion.why.startswith("/driver subscribes to")


def test_who_has_no_name_yet_stops_injection_and_nothing_more() -> None:
    suspicion = after((0.0, looked(NAMELESS)))
    assert suspicion.why and not suspicion.sure


def test_an_observer_whose_name_comes_later_is_cleared() -> None:
    suspicion = after((0.0, looked(NAMELESS)), (0.5, looked(NAMELESS)), (1.0, looked(RECORDER)))
    assert not suspicion.why and not suspicion.sure
    suspicion.take(2.0, looked(RECORDER, DRIVER))
    assert suspicion.sure and "/driver" in suspicion.why


def test_who_gets_a_name_by_which_it_may_not_be_there_is_a_leak_of_that_name() -> None:
    suspicion = after((0.0, looked(NAMELESS)), (1.0, looked(DRIVER)))
    assert suspicion.sure and suspicion.why.startswith("/driver subscribes to")


@pytest.mark.parametrize("others", [(), (RECORDER,)])
def test_who_goes_before_it_has_a_name_is_a_leak(others: tuple[GraphEndpoint, ...]) -> None:
    """Nobody knows what it was; an observer who was there before does not stand for it."""
    suspicion = after((0.0, looked(NAMELESS, *others)), (0.1, looked(*others)))
    assert suspicion.sure and "gone before it had a name" in suspicion.why


def test_who_never_gets_a_name_is_a_leak_after_a_while() -> None:
    assert not after((0.0, looked(NAMELESS)), (0.9 * NAMES_S, looked(NAMELESS))).sure
    assert after((0.0, looked(NAMELESS)), (NAMES_S, looked(NAMELESS))).sure


@pytest.mark.parametrize(("took_s", "pause"), [(0.0, SOON_S), (0.001, SOON_S), (0.01, 0.2), (1.0, LATE_S)])
def test_looking_costs_a_twentieth_of_a_core_at_most_until_it_would_be_too_seldom(took_s: float, pause: float) -> None:
    assert pause_s(took_s) == pytest.approx(pause)


def test_a_leak_stops_injection_once_and_is_raised_to_who_asks() -> None:
    stopped, leaks, again = [], threading.Event(), threading.Event()

    def look(whole: bool) -> GraphSnapshot:
        again.set()
        return looked(DRIVER) if leaks.is_set() else looked()

    with closing(LeakWatch([look], lambda: stopped.append(1))) as watch:
        assert again.wait(LIMIT_S)
        watch.refuse()
        assert watch.why == ""
        leaks.set()
        until(lambda: stopped)
        assert watch.why.startswith("/driver")
        with pytest.raises(IsolationError, match=r"/driver subscribes to /vehicle/steer .* nothing more is tested"):
            watch.refuse()
    assert stopped == [1]


def test_that_nobody_looks_any_more_is_no_reason_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    def look(whole: bool) -> GraphSnapshot:
        raise RuntimeError("the context is gone")

    with closing(LeakWatch([look], lambda: None)) as watch:
        until(lambda: watch.why)
        with pytest.raises(InfrastructureError, match="nobody looks for leaks any more: RuntimeError: the context"):
            watch.refuse()
    capsys.readouterr()


def watched_by(**leaks: Any) -> LiveSafety:
    """A run's safety that finds nothing but what is said of leaks."""
    safety = LiveSafety.__new__(LiveSafety)
    safety._computer, safety._watch = ComputerGuard(Guard()), None
    safety._leaks = cast(Any, SimpleNamespace(**{"why": "", "is_blind": False, **leaks}))
    return safety


def test_nothing_may_be_tested_while_a_leak_is_suspected_or_nobody_looks() -> None:
    assert watched_by().health() == ""
    safety = watched_by(why="/driver subscribes to /vehicle/steer")
    assert safety.health() == safety.leak == "/driver subscribes to /vehicle/steer"
    safety = watched_by(is_blind=True)
    assert safety.health() == "nobody has looked for leaks in the last 5 s" and not safety.leak


def test_a_look_is_worth_nothing_before_it_is_through_and_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a look asks of the graph may hang; what was found before that says nothing of now."""
    now_s, may_look = [0.0], threading.Semaphore(0)
    monkeypatch.setattr(leak_watch, "process_time_s", lambda: now_s[0])

    def look(whole: bool) -> GraphSnapshot:
        may_look.acquire()
        return looked()

    with closing(LeakWatch([look], lambda: None)) as watch:
        assert watch.is_blind, "nobody has looked yet"
        may_look.release()
        until(lambda: not watch.is_blind)
        now_s[0] = WORTH_S
        assert not watch.is_blind
        now_s[0] += 0.1
        assert watch.is_blind and not watch.why
        may_look.release(1000)


def publishing(node: str, topic: str = STEER) -> GraphEndpoint:
    return GraphEndpoint(node, PUBLISHER, topic, "std_msgs/msg/Float32")


def test_one_stack_that_comes_later_is_adopted_two_that_say_the_same_are_not() -> None:
    safety = watched_by()
    safety._watched, safety._before = LeakQuery(Actuators(), (), (STEER, "/path")), frozenset()
    both = {publishing("/stack"), publishing("/another")}
    safety._adopt(both)
    assert not safety._before
    safety._adopt({publishing("/stack"), publishing("/stack", "/path"), publishing("/stack", "/elsewhere")})
    assert safety._before == {publishing("/stack"), publishing("/stack", "/path")}
    safety._adopt(both)
    assert publishing("/another") not in safety._before


@pytest.fixture
def peers(ending: ExitStack, domains: Any) -> tuple[Peer, Peer]:
    """One that looks, and another program's node of the same name."""
    return Peer(ending, domains[0], "mt_mutator"), Peer(ending, domains[0], "mt_mutator")


def test_who_bears_the_name_of_a_node_of_ours_does_not_pass_for_it(peers: tuple[Peer, Peer]) -> None:
    us, _ = peers
    ours = Ours(frozenset({"/mt_mutator"}), frozenset({participant(us.node)}))
    for each in peers:
        each.node.create_subscription(Float32, STEER, print, 1)
        each.node.create_service(SetBool, "/engage", lambda _, answer: answer)

    def bearers(name: str, role: str) -> list[str]:
        return sorted(one.node for one in endpoints(us.node, ours) if (one.name, one.role) == (name, role))

    both = ["/mt_mutator", "/mt_mutator, which is none of ours,"]
    until(lambda: bearers(STEER, SUBSCRIPTION) == both)
    until(lambda: bearers("/engage", SERVER) == both)
    assert [leak.split(" subscribes")[0] for leak in leaks_in_arm(endpoints(us.node, ours), WATCHED, ours.names)] == [
        both[1]
    ]


def test_participants_differ_and_leave_nothing_in_the_graph(peers: tuple[Peer, Peer]) -> None:
    us, other = peers
    assert participant(us.node) == participant(us.node) != participant(other.node)
    assert not [name for name, _ in us.node.get_topic_names_and_types() if name.startswith("/mt_nodes/")]


def test_only_what_can_be_a_leak_is_looked_at_where_nothing_else_is_wanted(peers: tuple[Peer, Peer]) -> None:
    us, other = peers
    for topic in (STEER, "/image"):
        other.node.create_publisher(Float32, topic, 1)
    until(lambda: {"/image", STEER} <= {one.name for one in endpoints(us.node)})
    assert {one.name for one in endpoints(us.node, concerns=WATCHED.concerns)} == {STEER}


@pytest.mark.long
@pytest.mark.parametrize("every_s", [0.5, None], ids=["twice a second", "as often as it may cost"])
def test_how_short_an_endpoint_may_live_to_be_seen(
    every_s: float | None, ending: ExitStack, domains: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prints what the documentation says."""
    if every_s is not None:
        monkeypatch.setattr(leak_watch, "pause_s", lambda took_s: every_s)
    us, other = Peer(ending, domains[0], "looks"), Peer(ending, domains[0], "other")
    until(lambda: len(us.node.get_node_names()) > 1)
    ours = Ours()
    for lives_s in (0.01, 0.03, 0.05, 0.1, 0.2, 0.4):
        seen = 0
        for number in range(20):
            before = endpoints(us.node)

            def look(whole: bool, before: frozenset[GraphEndpoint] = before) -> GraphSnapshot:
                found = endpoints(us.node, ours, WATCHED.concerns)
                return GraphSnapshot(leaks_in_live(found, before, WATCHED, ()), found)

            with closing(LeakWatch([look], lambda: None)) as watch:
                time.sleep(0.3 + 0.037 * number)  # somewhere between two looks
                out = other.node.create_publisher(Float32, STEER, 1)
                time.sleep(lives_s)
                other.node.destroy_publisher(out)
                until(partial(_gone, us))
                seen += bool(watch.why)
        print(f"\n| {every_s or 'adaptive'} | lives {1e3 * lives_s:.0f} ms | seen {seen} of 20 |", end="")


def _gone(us: Peer) -> bool:
    return not [one for one in endpoints(us.node) if (one.name, one.role) == (STEER, PUBLISHER)]
