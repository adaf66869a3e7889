# SPDX-License-Identifier: Apache-2.0
"""Does one item of a campaign: whoever does it, and however often, the verdict lines are the same."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import os
import resource
import socket
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import keep_freed_memory, return_freed_memory
from mt_nodes.base.errors import InfrastructureError, MtError
from mt_nodes.base.jsonl import seal
from mt_nodes.base.processes import wait_until
from mt_nodes.base.suite_client import in_suite
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest, suite_process, suite_stop_s
from mt_nodes.engine.provenance import knowing
from mt_nodes.engine.summary.deaths import deaths_in
from mt_nodes.engine.summary.outcomes import PairTally as ArmTally
from mt_nodes.engine.summary.verdict_rows import sorted_by_arm, tally
from mt_nodes.runs.campaign.campaign_plan import relation_files
from mt_nodes.runs.campaign.item import CampaignItem, ItemCpu, ItemResult, ItemTally, PartResult
from mt_nodes.runs.replay.execute import execute, in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.stack import load_stack
from mt_nodes.stacks.stack_process import ended_stacks_cpu_s

#: What an end may take on a busy machine beyond what the suite of a worker that was killed is given for its own.
LET_GO_S = 120.0
LOCK = ".lock"
_TROUBLES = ("isolation", "usage", "infrastructure")


def perform(item: CampaignItem, scratch: Path) -> ItemResult:
    """Do an item, or go on with what ``scratch/<key>`` already holds of it.

    ``item``: what to do. ``scratch``: holds a results directory for each item, and bags that were fetched.
    Raises KeyboardInterrupt: it was interrupted; it can be gone on with.
    """
    began_s, cpu_began_s, out = time.monotonic(), _cpu_s(), scratch / item.key
    out.mkdir(parents=True, exist_ok=True)
    work_s: Mapping[str, float] = {}
    cpu_s: Mapping[str, float] = {}
    with (out / LOCK).open("ab") as held:
        try:
            _take_alone(held, item)
            in_one_go = not (out / "result.jsonl").exists()
            summary = _carried_out(item, scratch, held.fileno())
        except MtError as error:
            code, trouble = int(error.exit_code), str(error)
        else:
            if summary["interrupted"]:
                raise KeyboardInterrupt
            code, trouble = int(summary["exit_code"]), _trouble(summary)
            work_s = summary.get("work_s", work_s)
            cpu_s = summary.get("cpu_s", cpu_s) if in_one_go else cpu_s
        lines = _lines(out / "result.jsonl")
    parts, sha256 = _part_results(lines, item.relations, work_s)
    took_s, deaths = round(time.monotonic() - began_s, 3), tuple(death["reason"] for death in deaths_in(lines))
    cpu = _item_cpu(lines, cpu_s, _cpu_s() - cpu_began_s) if cpu_s else None
    return ItemResult(item.key, code, parts, sha256, took_s, worker_name(), trouble, deaths, cpu)


def worker_name() -> str:
    """Return what tells this worker from others: ``host:pid``."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _carried_out(item: CampaignItem, scratch: Path, lock: int) -> dict[str, Any]:
    """Return the summary of the item's run; that of a run that ended well is not made again.

    Its suite holds the ``lock``, too: should this process be killed, the next one waits for the end of both.
    """
    out = scratch / item.key
    if (out / "summary.json").exists():
        summary = read_summary(out)
        if not summary["interrupted"] and not _trouble(summary):
            return summary
    request = _request(item, scratch)
    with knowing(request.as_plain()):  # a worker elsewhere may have begun it
        run = Run.resume(out) if (out / "run.json").exists() else Run.create(request, str(out))
    if run.request.transport == "inprocess":
        (out / "console.log").touch()
        keep_freed_memory()
        return_freed_memory()
        return execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
    suite = suite_process(out, os.environ)
    return in_suite(suite, suite_stop_s(run.stack), lambda event: None, "the campaign goes on with it", [lock])


def _request(item: CampaignItem, scratch: Path) -> ReplayRequest:
    """Return the request with the files of this worker."""
    return dataclasses.replace(
        item.request,
        bags=(str(_local(item, scratch)),),
        relations=relation_files(item.relations, item.texts, scratch / item.key / "relations"),
    )


def _local(item: CampaignItem, scratch: Path) -> Path:
    if "://" not in item.drive.url:
        return Path(item.drive.url)
    from mt_nodes.runs.campaign.inputs import fetched

    return fetched(item.drive, scratch / "bags")


def _trouble(summary: Mapping[str, Any]) -> str:
    return "; ".join(str(summary[name]) for name in _TROUBLES if summary.get(name))


def _lines(journal: Path) -> list[dict[str, Any]]:
    return list(read_journal(journal)) if journal.exists() else []


def _part_results(
    lines: Sequence[Mapping[str, Any]], relations: Iterable[str], work_s: Mapping[str, float]
) -> tuple[tuple[PartResult, ...], str]:
    """Return what the journal of an item holds, by relation, and the SHA-256 of its verdict lines, sorted."""
    verdicts = sorted(seal(line) for line in lines if line["type"] == "verdict")
    arms, _ = sorted_by_arm(lines, relations)
    parts = []
    for name, rows in arms.items():
        outcomes = Counter(row.outcome.value for row in rows.all)
        own, control, sham = (_plain_tally(tally(each)) for each in (rows.relation, rows.control, rows.sham))
        frames = len({row.frame for row in rows.relation if row.outcome.decided})
        told, took_s = dict(sorted(outcomes.items())), work_s.get(name, 0.0)
        parts.append(PartResult(name, outcomes.total(), told, own, control, sham, frames, took_s))
    return tuple(parts), hashlib.sha256("\n".join(verdicts).encode()).hexdigest()


def _cpu_s() -> float:
    """Return the processor time of this process and of all below it that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime + ended_stacks_cpu_s()


def _item_cpu(lines: Sequence[Mapping[str, Any]], cpu_s: Mapping[str, float], seconds: float) -> ItemCpu:
    """Return the processor time of an item with the verdicts of its journal."""
    pairs = Counter(Pair.parse(line["pair"]).relation for line in lines if line["type"] == "verdict")
    return ItemCpu(round(seconds, 6), {name: (cpu_s.get(name, 0.0), pairs[name]) for name in sorted({*pairs, *cpu_s})})


def _plain_tally(found: ArmTally) -> ItemTally:
    return ItemTally(found.decided, found.violated)


def _take_alone(held: Any, item: CampaignItem) -> None:
    """Lock an item's directory; what a worker that was killed left behind may still be ending there."""
    limit_s = LET_GO_S + suite_stop_s(load_stack(item.request.stack))
    if not wait_until(lambda: _locked(held), limit_s):
        raise InfrastructureError(
            f"{held.name}: another process is still at this item after {limit_s:g} s; `fuser {held.name}` names it: "
            "end it, then go on with the campaign"
        )


def _locked(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
