# SPDX-License-Identifier: Apache-2.0
"""`mt inline` as a whole: processes, topics, an operator with a switch, and what may happen to the mutator."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inline_bench import (  # noqa: F401  (two are fixtures)
    EVERY_S,
    HOLD_S,
    LONG_S,
    RAW,
    SIGNALS,
    TOPIC,
    Bench,
    Inline,
    command_of,
    config,
    made_bench,
    started_inline,
)

from mt_nodes.errors import ExitCode, UsageError
from mt_nodes.processes import wait_until
from mt_nodes.vehicle.inline import inline_config


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"topics": []}, "topics: got none"),
        ({"topics": [{"raw": "/a", "topic": "/a"}]}, "got '/a'.*each once"),
        ({"topics": [{"raw": "a", "topic": "/b"}]}, "got 'a'.*begin with /"),
        ({"permits": []}, "permits: got none"),
        ({"permits": [{"topic": "/a", "type": "std_msgs/msg/Bool"}]}, r"permits\[0\].*expected one of both"),
        ({"dead_man": {}}, "dead_man: got topic ''"),
        ({"dead_man": SIGNALS["permits"][0]}, "a switch of its own"),
        ({"hold": 1.0}, "hold"),
    ],
)
def test_what_is_not_safe_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        inline_config(config(**change), "bench.yaml")


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


def test_input_is_changed_only_while_the_switch_is_held_and_the_vehicle_is_not_engaged(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    inline = started("--arm")
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    for name, off in (("pressed", False), ("engaged", True)):
        setattr(bench, name, off)
        # What was on its way when the signal came, and the signal's own way, are a cloud or two.
        assert bench.next(lambda replaced: not replaced, 5) <= 3
        setattr(bench, name, not off)
        if name == "engaged":
            bench.next(lambda replaced: not replaced, 5)
            bench.pressed = False
            bench.next(lambda replaced: not replaced, 3)
            bench.pressed = True
        bench.next(lambda replaced: replaced)
    summary = inline.end()
    bench.all_in_order()
    told = summary["topics"][TOPIC]
    changed = [stamp for number, (_, stamp, _) in enumerate(bench.heard) if bench.replaced(number)]
    assert 0 <= told["replaced"] - len(changed) <= 2, "the last may be on their way"
    record = [json.loads(line)["stamp_ns"] for line in (inline.out / "replaced.jsonl").read_text().splitlines()]
    assert record[: len(changed)] == changed
    assert "INPUT IS CHANGED" in inline.said and "/engaged: data is True" in inline.said


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_mutator_that_is_frozen_or_killed_costs_no_cloud_and_no_time(
    number: signal.Signals, bench: Bench, started: Callable[..., Inline]
) -> None:
    bench.pressed = True  # from the beginning, which is no press
    inline = started("--arm")
    bench.next(lambda replaced: not replaced)
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    (mutator,) = inline.of("inline_mutator")
    first = len(bench.heard)
    os.kill(mutator, number)
    bench.next(lambda replaced: not replaced, 5)
    gap_s = bench.longest_gap_s(first)
    if number == signal.SIGSTOP:
        os.kill(mutator, signal.SIGCONT)
    bench.next(lambda replaced: replaced)
    summary = inline.end()
    bench.all_in_order()
    # One frame, and what an original may be held; the rest is a busy machine's.
    assert gap_s < 2 * EVERY_S + HOLD_S + 0.2
    assert summary["restarts"] == ({} if number == signal.SIGSTOP else {"mutator": 1})


def test_what_is_no_replacement_or_comes_when_none_may_takes_no_place(
    bench: Bench, domains: tuple[int, ...], tmp_path: Path
) -> None:
    from mt_nodes.nodes.relay import Relay
    from mt_nodes.nodes.spinning import SpinningContext, quiet_node
    from mt_nodes.vehicle.offers import Offers

    context, made = SpinningContext(domains[0]), []

    def node(*, context: Any) -> Any:
        one = quiet_node("mt_relay_here", context=context)
        made.append(Relay(one, inline_config(config(hold_s=0.5), "bench"), True, tmp_path / "offers.sock"))
        return one

    context.add(node)
    (relay,) = made

    def counts() -> dict[str, Any]:
        return dict(relay.status()["topics"][TOPIC])

    offers = Offers(tmp_path / "offers.sock")
    try:
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
    finally:
        offers.close()
        relay.close()
        context.close()


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
    inline = started("--arm")
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    (relay,) = inline.of("nodes.relay")
    inline.process.kill()
    inline.process.wait()
    try:
        bench.next(lambda replaced: not replaced, 10)
        bench.all_in_order()
        again = Inline(place := tmp_path / "again", transforms=str(tmp_path / "transforms.yaml"))
        said, _ = again.process.communicate(timeout=LONG_S)
        assert again.process.returncode == ExitCode.ISOLATION, "the stack would get everything twice"
        assert f"{TOPIC}: is published by /mt_relay_" in said and place.exists()
        bench.all_in_order()
    finally:
        os.kill(relay, signal.SIGTERM)
    assert wait_until(lambda: not command_of(relay), LONG_S), "it ends when it is told"


def test_a_second_switch_that_is_stuck_does_not_hide_that_the_first_is_let_go(
    bench: Bench, started: Callable[..., Inline], domains: tuple[int, ...]
) -> None:
    from std_msgs.msg import Bool

    from mt_nodes.nodes.spinning import SpinningContext, plain_node

    inline = started("--arm")
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    context = SpinningContext(domains[0])
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
    inline.end()
    assert "/dead_man: is published 2 times" in inline.said
    bench.all_in_order()


def test_a_topic_that_somebody_else_publishes_is_refused(
    bench: Bench, started: Callable[..., Inline], domains: tuple[int, ...]
) -> None:
    from sensor_msgs.msg import PointCloud2

    from mt_nodes.nodes.spinning import SpinningContext, plain_node

    context = SpinningContext(domains[0])
    try:
        node = context.add(plain_node, "driver")
        node.create_publisher(PointCloud2, TOPIC, 1)
        inline = started("--arm")
        said, _ = inline.process.communicate(timeout=LONG_S)
        assert inline.process.returncode == ExitCode.ISOLATION
        assert f"{TOPIC}: is published by /driver" in said
    finally:
        context.close()


def test_a_suite_that_stands_still_lets_nothing_be_changed_and_holds_up_nobody(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    inline = started("--arm")
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    os.kill(inline.process.pid, signal.SIGSTOP)
    try:
        bench.next(lambda replaced: not replaced, 10)
    finally:
        os.kill(inline.process.pid, signal.SIGCONT)
    bench.next(lambda replaced: not replaced, 10)  # it reads again, and the switch was not let go since
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
    inline.end()
    bench.all_in_order()
    changed = [stamp for number, (_, stamp, _) in enumerate(bench.heard) if bench.replaced(number)]
    record = [json.loads(line)["stamp_ns"] for line in (inline.out / "replaced.jsonl").read_text().splitlines()]
    assert record[: len(changed)] == changed


def test_what_was_said_before_a_relay_stood_still_is_no_yes_when_it_wakes(
    bench: Bench, started: Callable[..., Inline]
) -> None:
    """The press waits in its queue; vehicle and operator have been silent for a while."""
    inline = started("--arm", frozen_s=10.0)
    assert wait_until(lambda: bool(inline.of("inline_mutator")), LONG_S)
    bench.pressed = True
    bench.next(lambda replaced: not replaced)
    bench.pressed = False
    bench.next(lambda replaced: not replaced)
    bench.pressed = True
    bench.next(lambda replaced: replaced)
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
        assert wait_until(lambda: len(bench.sent) > silent_from + 15, LONG_S), "longer than fresh_s"
    finally:
        os.kill(relay, signal.SIGCONT)
    first = len(bench.heard)
    bench.next(lambda replaced: not replaced, 15)
    assert not any(map(bench.replaced, range(first, len(bench.heard))))
    inline.end()


def test_a_raw_topic_that_is_published_otherwise_than_before_is_said_and_nothing_is_changed(
    bench: Bench, started: Callable[..., Inline], domains: tuple[int, ...]
) -> None:
    from sensor_msgs.msg import PointCloud2
    from std_msgs.msg import Bool

    from mt_nodes.nodes import qos
    from mt_nodes.nodes.spinning import SpinningContext, plain_node

    inline = started("--arm")
    for kind, profile in ((PointCloud2, qos.LIVE_TAP), (Bool, qos.REPLAY)):
        bench.pressed = False
        bench.next(lambda replaced: not replaced)
        bench.pressed = True
        bench.next(lambda replaced: replaced)
        context = SpinningContext(domains[0])
        try:
            context.add(plain_node, "another").create_publisher(kind, RAW, profile)
            bench.next(lambda replaced: not replaced, 10)
        finally:
            context.close()
        bench.next(lambda replaced: not replaced, 10)  # it has gone, and the switch was not let go since
    inline.end()
    assert f"{RAW}: is published with reliability BEST_EFFORT now, was RELIABLE; start anew" in inline.said
    assert f"{RAW}: is published as std_msgs/msg/Bool now, was sensor_msgs/msg/PointCloud2" in inline.said
    bench.all_in_order()
