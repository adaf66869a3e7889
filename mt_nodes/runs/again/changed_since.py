# SPDX-License-Identifier: Apache-2.0
"""What of a finished run is not as it was, and how a pair that was made again was judged."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.params import plain
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.data.verdict import Pair, Verdict
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.run_record import versions
from mt_nodes.relations.relation import Relation
from mt_nodes.runs.replay.replay_run import Run

if TYPE_CHECKING:
    from mt_nodes.runs.loop.scenario_run import ScenarioRun

#: What must be alike for two judgements to be the same.
COMPARED = ("outcome", "measured", "bound", "margin", "unit", "lost", "gained", "reason", "detail")


def changed_since(run: Run | ScenarioRun, finished: RecordedPair) -> list[str]:
    """Say what is not as it was when a run was made: versions, machine, pace of a replay, relation, stack."""
    notes, now = other_machine(finished), run.condition["pace"]
    if (was := finished.about["request"].get("pace", now)) != now:
        notes.append(f"pace: {was} in the run, {now} now")
    recorded = {r["id"]: r for r in finished.about["relations"]}
    for relation in _relations(run):
        if edited := _edited(recorded.get(relation.id, {}), relation.as_plain()):
            notes.append(f"relation {relation.id} has been edited: {edited}")
    stack_file = finished.directory / "stack.yaml"
    recorded_stack = read_mapping(stack_file) if stack_file.exists() else {}
    if edited := _edited(recorded_stack, plain(run.stack)):
        notes.append(f"stack {run.stack.name} has been edited: {edited} (it was {stack_file})")
    return notes


def other_machine(finished: RecordedPair) -> list[str]:
    """Say which versions and which type of CPU are not those of the run."""
    was, now = finished.about.get("versions", {}), versions()
    notes = [
        f"{name}: {was.get(name, '(not there)')} in the run, {now.get(name, '(not there)')} now"
        for name in sorted({*was, *now})
        if was.get(name) != now.get(name)
    ]
    cpu = finished.about.get("machine", {}).get("cpu", platform.machine())
    return notes + ([f"CPU type: {cpu} in the run, {platform.machine()} now"] if cpu != platform.machine() else [])


def reproduction_verdict(out: Path, pair: Pair) -> Verdict | None:
    """Return the verdict of a reproduction, None when it ended before."""
    lines = read_journal(out / "result.jsonl")
    return next((Verdict.from_plain(line) for line in lines if line.get("pair") == str(pair)), None)


def differences(recorded: Verdict, now: Verdict) -> list[str]:
    """Return what of two judgements differs, by name."""
    was, is_now = _json(recorded.as_plain()), _json(now.as_plain())
    return [name for name in COMPARED if was.get(name) != is_now.get(name)]


def _relations(run: Run | ScenarioRun) -> list[Relation]:
    return list({r.id: r for r in (run.offers[0].relation, *run.suite.relations)}.values())


def _edited(was: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the keys that differ, by name; a key that the run did not know is no difference."""
    plain_now = _json(now)
    return ", ".join(key for key in was if was[key] != plain_now.get(key))


def _json(value: Any) -> Any:
    return json.loads(json.dumps(value))
