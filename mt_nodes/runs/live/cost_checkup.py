# SPDX-License-Identifier: Apache-2.0
"""Holds what the relations of a configuration take, on what a live rig publishes, against what this computer has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import keep_freed_memory
from mt_nodes.base.errors import MtError, NotApplicable
from mt_nodes.data.cdr import codec
from mt_nodes.data.intensity.sensor_reading import SensorBook
from mt_nodes.data.messages import Wire
from mt_nodes.runs.doctor import Finding
from mt_nodes.runs.live.config import AUTO
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.rig_cost import FollowupCost, RigLoad, bundle_of, followup_cost, instants_of
from mt_nodes.stacks.stack import Stack

#: Instants that are measured of each relation.
LEAST_INSTANTS, MOST_INSTANTS = 3, 6
#: A follow-up may take so much longer than on average.
SLACK = 1.5


@dataclass(frozen=True)
class HeardRig:
    """What was heard of a rig's sensors: messages, and their rates by topic."""

    wires: Sequence[Wire]
    rates_hz: Mapping[str, float]

    def load(self, stack: Stack) -> RigLoad:
        """Return what it is to pass on."""
        sizes = {topic: [len(w.cdr) for w in self.wires if w.topic == topic] for topic in self.rates_hz}
        means = {topic: sum(row) / len(row) for topic, row in sizes.items()}
        return RigLoad.of(self.rates_hz, means, stack.leading_topic)


def heard_of(kept: Sequence[Mapping[str, Any]], directory: Path) -> HeardRig:
    """Read what a look at a graph has kept: topic, type, rate and files of each."""
    rows = [row for row in kept if row["hz"]]
    data = [(row, (directory / name).read_bytes()) for row in rows for name in row["files"]]
    wires = [Wire(row["topic"], row["type"], codec.header_stamp_ns(cdr) or 0, cdr) for row, cdr in data]
    return HeardRig(wires, {row["topic"]: row["hz"] for row in rows})


def judge_cost(run: LiveRun, heard: HeardRig, cores: int | None = None) -> Iterator[Finding]:
    """Measure every relation on the instants that were heard, and judge whether this computer can test all of them.

    ``cores``: that it has; None: those that this process may run on.
    """
    stack, title = run.stack, "cost"
    if silent := [topic for topic in stack.sensor_topics if topic not in heard.rates_hz]:
        yield Finding(
            "error", title, f"not measured: too little came on {', '.join(silent)}", "let all sensors publish"
        )
        return
    instants = list(instants_of(heard.wires, stack))[:MOST_INSTANTS]
    if len(instants) < LEAST_INSTANTS:
        fix = "mend sync_s in the stack file, or the clocks of the sensors"
        yield Finding("error", title, f"not measured: messages made {len(instants)} instants of all sensors", fix)
        return
    keep_freed_memory()
    load, cores = heard.load(stack), cores or len(os.sched_getaffinity(0))
    rig = f"{load.instants_hz:.0f} instants, {load.messages_hz:.0f} messages, {load.mb_per_s:.0f} MB a second"
    yield Finding("ok", title, f"{rig}: {load.passing_cores:.2f} cores to pass them on")
    transforms = run.static_transforms
    lead_s = max((wires[-1].stamp_ns - wires[0].stamp_ns) / 1e9 for wires in instants)
    for relation in run.suite.relations:
        book = SensorBook(stack.intensities)
        bundles = (bundle_of(number, wires, stack, transforms, book) for number, wires in enumerate(instants))
        try:
            made = followup_cost(relation, bundles, run.request.seed)
        except (NotApplicable, MtError) as why:
            yield Finding("warn", f"{title} of {relation.id}", f"not measured: {why}")
            continue
        machine = cores, run.request.workers_on(cores), replace(run.request, workers=AUTO).workers_on(cores)
        yield _judged(relation.id, made, load, machine, (run.request.delay_s, lead_s))


def _judged(
    relation: str,
    made: FollowupCost,
    load: RigLoad,
    cores_and_workers: tuple[int, int, int],
    delay_and_lead_s: tuple[float, float],
) -> Finding:
    """Judge one relation. A follow-up has the delay for it, less what a frame between instants came before its own.

    ``cores_and_workers``: cores, processes that make follow-ups, and how many there would be with ``workers: -1``.
    """
    (delay_s, lead_s), (cores, workers, most) = delay_and_lead_s, cores_and_workers
    tested_hz, title = made.tested_hz(load, cores, workers), f"cost of {relation}"
    makers = f"{workers} processes make" if workers > 1 else "one process makes" if workers else "one thread makes"
    needed = f"{made.cores(load):.1f} cores"
    detail = f"{made.made_ms:.0f} ms a follow-up; all {load.instants_hz:.0f} instants a second need {needed}"
    detail += f"; here are {cores}, the stack's instances not counted; {makers} follow-ups"
    if tested_hz < load.instants_hz:
        fix = f"some {tested_hz:.1f} instants a second can be tested, the others end as SKIPPED, over budget"
        if (more_hz := made.tested_hz(load, cores, most)) > tested_hz:
            fix += f"; some {more_hz:.1f} with workers: {most}, if these cores are idle"
        return Finding("warn", title, detail, f"{fix}; limits: {{rate_hz: {0.8 * tested_hz:.1f}}} says so beforehand")
    if (least_s := SLACK * made.made_ms / 1e3 + lead_s) > delay_s:
        fix = f"set delay_s to {least_s + 0.05:.2f} or more"
        return Finding("warn", title, f"{detail}; delay_s is {delay_s:g}", fix)
    return Finding("ok", title, detail)
