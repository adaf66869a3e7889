# SPDX-License-Identifier: Apache-2.0
"""A relay that dies, or stands still, is followed by one that stood by: nothing lost, nothing twice, hardly a pause."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from busy_machine import waited_s
from hypothesis import example, given
from hypothesis import strategies as st
from inline_bench import (  # noqa: F401  (two are fixtures)
    DEPTH,
    EVERY_S,
    LONG_S,
    RAW,
    STAMP_NS,
    TOPIC,
    Bench,
    Inline,
    command_of,
    config,
    made_bench,
    started_inline,
)

from mt_nodes.base.process_tree import children_of
from mt_nodes.base.processes import is_stopped, wait_until
from mt_nodes.data.cdr import codec
from mt_nodes.runs.vehicle.baton import Baton, Phase
from mt_nodes.runs.vehicle.inline import Between, InlineConfig, inline_config
from mt_nodes.runs.vehicle.relay_process import CONFIG, RelayProcess

FROZEN_S = InlineConfig().frozen_s


def relays(inline: Inline) -> list[int]:
    """The relay that serves, then its standby: the one was started before the other."""
    words = {pid: command_of(pid).split("\0") for pid in children_of(inline.worker)}
    found = [pid for pid, row in words.items() if {"mt_nodes.nodes.relay", "mt_nodes.nodes.standby_relay"} & set(row)]
    return sorted(found, key=lambda pid: int(words[pid][words[pid].index("--number") + 1]))


def gone(pid: int) -> bool:
    return wait_until(lambda: not command_of(pid), LONG_S)


def standing_by(bench: Bench, inline: Inline, number: int) -> list[int]:
    """Wait until the relay of this number stands by, and the stack knows it; return who serves and who stands by."""
    assert wait_until(lambda: number in bench.relays() and len(relays(inline)) == 2, LONG_S), bench.relays()
    bench.next(lambda replaced: not replaced, 10)
    return relays(inline)


#: Of tests that have the machine for themselves: twice as many clouds, and half as long to wait for some.
quick = pytest.mark.parametrize("bench", [EVERY_S / 2], indirect=True)


@quick
@pytest.mark.alone
def test_a_standby_takes_over_without_loss_within_a_frame_and_changes_nothing(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    """The first is killed, then the one that took over stands still: it is followed in its turn."""
    inline = started("--arm", frozen_s=FROZEN_S)
    rounds = ((signal.SIGKILL, "died", 0.0), (signal.SIGSTOP, "frozen", FROZEN_S))
    for standby, (number, _, limit_s) in enumerate(rounds, start=2):
        first, second = standing_by(bench, inline, standby)
        inline.hold(bench)
        before, machine_s = len(bench.heard), waited_s(second)
        os.kill(first, number)
        assert gone(first), "it is dead before another publishes"
        bench.next(lambda replaced: not replaced, 5)
        gap_s, machine_s, offered = bench.longest_gap_s(before - 1), waited_s(second) - machine_s, offers(inline)
        print(f"{number.name}: {gap_s:.3f} s from one cloud to the next, {machine_s:.3f} s of waiting for a processor")
        assert gap_s < limit_s + 2 * EVERY_S + 0.1
        # The mutator offers again, to whoever took over; the switch is still held, and was not let go since.
        assert wait_until(lambda count=offered: offers(inline) > count + 5, LONG_S)
        on_the_way = round(2 * EVERY_S / bench.every_s)
        assert not any(map(bench.replaced, range(before + on_the_way, len(bench.heard))))
    summary = inline.end()
    takeovers = summary["takeovers"]
    # A relay that a busy machine leaves without processor time for so long is followed like one that stands still, and
    # may be killed while it sends: then that message is in doubt, and nothing else may be missing.
    starved = len(takeovers) - len(rounds)
    assert starved in (0, 1, 2), takeovers
    assert [row["why"] for row in takeovers] == ["died", *["frozen"] * (starved + 1)]
    in_doubt = sum(row["in_doubt"] for row in takeovers)
    assert in_doubt <= starved, "whoever is killed here does not send"
    bench.all_in_order(in_doubt)
    assert summary["restarts"]["relay"] == len(takeovers) and "standby" not in summary["restarts"]
    assert "let the switch go" in inline.said and "no standby relay yet" in inline.said


def offers(inline: Inline) -> int:
    """So many times the mutator has offered something."""
    return (inline.out / "offered.jsonl").read_text().count('"sha256"')


class Node:
    """In place of a ROS node: what is published is written down."""

    def __init__(self, published: list[int]) -> None:
        self._published = published

    def create_publisher(self, *_: object) -> Node:
        return self

    def publish(self, data: bytes) -> None:
        self._published.append(int(data))


def topic_of(published: list[int], baton: Baton, kind: type[Node] = Node) -> Any:
    from mt_nodes.nodes import qos
    from mt_nodes.nodes.relay_topic import RelayTopic

    told = SimpleNamespace(topic_type="std_msgs/msg/Bool", qos_profile=promising(qos.REPLAY))
    config = InlineConfig(topics=(Between("/raw", "/topic"),))
    return RelayTopic(kind(published), config, 0, told, baton, lambda: True)  # type: ignore[arg-type]


def test_a_relay_that_has_only_begun_is_not_behind_and_one_that_never_begins_is(baton: Baton) -> None:
    """A standby may hear the sensor at once; the first waits until it knows that nobody else publishes."""
    from mt_nodes.nodes.relay_topic import START_S

    standby, now_s = topic_of([], baton), time.monotonic()
    assert standby.behind_s() == 0.0
    standby.take(1, b"1", now_s - 1.0, False)
    assert standby.behind_s() < 0.0
    baton.claim(0, 1)
    standby.take(2, b"2", now_s - 0.7, False)
    assert standby.behind_s() >= 0.7, "it has begun, and has left one out"
    never = topic_of([], second := Baton.create(1, DEPTH))
    never.take(1, b"1", now_s - 5.0, False)
    assert never.behind_s() >= 5.0 - START_S
    os.close(second.descriptor)


def promising(profile: Any) -> Any:
    from rclpy.duration import Duration

    whole = copy(profile)
    whole.deadline = whole.lifespan = whole.liveliness_lease_duration = Duration(seconds=1.0)
    return whole


@given(st.lists(st.sampled_from("ab"), max_size=40), st.integers(0, 40))
@example(["a"] * 40, 40)  # the second has not even begun to take in what waits for it
def test_whichever_of_two_relays_is_ahead_when_one_dies_each_message_is_sent_once(order: list[str], end: int) -> None:
    """Both hear the same messages, each in its own time; after so many events the first is dead."""
    baton, published = Baton.create(1, depth=40), []
    first, second = topic_of(published, baton), topic_of(published, baton)
    first.relieve()
    heard = {"a": 0, "b": 0}

    def hear(who: str) -> None:
        heard[who] += 1
        (first if who == "a" else second).take(heard[who], b"%d" % heard[who], 0.0, replaceable=False)

    for who in order[:end]:
        hear(who)
    assert published == list(range(1, heard["a"] + 1)), "the second keeps silent"
    assert second.relieve() is False
    for _ in range(max(0, heard["a"] - heard["b"]) + 3):
        hear("b")
    assert published == list(range(1, heard["b"] + 1))
    os.close(baton.descriptor)


class Sent(Node):
    """As above, of messages that bear a stamp: the number of each."""

    def publish(self, data: bytes) -> None:
        self._published.append(codec.header_stamp_ns(data) or 0)


def stamped(number: int, what: bytes = b"original") -> bytes:
    return bytes([0, 1, 0, 0]) + bytes(4) + number.to_bytes(4, "little") + what


EVENTS = st.tuples(st.sampled_from(["first hears", "second hears", "replacement", "due"]), st.booleans())


@given(st.lists(EVENTS, max_size=60))
@example([("first hears", True)] * 3 + [("second hears", True), ("replacement", True)])
def test_what_a_relay_held_when_it_died_is_sent_once_by_the_other(events: list[tuple[str, bool]]) -> None:
    """Some wait in the line of the first for what may take their place, some of those have got it."""
    baton, published = Baton.create(1, depth=40), []
    first, second = topic_of(published, baton, Sent), topic_of(published, baton, Sent)
    first.relieve()
    heard, now_s = {first: 0, second: 0}, 0.0
    for what, flag in events:
        now_s += 0.01
        one = first if what == "first hears" else second
        if what.endswith("hears"):
            heard[one] += 1
            one.take(heard[one], stamped(heard[one]), now_s, replaceable=flag)
        elif what == "replacement":
            number = max(1, heard[first] - flag)
            first.line.replacement(number, stamped(number, b"other"), now_s)
        else:
            first.line.release_due(now_s)
        assert published == list(range(1, len(published) + 1)), "the second keeps silent"
    assert second.relieve() is False
    while heard[second] <= heard[first]:
        heard[second] += 1
        second.take(heard[second], stamped(heard[second]), now_s, replaceable=False)
    assert published == list(range(1, heard[second] + 1))
    os.close(baton.descriptor)


def test_a_standby_knows_how_long_the_other_leaves_out_what_came() -> None:
    from mt_nodes.nodes.relay_topic import START_S

    baton = Baton.create(1)
    second = topic_of([], baton)
    assert second.behind_s() == 0.0
    now_s = time.monotonic()
    for number, came_s in ((1, now_s - 5.0), (2, now_s - 2.0)):
        second.take(number, b"%d" % number, came_s, replaceable=False)
    assert 5.0 - START_S <= second.behind_s() < 5.0 + LONG_S
    baton.claim(0, 1)
    assert 2.0 <= second.behind_s() < 2.0 + LONG_S
    baton.claim(0, 2)
    assert second.behind_s() == 0.0
    os.close(baton.descriptor)


def test_a_relay_that_died_while_it_sent_leaves_a_message_in_doubt_that_is_not_sent_again() -> None:
    baton, published = Baton.create(1), []
    second = topic_of(published, baton)
    for number in (1, 2, 3):
        second.take(number, b"%d" % number, 0.0, replaceable=False)
    baton.claim(0, 2)
    assert second.relieve() is True
    assert published == [3] and second.relieve() is False
    os.close(baton.descriptor)


class LoneRelay:
    """A relay without a suite: it is the test that started it; what it tells is kept."""

    def __init__(
        self, ending: ExitStack, place: Path, baton: Baton, number: int, after: LoneRelay | None = None, **more: Any
    ) -> None:
        told = config(frozen_s=2 * FROZEN_S, **more)
        (place / CONFIG).write_text(yaml.safe_dump(told))
        before = None if after is None else after.process
        self.process = RelayProcess(inline_config(told, "bench"), place, False, baton, number, before)
        ending.callback(self.process.kill)
        self._told: list[dict[str, Any]] = []
        assert wait_until(lambda: bool(self.told()), LONG_S), (place / "relay.log").read_text()

    def told(self) -> list[dict[str, Any]]:
        """All that it has told so far. It tells nothing to who does not read for a while: read while you wait."""
        self._told += self.process.events()
        return self._told

    def takeovers(self) -> list[Any]:
        return [event["took_over"] for event in self.told() if "took_over" in event]


@pytest.fixture
def baton() -> Iterator[Baton]:
    one = Baton.create(1, DEPTH)
    yield one
    os.close(one.descriptor)


def test_a_relay_that_lives_but_does_not_hear_the_sensor_is_killed_and_all_that_it_left_out_is_sent(
    bench: Bench, tmp_path: Path, ending: ExitStack, baton: Baton
) -> None:
    """The first listens to another raw topic: it gives its signs of life, and has nothing to send."""
    deaf = LoneRelay(ending, tmp_path, baton, 1, topics=[{"raw": f"{RAW}/elsewhere", "topic": TOPIC}])
    assert wait_until(lambda: baton.phase is Phase.SERVING, LONG_S) and baton.owner == deaf.process.pid
    second = LoneRelay(ending, tmp_path, baton, 2, after=deaf)
    assert wait_until(lambda: 2 in bench.relays(), LONG_S)
    sent = len(bench.sent)
    assert wait_until(lambda: bool(second.takeovers()) and len(bench.heard) > 10, LONG_S)
    assert deaf.process.code == -signal.SIGKILL and baton.owner == second.process.pid
    assert second.takeovers()[0] == {"why": "deaf", "in_doubt": 0}
    bench.all_in_order()
    assert bench.heard[0][1] <= (sent + 2) * STAMP_NS, "what was heard while the other left it out is not lost"


def test_a_relay_that_is_told_to_end_takes_its_standby_with_it(
    bench: Bench, tmp_path: Path, ending: ExitStack, baton: Baton
) -> None:
    first = LoneRelay(ending, tmp_path, baton, 1)
    second = LoneRelay(ending, tmp_path, baton, 2, after=first)
    assert wait_until(lambda: 2 in bench.relays(), LONG_S)
    os.kill(first.process.pid, signal.SIGTERM)
    assert wait_until(lambda: None not in (first.process.code, second.process.code), LONG_S)
    assert (first.process.code, second.process.code) == (0, 0)


@quick
@pytest.mark.alone
def test_a_standby_that_is_killed_is_followed_by_another_and_one_that_stands_still_takes_nothing_over(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    """Also when it wakes. One that tells nothing for 5 s is replaced, too, which a busy machine can make it."""
    inline = started()
    first, second = standing_by(bench, inline, 2)
    os.kill(second, signal.SIGKILL)
    serving, third = standing_by(bench, inline, 3)
    assert serving == first
    bench.all_in_order()
    os.kill(third, signal.SIGSTOP)
    assert wait_until(lambda: is_stopped(third), LONG_S)
    os.kill(first, signal.SIGKILL)
    assert gone(third), "it might wake up and publish"
    standing_by(bench, inline, 5)
    stamps = [stamp_ns for _, stamp_ns, _ in bench.heard]
    assert stamps == sorted(set(stamps)), "nothing twice"
    summary = inline.end()
    # The mutator ends with the relay, and as often again as it is back before the next relay is.
    assert summary["restarts"].pop("mutator") >= 1
    assert summary["restarts"] == {"relay": 1, "standby": 1} and summary["takeovers"] == []


def test_a_standby_takes_over_without_the_suite_and_ends_when_it_is_told(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    inline = started("--arm")
    first, second = standing_by(bench, inline, 2)
    inline.process.kill()
    inline.process.wait()
    try:
        os.kill(first, signal.SIGKILL)
        bench.pressed = True
        bench.next(lambda replaced: not replaced, 10)
        bench.all_in_order()
    finally:
        os.kill(second, signal.SIGTERM)
    assert gone(second)
