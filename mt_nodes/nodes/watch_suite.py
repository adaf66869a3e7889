# SPDX-License-Identifier: Apache-2.0
"""The suite process that only watches: it hears a live system, or reads a bag with its outputs, and publishes nothing.

Its events are ``{"waiting_for": …}``, ``{"done": …, "violated": …}`` and at the end ``{"end": …}``.
"""

from __future__ import annotations

import math
import queue
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from rclpy.node import Node

from mt_nodes.base.environment import TAP_ENCLAVE, clean_shared_memory, enclave
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.base.processes import wait_until
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.outputs import Detections, ImageBoxes
from mt_nodes.data.stack_topics import DIAGNOSTICS, OutputTopic
from mt_nodes.nodes import message_classes, qos
from mt_nodes.nodes.adapter_choice import adapter_of
from mt_nodes.nodes.live_taps import LOOK_EVERY_S, LiveTaps, LiveTopics
from mt_nodes.nodes.output_listener import OutputListener, ReceivedOutput
from mt_nodes.nodes.spinning_context import SpinningContext, quiet_node
from mt_nodes.nodes.suite_process import STATUS_EVERY_S, ProgressEvents, run_suite
from mt_nodes.relations.stream_checks.base import WatchedInstant
from mt_nodes.runs.replay.execute import play_to_end
from mt_nodes.runs.watch.answer_join import AnswerJoin
from mt_nodes.runs.watch.watch_run import WatchRecord, WatchRun, bag_source, watch_callable
from mt_nodes.stacks.message_adapter import Adapter

#: As of a run that tests: the same node, and so the same permissions (docs/security.md).
WATCH_NODE = "mt_tap"
#: Messages that wait to be looked at; more of them are lost, and counted.
_MOST_QUEUED = 64
#: An answer that is this late is none, whatever the stack's deadline: until then its input is kept in memory.
_LONGEST_WAIT_S = 2.0
_POLL_S = 0.1


def main(args: list[str] | None = None) -> None:
    """Run to the end and exit with the run's exit code."""
    run_suite("watch_suite", lambda out, events: _carry_out(WatchRun.load(out), events), args)


def _carry_out(run: WatchRun, events: ProgressEvents) -> dict[str, Any]:
    progress = _Progress(events)
    play = {"live": _live, "recorded": _recorded, "inprocess": _called}[run.request.source]
    with WatchRecord(run) as record:
        notes: dict[str, Any] = {}
        ended = play_to_end(run.out, lambda ending: play(run, record, progress, ending, notes), lambda error: None)
        return record.finish(**ended, **notes)


class _Progress:
    """Tells how a run goes, now and then."""

    def __init__(self, events: ProgressEvents) -> None:
        self._events, self._told_s = events, -math.inf

    def counts(self, frames: int, violated: int) -> None:
        self.tell({"done": frames, "violated": violated})

    def tell(self, event: Mapping[str, Any]) -> None:
        if (now_s := process_time_s()) - self._told_s >= STATUS_EVERY_S:
            self._told_s = now_s
            self._events.send(event)


def _own_outputs(run: WatchRun) -> dict[str, OutputTopic]:
    """Return the stack's outputs that are watched, by role."""
    return {role: row for role, row in run.stack.outputs.items() if role != DIAGNOSTICS}


def _join(run: WatchRun) -> AnswerJoin:
    roles, cameras = run.stack.answers, run.request.watch.cameras
    return AnswerJoin({*roles, *cameras}, min(run.stack.deadline_s, _LONGEST_WAIT_S), run.stack.match == "arrival")


def _called(
    run: WatchRun, record: WatchRecord, progress: _Progress, ending: ExitStack, notes: Any
) -> Callable[[], None]:
    return lambda: watch_callable(run, record, progress.counts)


class _Queue:
    """What is heard, for the thread that watches; the thread that hears never waits."""

    def __init__(self) -> None:
        self._items: queue.Queue[tuple[str, Any]] = queue.Queue(_MOST_QUEUED)
        self.lost = self.unreadable = 0
        self.wrong = ""

    def received(self, bundle: Bundle, wrong: str = "") -> None:
        """Take an instant in."""
        if wrong:
            self.unreadable, self.wrong = self.unreadable + 1, wrong
            return
        self._put(("", bundle))

    def passes(self, wire: Wire) -> None:
        """Nothing to do: nothing is handed on."""

    def put(self, role: str, stamp_ns: int | None, payload: ReceivedOutput) -> None:
        """Take an output in."""
        self._put((role, (stamp_ns, payload.part)))

    def _put(self, item: tuple[str, Any]) -> None:
        try:
            self._items.put_nowait(item)
        except queue.Full:
            self.lost += 1

    def next(self) -> tuple[str, Any] | None:
        """Return what was heard next; None if nothing is for a while."""
        try:
            return self._items.get(timeout=_POLL_S)
        except queue.Empty:
            return None


class _Renamed:
    """Puts the boxes of a further camera into the queue, under its topic."""

    def __init__(self, heard: _Queue, topic: str) -> None:
        self._heard, self._topic = heard, topic

    def put(self, role: str, stamp_ns: int | None, payload: ReceivedOutput) -> None:
        """Take an output in."""
        self._heard.put(self._topic, stamp_ns, payload)


def _live(
    run: WatchRun, record: WatchRecord, progress: _Progress, ending: ExitStack, notes: dict[str, Any]
) -> Callable[[], None]:
    """Join the live domain and wait for its topics; return what watches them."""
    clean_shared_memory()
    process_time_s.start_watching()
    with enclave(TAP_ENCLAVE):
        live = SpinningContext(run.request.live_domain)
    ending.callback(live.close)
    node: Node = live.add(quiet_node, WATCH_NODE)
    topics = LiveTopics(node, run.stack, "false")
    began_s = process_time_s()

    def over() -> bool:
        frames, most = record.watch.counts["frames"], run.request.limit
        return 0.0 < run.request.duration_s < process_time_s() - began_s or (most is not None and frames >= most)

    def known() -> bool:
        if not (missing := topics.missing()):
            return True
        progress.tell({"waiting_for": f"a publisher of {', '.join(missing)} in domain {run.request.live_domain}"})
        return over()

    wait_until(known, math.inf, LOOK_EVERY_S)
    heard = _Queue()
    listeners = [OutputListener(node, _own_outputs(run), str, heard, qos.LIVE_BURSTS, **run.stack.reading)]
    for topic, kind in run.request.watch.cameras.items():
        boxes = {"boxes": OutputTopic(topic, kind)}
        listeners.append(OutputListener(node, boxes, str, _Renamed(heard, topic), qos.LIVE_BURSTS, **run.stack.reading))
    taps = LiveTaps(node, run.stack, {}, run.static_transforms, heard)

    def failure() -> str:
        found = (*(listener.failure for listener in listeners), taps.failure, live.failure)
        return next(filter(None, found), "")

    def watch() -> None:
        try:
            _watch_queue(run, record, progress, heard, over, failure)
        finally:
            notes["lost_messages"] = heard.lost
        if heard.unreadable:
            raise InfrastructureError(f"{heard.unreadable} inputs cannot be read, the last one: {heard.wrong}")

    return watch


def _watch_queue(
    run: WatchRun,
    record: WatchRecord,
    progress: _Progress,
    heard: _Queue,
    over: Callable[[], bool],
    failure: Callable[[], str],
) -> None:
    join, input_s = _join(run), process_time_s()
    try:
        while not over():
            if failure():
                raise InfrastructureError(failure())
            item = heard.next()
            if item is None:
                silent_s = process_time_s() - input_s
                if silent_s > run.request.gap_s:
                    progress.tell({"waiting_for": f"input, for {silent_s:.0f} s"})
                continue
            role, what = item
            if not role:
                input_s = process_time_s()
            _show(record, join.output(role, *what) if role else join.input(what), progress)
    finally:
        _show(record, join.rest(), progress)


def _show(record: WatchRecord, instants: Iterable[WatchedInstant], progress: _Progress) -> None:
    for instant in instants:
        record.watch.take(instant)
        progress.counts(record.watch.counts["frames"], record.watch.counts["events"])


def _recorded(
    run: WatchRun, record: WatchRecord, progress: _Progress, ending: ExitStack, notes: Any
) -> Callable[[], None]:
    """Return what watches the outputs that bags have recorded. Raises UsageError: a bag lacks one."""
    readers = _readers(run)
    for bag in run.request.bags:
        with bag_source(run, bag) as source:
            lacking = [topic for topic in readers if topic not in source.info]
        if lacking:
            raise UsageError(
                f"{bag}: has no outputs on {', '.join(lacking)}; expected a bag with the stack's outputs, or "
                "--transport inprocess, which calls the stack with the bag's input"
            )

    def watch() -> None:
        for bag in run.request.bags:
            _watch_bag(run, record, progress, bag, readers)

    return watch


def _readers(run: WatchRun) -> dict[str, tuple[str, Adapter]]:
    """Return role and adapter of each recorded output, by topic. Raises UsageError: one is told on several topics."""
    outputs = _own_outputs(run)
    if several := [role for role, row in outputs.items() if row.beside]:
        raise UsageError(f"outputs.{several[0]}: is told on several topics, which can be watched live only")
    own = {row.topic: (role, adapter_of(role, row)) for role, row in outputs.items()}
    cameras = run.request.watch.cameras.items()
    return own | {topic: (topic, adapter_of("boxes", OutputTopic(topic, kind))) for topic, kind in cameras}


def _watch_bag(
    run: WatchRun, record: WatchRecord, progress: _Progress, bag: str, readers: Mapping[str, tuple[str, Adapter]]
) -> None:
    join = _join(run)
    with bag_source(run, bag) as source:
        for bundle in source:
            for wire in bundle.wires:
                if wire.topic == source.lead:
                    _show(record, join.input(bundle), progress)
                elif wire.topic in readers:
                    _show(record, join.output(*_decoded(run, *readers[wire.topic], wire)), progress)
        _show(record, join.rest(), progress)


def _decoded(run: WatchRun, role: str, adapter: Adapter, wire: Wire) -> tuple[str, int | None, Any]:
    """Return role, stamp and content of a recorded output."""
    try:
        message = message_classes.decode(adapter.type, wire.cdr)
        stamp_ns, part = adapter.stamp_ns(message), adapter.decode(message)
    except ValueError as error:
        raise InfrastructureError(f"cannot read {adapter.type} on {wire.topic}: {error}") from error
    classes = run.stack.reading["classes"]
    return role, stamp_ns, part.renamed(classes) if classes and isinstance(part, (Detections, ImageBoxes)) else part


if __name__ == "__main__":
    main()
