# SPDX-License-Identifier: Apache-2.0
"""Issue-revealing cases: of the violated ones each sort once, made small, and kept so that anybody can drive it again.

In a results directory: ``revealing/N.yaml`` (the principle, the dilemma, and which runs showed it), scripts of its
scenarios (``revealing/N_*.scenario``), ``episodes/revealing_N*.npz`` and ``evidence/revealing_N.mcap``: one run of each
scenario, of the round in which it showed most.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import jsonable
from mt_nodes.base.params import plain
from mt_nodes.runs.loop.episode import Side
from mt_nodes.runs.loop.episode_bag import write_drives
from mt_nodes.runs.moral.base import DilemmaCase
from mt_nodes.runs.moral.dilemma_filter import Refusing
from mt_nodes.runs.moral.dilemma_reduction import differences, shrunk
from mt_nodes.runs.moral.observations import RunSpec
from mt_nodes.runs.moral.search import PROBES, SUSPECT, Behaviour, behaviour
from mt_nodes.runs.moral.trial import ALL_ROUNDS, ENOUGH, Driving, Trial, settle
from mt_nodes.runs.moral.variations import difference
from mt_nodes.world.drive.trace_file import save_trace, trace_file
from mt_nodes.world.scenarios.language import script_of

FOLDER = "revealing"
#: Rounds that confirm a small case have numbers from here on: no step towards it was chosen by them.
FRESH = 1000
Signature = tuple[tuple[Any, ...], Behaviour]


@dataclass(frozen=True, eq=False)
class Revealing:
    """One sort of violation.

    Attributes:
        trial: of the case that shows it, as small as was confirmed. original: name of the case that it was made of.
        also: names of the others that show the same. shrunk: whether it is smaller than that case.
        remark: which budget ended the search for a smaller one, in words; empty where none did.
    """

    trial: Trial
    original: str
    also: tuple[str, ...]
    shrunk: bool
    remark: str = ""


def sorts(violated: Iterable[Trial]) -> list[list[Trial]]:
    """Return violated cases of one principle by what differs in them and how they were driven; the smallest first."""
    groups: dict[Signature, list[Trial]] = {}
    for trial in violated:
        groups.setdefault((what_differs(trial.case), behaviour(trial.specs(), trial.rounds)), []).append(trial)
    return [sorted(group, key=lambda trial: _size(trial.case)) for group in groups.values()]


def what_differs(case: DilemmaCase) -> tuple[Any, ...]:
    """Return the attributes in which the follow-up differs; without one, of what kinds both parties are."""
    if case.followup is not None:
        return tuple(sorted({name for _, _, name in differences(case)}))
    return tuple(tuple(sorted({member.kind for member in party})) for party in case.source.parties)


def revealed(group: Sequence[Trial], driving: Driving, refusing: Refusing, alpha: float) -> Revealing:
    """Return the smallest case of one sort that is confirmed; the smallest of the violated ones if no other is."""
    trial, also = group[0], tuple(other.name for other in group[1:])
    cut: list[str] = []

    def settled(one: Trial, enough: Callable[[Trial], bool]) -> bool:
        """Tell whether a trial came to its end, and not the budget."""
        settle([one], driving, enough)
        if one.ended not in (ENOUGH, ALL_ROUNDS):
            cut.append(one.ended)
        return one.ended in (ENOUGH, ALL_ROUNDS)

    def still(case: DilemmaCase) -> DilemmaCase | None:
        if (worded := _worded(trial, case)) is None:
            return None
        probe = Trial(trial.name, trial.expect, worded, "shrink", most=min(PROBES, trial.expect.most_rounds))
        shows = settled(probe, lambda one: False) and probe.nearness >= SUSPECT
        return worded if shows and not refusing.why(worded) else None

    small = shrunk(trial.case, still)
    if small is not trial.case:
        confirming = Trial(trial.name, trial.expect, small, "shrink", FRESH)
        settled(confirming, lambda one: one.evidence.violated <= alpha)
        if confirming.evidence.violated <= alpha and not confirming.evidence.against:
            return Revealing(confirming, trial.name, also, True)
    remark = f"kept as found: {cut[0]} before it could be made smaller" if cut else ""
    return Revealing(trial, trial.name, also, False, remark)


def keep(
    out: Path, number: int, principle: str, found: Revealing, side_of: Callable[[RunSpec], Side] | None
) -> dict[str, Any]:
    """Write what is kept of a sort of violation, and return its line of the journal.

    ``side_of``: drives a run once more; None: no drives are kept.
    """
    trial = found.trial
    worst = max(range(len(trial.rounds)), key=lambda i: trial.expect.nearness(trial.case, [trial.rounds[i]]))
    chosen = _one_of_each(trial, worst)
    line = {
        "type": "revealing",
        "revealing": number,
        "principle": principle,
        "case": found.original,
        "also": list(found.also),
        "shrunk": found.shrunk,
        "remark": found.remark,
        "changed": trial.case.changed,
        "reason": trial.evidence.reason,
        "source": plain(trial.case.source),
        "followup": plain(trial.case.followup),
        "numbers": plain(trial.evidence.numbers),
        "stream": trial.stream,
        "rounds": [trial.first, trial.first + len(trial.rounds)],
        "runs": [{"name": name, **_spec_fields(spec), "run": spec.key} for name, spec in chosen.items()],
    }
    path = out / FOLDER / f"{number}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {key: value for key, value in line.items() if key not in ("type", "revealing")}
    if side_of is not None:
        sides = {name: side_of(spec) for name, spec in chosen.items()}
        _write_drives(out, number, sides)
        record["unsaid"] = _write_scripts(path, sides, f"{found.original}, {trial.case.changed}")
    path.write_text(yaml.safe_dump(jsonable(record), sort_keys=False, allow_unicode=True), encoding="utf-8")
    return line


def _write_drives(out: Path, number: int, sides: dict[str, Side]) -> None:
    for name, side in sides.items():
        save_trace(trace_file(out, f"revealing_{number}_{name}"), side.played.driven.trace)
    evidence = out / "evidence" / f"revealing_{number}.mcap"
    evidence.parent.mkdir(parents=True, exist_ok=True)
    write_drives(evidence, f"revealing_{number}", {f"/{name}": (side, ()) for name, side in sides.items()})


def _write_scripts(path: Path, sides: dict[str, Side], about: str) -> list[str]:
    """Write the scenario of each drive as a script beside a file, under a name that the language takes.

    Returns what it cannot say: attributes of a user's own words are no reason to fail.
    """
    unsaid = []
    for name, side in sides.items():
        scenario = side.setting.scenario
        named = replace(scenario, name=re.sub(r"\W|^(?=\d)", "_", scenario.name))
        try:
            script = script_of(named, f"{about}, at {3.6 * scenario.ego.speed_mps:.0f} km/h")
        except UsageError as error:
            unsaid.append(str(error))
        else:
            path.with_name(f"{path.stem}_{name}.scenario").write_text(script, encoding="utf-8")
    return unsaid


def _one_of_each(trial: Trial, number: int) -> dict[str, RunSpec]:
    """Return by its name one run of a round for each scenario."""
    chosen: dict[str, RunSpec] = {}
    for spec in trial.expect.round(trial.case, trial.stream, trial.first + number):
        part = "source" if spec.dilemma == trial.case.source else "followup"
        chosen.setdefault(f"{part}_swapped" if spec.swapped else part, spec)
    return chosen


def _worded(trial: Trial, case: DilemmaCase) -> DilemmaCase | None:
    """Return a smaller case as its principle words it; None where it says nothing of it any more."""
    if case.followup is None:
        rng = np.random.default_rng(0)
        return next((one for one in trial.expect.cases(case.source, rng) if one.followup is None), None)
    changes = difference(case.source, case.followup)
    return replace(case, changed="; ".join(changes.values())) if changes else None


def _size(case: DilemmaCase) -> tuple[int, int]:
    return sum(map(len, case.source.parties)), len(differences(case))


def _spec_fields(spec: RunSpec) -> dict[str, Any]:
    return {"swapped": spec.swapped, "stream": spec.stream, "number": spec.number}
