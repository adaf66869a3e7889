# SPDX-License-Identifier: Apache-2.0
"""One run that only watches, checked; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base import plugins
from mt_nodes.base.environment import user_domain
from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.base.message_packages import refuse_missing
from mt_nodes.base.params import plain
from mt_nodes.base.plugins import name_of
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.engine.callable_arm import CallableArm
from mt_nodes.engine.finish import write_summary
from mt_nodes.engine.summary.watch_sums import CONDITION, FILE, SHAPES, watch_summary
from mt_nodes.relations.stream_checks.base import StreamCheck, WatchedInstant
from mt_nodes.runs.live.config import NOT_GIVEN
from mt_nodes.runs.run_directory import StackRun
from mt_nodes.runs.watch.stream_watch import StreamWatch
from mt_nodes.runs.watch.watch_request import SOURCES, WatchRequest, named_checks
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack, refuse_world_inputs


@dataclass(frozen=True)
class WatchedRelation:
    """A check of one stream as a judge of a run."""

    check: StreamCheck

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        name = name_of(type(self.check))
        return {"id": name, "because": self.check.because, "parameters": plain(self.check)}


@dataclass(frozen=True, eq=False)
class WatchRun(StackRun[WatchRequest]):
    """Everything that a run needs which only watches.

    ``checks``: by name. ``left_out``: those that do not fit the stack, and why.
    """

    checks: Mapping[str, StreamCheck]
    left_out: Mapping[str, str] = field(default_factory=dict)

    COMMAND, KEY, REQUEST = "mt live --watch-only", "watch", WatchRequest

    @classmethod
    def make(cls, request: WatchRequest, out: Path) -> WatchRun:
        """Load and check what is asked for. Raises UsageError: saying what to write instead."""
        plugins.add_directories(map(Path, request.plugins))
        if request.source == "live" and request.live_domain == NOT_GIVEN:
            request = dataclasses.replace(request, live_domain=user_domain(os.environ))
        stack = with_faults(load_stack(request.stack), request.faults)
        refuse_world_inputs(stack)
        assert request.source in SOURCES
        if request.source == "inprocess" and (not stack.callable or request.watch.cameras):
            raise UsageError(f"stack '{stack.name}': --transport inprocess needs a callable, and no watch.cameras")
        if request.transforms:
            load_transforms(Path(request.transforms))
        checks, left_out = named_checks(request.watch, stack)
        return cls(request, out, stack, checks, left_out)

    def refuse_impossible(self) -> None:
        """Refuse messages whose packages are not installed: a bag brings its own definitions, topics do not."""
        if self.request.source != "inprocess":
            refuse_missing({**self.stack.message_types, **self.request.watch.cameras}, f"stack '{self.stack.name}'")

    @property
    def judges(self) -> Sequence[WatchedRelation]:
        """The checks."""
        return [WatchedRelation(check) for check in self.checks.values()]

    @property
    def static_transforms(self) -> TransformTree:
        """Transforms of the user's file."""
        return load_transforms(Path(self.request.transforms)) if self.request.transforms else TransformTree()

    @property
    def topics_of_sources(self) -> Mapping[str, Any]:
        """Where input comes from -> role -> topic."""
        return dict.fromkeys(self.request.bags or ("live",), self.stack.topics)

    @property
    def more_of_record(self) -> dict[str, Any]:
        """What was left out, and why."""
        return {"left_out": dict(self.left_out)} if self.left_out else {}

    @property
    def condition(self) -> dict[str, Any]:
        """What the journal begins with."""
        settings, request = self.request.watch, self.request
        relations = [
            {
                **{"name": name, "because": check.because, "parameters": plain(check)},
                "tolerated_per_h": settings.tolerated_per_h.get(name),
            }
            for name, check in self.checks.items()
        ]
        return {
            **{"schema": 1, "type": CONDITION, "stack": self.stack.name, "faults": list(request.faults)},
            **{"source": request.source, "bags": list(request.bags), "min_frames": settings.min_frames},
            **{"event_gap_s": settings.event_gap_s, "relations": relations},
            "left_out": dict(self.left_out),
        }


class WatchRecord:
    """Journal and summary of a run in progress; a context manager."""

    def __init__(self, run: WatchRun) -> None:
        if (run.out / FILE).exists():
            raise UsageError(
                f"{run.out}: holds a run that watched; a run that only watches is not resumed, use a new --out"
            )
        self._run, self._file = run, LineFile(run.out / FILE)
        self._file.append(run.condition)
        self.watch = StreamWatch(run.checks, run.request.watch, run.request.gap_s, self._file.append)
        self._began = time.monotonic(), time.process_time()

    def __enter__(self) -> WatchRecord:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def finish(self, **end: Any) -> dict[str, Any]:
        """Write the rest of the journal and ``summary.json``; return the summary. ``end``: how the run ended."""
        self.watch.record()
        wall_s, cpu_s = (
            now - then for now, then in zip((time.monotonic(), time.process_time()), self._began, strict=True)
        )
        look_ms = np.array(self.watch.look_ms) if self.watch.look_ms else np.zeros(1)
        quantiles = {name: round(float(np.quantile(look_ms, q)), 3) for name, q in (("p50", 0.5), ("p99", 0.99))}
        cost = {"wall_s": round(wall_s, 3), "cpu_s": round(cpu_s, 3), "look_ms": quantiles}
        summary = watch_summary(read_lines(self._run.out / FILE, SHAPES), cost=cost, **end)
        write_summary(self._run.out, summary)
        return summary


def bag_source(run: WatchRun, bag: str) -> BagSource:
    """Open a bag whose bundles a run watches."""
    request, required = run.request, dict(run.stack.topics)
    transforms = run.static_transforms if request.transforms else None
    return BagSource(Path(bag), dict(request.topics), transforms, limit=request.limit, require=required)


def watch_callable(run: WatchRun, record: WatchRecord, show: Callable[[int, int], None]) -> None:
    """Call the stack with each bundle of each bag, and watch what it answers. Raises MtError: it died."""
    for bag in run.request.bags:
        with ExitStack() as ending:
            source = ending.enter_context(bag_source(run, bag))
            recorded = {
                t: own for role, own_topics in run.stack.topics.items() for t, own in _paired(source, role, own_topics)
            }
            arm = CallableArm("source", run.stack, recorded, run.out / "console.log", alone=True)
            ending.callback(arm.stop)
            arm.start()
            arm.ready()
            arm.begin_episode()
            for bundle in source:
                answer = arm.wait(arm.send(bundle, frozenset()))
                record.watch.take(WatchedInstant(bundle, answer.output))
                show(record.watch.counts["frames"], record.watch.counts["events"])


def _paired(source: BagSource, role: str, own: Sequence[str]) -> Iterator[tuple[str, str]]:
    yield from zip(source.roles.get(role, ()), own, strict=False)
