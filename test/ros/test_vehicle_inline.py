# SPDX-License-Identifier: Apache-2.0
"""`mt inline` as a whole: processes, topics, an operator with a switch, and what may happen to the mutator."""

from __future__ import annotations

import argparse
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from inline_bench import (  # noqa: F401  (two are fixtures)
    EVERY_S,
    HOLD_S,
    LET_GO,
    LONG_S,
    RAW,
    TOPIC,
    Bench,
    Inline,
    bench_in,
    command_of,
    config,
    made_bench,
    signals,
    started_inline,
)

from mt_nodes.base.errors import ExitCode, IsolationError, UsageError
from mt_nodes.base.processes import wait_until
from mt_nodes.cli.inline_command import configured
from mt_nodes.runs.vehicle.inline import inline_config
from mt_nodes.runs.vehicle.interlock import Interlock
from mt_nodes.runs.vehicle.offers import Offers
from mt_nodes.runs.vehicle.relay_process import OFFERS
from mt_nodes.runs.vehicle.sentry import RelayFate

if TYPE_CHECKING:
    from mt_nodes.nodes.relay import Relay

#: Of the test in which that is over: to DDS, a process that stands still for 3 s is gone.
FRESH_S = 2.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"topics": []}, "topics: got none"),
        ({"topics": [{"raw": "/a", "topic": "/a"}]}, "got '/a'.*each once"),
        ({"topics": [{"raw": "a", "topic": "/b"}]}, "got 'a'.*begin with /"),
        ({"permits": []}, "permits: got none"),
        ({"permits": [{"topic": "/a", "type": "std_msgs/msg/Bool"}]}, r"permits\[0\].*expected one of both"),
        ({"dead_man": {}}, "dead_man: got topic ''"),
        ({"dead_man": signals()["permits"][0]}, "a switch of its own"),
        ({"hold": 1.0}, "hold"),
    ],
)
def test_what_is_not_safe_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        inline_config(config(**change), "bench.yaml")


def test_the_mutator_searches_the_directories_of_plugins_of_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "bench.yaml"
    file.write_text(yaml.safe_dump(config(plugins=["of_file"])))
    args = argparse.Namespace(config=file, plugins=[tmp_path / "of_line"])
    assert configured(args).plugins == ("of_file", str(tmp_path / "of_line"))


def test_without_arm_everything_is_forwarded_byte_for_byte(bench: Bench, started: Callable[..., Inline]) -> None:
    bench.pressed = True
    inline = started()
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: not replaced, 10)
    summary = inline.end()
    assert summary["topics"][TOPIC]["replaced"] == 0 and "not armed" in inline.said
    assert not any(map(bench.replaced, range(len(bench.heard))))
    bench.all_in_order()


@pytest.fixture
def relay_here(domains: tuple[int, ...], tmp_path: Path) -> Iterator[Callable[..., Relay]]:
    """Starts a relay in this process, armed."""
    from mt_nodes.nodes.relay import Relay
    from mt_nodes.nodes.spinning_context import SpinningContext, quiet_node

    with ExitStack() as ending:

        def start(**how: Any) -> Relay:
            context, made = SpinningContext(domains[0]), []
            ending.callback(context.close)

            def node(*, context: Any) -> Any:
                one = quiet_node("mt_relay_here", context=context)
                made.append(Relay(one, inline_config(config(hold_s=0.5), "bench"), True, tmp_path / OFFERS, **how))
                return one

            context.add(node)
            ending.callback(made[0].close)
            return made[0]

        yield start


def test_what_is_no_replacement_or_comes_when_none_may_takes_no_place(
    bench: Bench, relay_here: Callable[..., Relay], tmp_path: Path, ending: ExitStack
) -> None:
    relay = relay_here()

    def counts() -> dict[str, Any]:
        return dict(relay.status()["topics"][TOPIC])

    offers = Offers(tmp_path / OFFERS)
    ending.callback(offers.close)
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    assert wait_until(lambda: relay.permission().granted, LONG_S), relay.permission().why
    stamp_ns, data = bench.last
    for garbage in (b"", b"\0\1", data[:4] + bytes(8) + data[12:]):
        offers.offer(0, stamp_ns, garbage)
    offers.offer(7, stamp_ns, data)
    assert wait_until(lambda: counts()["wrong"] == 3, LONG_S)
    bench.next(lambda replaced: not replaced, 8)
    relay.alone = True
    stamp_ns, data = bench.last
    offers.offer(0, stamp_ns, data[:-1] + b"!")
    assert wait_until(lambda: counts()["unasked"] == 1, LONG_S)
    bench.next(lambda replaced: not replaced, 3)
    bench.all_in_order()
    assert counts()["replaced"] == 0


def test_a_topic_that_somebody_else_publishes_is_refused(
    bench: Bench, relay_here: Callable[..., Relay], domains: tuple[int, ...], ending: ExitStack
) -> None:
    from sensor_msgs.msg import PointCloud2

    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    context = SpinningContext(domains[0])
    ending.callback(context.close)
    context.add(plain_node, "driver").create_publisher(PointCloud2, TOPIC, 1)
    relay = relay_here()
    assert wait_until(lambda: relay.failure is not None, LONG_S)
    assert isinstance(relay.failure, IsolationError)
    assert f"{TOPIC}: is published by /driver" in str(relay.failure) and not bench.heard


def test_nothing_is_sent_before_it_is_known_that_nobody_else_does(
    bench: Bench, relay_here: Callable[..., Relay], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever publishes the topic may be discovered later than the sensor, and its name later still."""
    from mt_nodes.nodes import relay as module
    from mt_nodes.nodes.relay_signals import UNNAMED

    began_s, names = time.monotonic(), (UNNAMED, "driver")

    def found(*_: object) -> str:
        since_s = time.monotonic() - began_s
        return f"{TOPIC}: is published by /{names[since_s > 2.0]}" * (since_s > 1.0)

    monkeypatch.setattr(module, "other_publishers", found)
    relay = relay_here()
    assert wait_until(lambda: relay.failure is not None, LONG_S)
    assert isinstance(relay.failure, IsolationError) and "/driver" in str(relay.failure)
    assert not bench.heard, "the stack got everything twice"


def test_a_standby_tells_what_it_took_over_as_soon_as_it_tells_that_it_serves(
    bench: Bench, relay_here: Callable[..., Relay], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever keeps the record looks at the first that a relay tells."""
    from mt_nodes.nodes.relay_topic import RelayTopic

    relay = relay_here(standing_by=True)
    meanwhile: list[dict[str, Any]] = []
    relieve = RelayTopic.relieve

    def relieved(topic: RelayTopic) -> bool:
        meanwhile.append(relay.status())
        return relieve(topic)

    monkeypatch.setattr(RelayTopic, "relieve", relieved)
    assert wait_until(lambda: bool(relay._topics), LONG_S)
    relay.take_over(RelayFate.DIED)
    assert meanwhile[0].get("standing_by") is True
    assert relay.status()["took_over"] == {"why": "died", "in_doubt": 0}
    bench.next(lambda replaced: not replaced)


class Ears:
    """In place of a ROS node: what is subscribed to, and how many publish each topic."""

    def __init__(self) -> None:
        self.takes: dict[str, Callable[..., None]] = {}
        self.publishers = 1

    def create_subscription(self, kind: type, topic: str, take: Callable[..., None], profile: object) -> None:
        self.takes[topic] = take

    def count_publishers(self, topic: str) -> int:
        return self.publishers

    def hear(self, topic: str, value: bool, before_s: float = 0.0) -> None:
        from std_msgs.msg import Bool

        self.takes[topic](Bool(data=value), {"source_timestamp": time.time_ns() - round(1e9 * before_s)})


@pytest.mark.parametrize("otherwise", ["standing by", "two publishers", "overtaken", ""])
def test_a_let_go_that_is_heard_while_something_stands_against_it_starts_nothing(otherwise: str) -> None:
    from mt_nodes.nodes.relay_signals import Permits

    plan, ears, against = inline_config(config(), "bench"), Ears(), [otherwise * (otherwise == "standing by")]
    permits = Permits(ears, Interlock(True, plan.permits, plan.dead_man), lambda: against[0])  # type: ignore[arg-type]
    ears.publishers += otherwise == "two publishers"
    ears.hear("/engaged", False)
    if otherwise == "overtaken":
        ears.hear("/dead_man", False)
        ears.hear("/dead_man", True)
    ears.hear("/dead_man", False, before_s=1.0 * (otherwise == "overtaken"))
    against[0], ears.publishers = "", 1
    ears.hear("/dead_man", True)
    found = permits.permission()
    assert found.granted is (not otherwise)
    assert found.granted or "let the switch go and press it again" in found.why


def said_last(relay: Relay) -> Any:
    """What the relay has heard of the switch."""
    message = relay._permits._interlock._last[-1]
    return None if message is None else message.value


def test_a_let_go_that_a_standby_heard_is_none_once_it_serves(bench: Bench, relay_here: Callable[..., Relay]) -> None:
    relay = relay_here(standing_by=True)
    assert wait_until(lambda: bool(relay._topics) and said_last(relay) is False, LONG_S)
    bench.pressed = True
    assert wait_until(lambda: said_last(relay) is True, LONG_S)
    relay.take_over(RelayFate.DIED)
    assert "let the switch go and press it again" in relay.permission().why
    bench.pressed = False
    assert wait_until(lambda: relay.permission().why == LET_GO, LONG_S), relay.permission().why
    bench.pressed = True
    assert wait_until(lambda: relay.permission().granted, LONG_S), relay.permission().why


def test_what_was_said_before_the_computer_slept_is_no_yes_after_it(
    bench: Bench, relay_here: Callable[..., Relay], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it sleeps, time.monotonic() stands still."""
    slept_s, clock_gettime = [0.0], time.clock_gettime
    monkeypatch.setattr(
        time, "clock_gettime", lambda which: clock_gettime(which) + slept_s[0] * (which == time.CLOCK_BOOTTIME)
    )
    relay = relay_here()
    assert wait_until(lambda: relay.permission().why == LET_GO, LONG_S), relay.permission().why
    bench.pressed = True
    assert wait_until(lambda: relay.permission().granted, LONG_S), relay.permission().why
    slept_s[0] = 3600.0
    assert not relay.permission().granted
    assert wait_until(lambda: "let the switch go and press" in relay.permission().why, LONG_S), relay.permission().why


def test_that_nobody_looks_on_is_noticed_however_soon_somebody_does_again() -> None:
    from mt_nodes.base.processes import Flag
    from mt_nodes.nodes import relay as module

    seen, ended = [], Flag()

    def permission() -> None:
        seen.append(relay.alone)
        ended.set()

    relay = SimpleNamespace(failure=None, alone=False, status=dict, permission=permission)
    executor = SimpleNamespace(spin_once=lambda timeout_sec: None)
    events = SimpleNamespace(tell=lambda event: False)
    module._spin(executor, relay, ended, events)  # type: ignore[arg-type]
    assert seen == [True]


@pytest.mark.long
def test_a_relay_that_is_killed_is_started_anew(bench: Bench, started: Callable[..., Inline]) -> None:
    inline = started()
    (relay,) = inline.of("nodes.relay")
    os.kill(relay, signal.SIGKILL)
    before = len(bench.heard)
    bench.next(lambda replaced: not replaced, 5)
    print(f"gap {bench.longest_gap_s(before - 1):.2f} s")
    assert inline.end()["restarts"]["relay"] == 1


def test_a_relay_whose_suite_is_killed_forwards_on_changes_nothing_and_is_no_second_ones_own(
    bench: Bench, started: Callable[..., Inline], tmp_path: Path
) -> None:
    bench.pressed = True  # from the beginning, which is no press
    inline = started("--arm")
    assert wait_until(lambda: "let the switch go" in inline.said, LONG_S), inline.said
    assert not bench.changed()
    inline.hold(bench)
    (relay,) = inline.of("nodes.relay")
    inline.process.kill()
    inline.process.wait()
    try:
        bench.next(lambda replaced: not replaced, 10)
        bench.all_in_order()
        again = Inline(place := tmp_path / "again", transforms=str(tmp_path / "transforms.yaml"))
        assert again.process.wait(LONG_S) == ExitCode.ISOLATION, "the stack would get everything twice"
        assert f"{TOPIC}: is published by /mt_relay_" in again.said and place.exists()
        bench.all_in_order()
    finally:
        os.kill(relay, signal.SIGTERM)
    assert wait_until(lambda: not command_of(relay), LONG_S), "it ends when it is told"


def test_what_was_said_before_a_relay_stood_still_is_no_yes_when_it_wakes(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    """The press waits in its queue; vehicle and operator have been silent for a while."""
    inline = started("--arm", **signals(FRESH_S))
    inline.hold(bench)
    bench.pressed = False
    bench.next(lambda replaced: not replaced, 5)
    (relay,) = inline.of("nodes.relay")
    os.kill(relay, signal.SIGSTOP)
    try:
        sent = len(bench.sent)
        bench.pressed = True
        assert wait_until(lambda: len(bench.sent) > sent + 3, LONG_S)
        bench.silent = True
        silent_from = len(bench.sent)
        assert wait_until(lambda: (len(bench.sent) - silent_from) * EVERY_S > 1.1 * FRESH_S, LONG_S)
    finally:
        os.kill(relay, signal.SIGCONT)
    first = len(bench.heard)
    bench.next(lambda replaced: not replaced, 15)
    assert not any(map(bench.replaced, range(first, len(bench.heard))))
    inline.end()


def test_a_press_after_the_switch_was_silent_changes_nothing_though_it_was_let_go_before(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    inline = started("--arm", **signals(FRESH_S))
    assert wait_until(lambda: "INPUT" not in inline.said and inline.said.strip().endswith(LET_GO), LONG_S), inline.said
    bench.operator_silent = True
    assert wait_until(lambda: "/dead_man: nothing was heard for" in inline.said, LONG_S), inline.said
    bench.pressed, bench.operator_silent = True, False
    assert wait_until(lambda: "let the switch go and press it again" in inline.said or bench.changed(), LONG_S)
    bench.next(lambda replaced: not replaced, 15)
    assert not bench.changed(), "the switch was not let go since it fell silent"
    inline.hold(bench)
    inline.end()
    bench.all_in_order()


@pytest.fixture(scope="module")
def shared(
    request: pytest.FixtureRequest, domains: tuple[int, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Bench, Inline]]:
    """A run with input that may be changed, for several tests: each leaves it as it may be used again.

    Its parameter, if it has one, says how often the LiDAR sends.
    """
    place = tmp_path_factory.mktemp("shared")
    with bench_in(domains[1], place, getattr(request, "param", EVERY_S)) as bench:
        inline = Inline(place, "--arm", domain=domains[1], transforms=str(place / "transforms.yaml"))
        try:
            yield bench, inline
        finally:
            inline.kill()
            print(inline.said)  # for whoever wonders why a test failed


#: Of tests that have the machine for themselves: twice as many clouds, and half as long to wait for some.
quick = pytest.mark.parametrize("shared", [EVERY_S / 2], indirect=True)


@quick
@pytest.mark.alone
def test_input_is_changed_only_while_the_switch_is_held_and_the_vehicle_is_not_engaged(
    shared: tuple[Bench, Inline],
) -> None:
    bench, inline = shared
    inline.hold(bench)
    assert wait_until(lambda: "INPUT IS CHANGED" in inline.said, LONG_S)
    for name, off in (("pressed", False), ("engaged", True)):
        setattr(bench, name, off)
        # What was held when the signal came, and the signal's own way.
        assert bench.next(lambda replaced: not replaced, 5) <= round(0.3 / bench.every_s)
        if name == "engaged":
            assert wait_until(lambda: "/engaged: data is True" in inline.said, LONG_S)
        setattr(bench, name, not off)
        if name == "engaged":
            bench.next(lambda replaced: not replaced, 5)
            inline.hold(bench)
        bench.next(lambda replaced: replaced)
    bench.all_in_order()


@quick
@pytest.mark.alone
def test_a_mutator_that_is_frozen_or_killed_costs_no_cloud_and_no_time(shared: tuple[Bench, Inline]) -> None:
    bench, inline = shared
    inline.hold(bench)
    (mutator,) = inline.of("inline_mutator")
    gaps_s = []
    for number in (signal.SIGSTOP, signal.SIGKILL):
        first = len(bench.heard)
        os.kill(mutator, number)
        bench.next(lambda replaced: not replaced, 5)
        gaps_s.append(bench.longest_gap_s(first))
        if number == signal.SIGSTOP:
            os.kill(mutator, signal.SIGCONT)
        bench.next(lambda replaced: replaced)
        (now,) = inline.of("inline_mutator")
        assert (now == mutator) == (number == signal.SIGSTOP)
    inline.killed["mutator"] += 1
    bench.all_in_order()
    # One frame, and what an original may be held; the rest is a busy machine's.
    assert max(gaps_s) < 2 * EVERY_S + HOLD_S + 0.2, gaps_s


def test_a_second_switch_that_is_stuck_does_not_hide_that_the_first_is_let_go(
    shared: tuple[Bench, Inline], domains: tuple[int, ...]
) -> None:
    from std_msgs.msg import Bool

    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    bench, inline = shared
    inline.hold(bench)
    context = SpinningContext(domains[1])
    try:
        node = context.add(plain_node, "stuck")
        stuck = node.create_publisher(Bool, "/dead_man", 1)
        node.create_timer(EVERY_S / 3, lambda: stuck.publish(Bool(data=True)))
        bench.next(lambda replaced: not replaced, 5)
        bench.pressed = False
        bench.next(lambda replaced: not replaced, 10)
        bench.pressed = True
        bench.next(lambda replaced: not replaced, 10)
    finally:
        context.close()
    # It has gone, and the switch was not let go since.
    bench.next(lambda replaced: not replaced, 10)
    assert "/dead_man: is published 2 times" in inline.said
    bench.all_in_order()


def test_a_suite_that_stands_still_lets_nothing_be_changed_and_holds_up_nobody(
    shared: tuple[Bench, Inline],
) -> None:
    bench, inline = shared
    inline.hold(bench)
    os.kill(inline.worker, signal.SIGSTOP)
    try:
        bench.next(lambda replaced: not replaced, 10)
    finally:
        os.kill(inline.worker, signal.SIGCONT)
    bench.next(lambda replaced: not replaced, 10)  # it reads again, and the switch was not let go since
    inline.hold(bench)
    bench.pressed = False
    bench.next(lambda replaced: not replaced, 5)
    bench.all_in_order()
    changed = bench.changed()
    assert wait_until(lambda: len(inline.changed()) >= len(changed), LONG_S)
    assert inline.changed()[: len(changed)] == changed


def test_a_raw_topic_that_is_published_otherwise_than_before_is_said_and_nothing_is_changed(
    shared: tuple[Bench, Inline], domains: tuple[int, ...]
) -> None:
    from sensor_msgs.msg import PointCloud2
    from std_msgs.msg import Bool

    from mt_nodes.nodes import qos
    from mt_nodes.nodes.spinning_context import SpinningContext, plain_node

    bench, inline = shared
    for kind, profile in ((PointCloud2, qos.LIVE_TAP), (Bool, qos.REPLAY)):
        inline.hold(bench)
        context = SpinningContext(domains[1])
        try:
            context.add(plain_node, "another").create_publisher(kind, RAW, profile)
            bench.next(lambda replaced: not replaced, 10)
        finally:
            context.close()
        bench.next(lambda replaced: not replaced, 10)  # it has gone, and the switch was not let go since
    assert f"{RAW}: is published with reliability BEST_EFFORT now, was RELIABLE; start anew" in inline.said
    assert f"{RAW}: is published as std_msgs/msg/Bool now, was sensor_msgs/msg/PointCloud2" in inline.said
    bench.all_in_order()


def test_the_summary_says_what_became_of_each_cloud_and_of_each_process(shared: tuple[Bench, Inline]) -> None:
    """The last of those that share a run: it is ended."""
    bench, inline = shared
    inline.hold(bench)
    summary = inline.end()
    bench.all_in_order()
    told = summary["topics"][TOPIC]
    changed = bench.changed()
    assert 0 <= told["replaced"] - len(changed) <= 2, "the last may be on their way"
    assert inline.changed()[: len(changed)] == changed
    assert summary["restarts"] == inline.killed and summary["takeovers"] == []
