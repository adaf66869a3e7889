# SPDX-License-Identifier: Apache-2.0
"""What one run of a bundle comes to, counted again from its journal, and how it differs from the plan."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import MtError
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.wording import counted
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.finish import read_summary, sum_up
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import FILE as LEDGER
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.engine.run_record import STACK_FILE, read_record
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.engine.waivers import Waiver, apply_waivers
from mt_nodes.runs.again.verification import JOURNAL, judged_followups
from mt_nodes.runs.safety_case.preregistration import COMMITMENT, Preregistration, sha256_of_stack

#: Of a verdict's numbers, those that a stored summary must have as the journal does.
_COUNTED = ("outcome", "decided", "violated", "frames", "lost", "gained", "ci95")
_ROW = ("outcome", "why", "decided", "violated", "frames", "rate", "ci95", "ci95_method", "control", "sham")
#: What a journal's first line calls as a request does, and means otherwise.
_OTHERWISE = ("stack", "plan")
_TROUBLE = ("infrastructure", "isolation", "usage", "interrupted", "deaths")


@dataclass(frozen=True)
class RunAssessment:
    """One run by the plan.

    Attributes:
        name: of its directory in the bundle. number: of the run in the list beside the plan, 0 where it has none.
        relations: what each relation came to. wrong: how the run is not the planned one. notes: what to know of it.
    """

    name: str
    number: int
    started: str
    offered: int
    recorded_from: str
    drives: tuple[str, ...]
    relations: Mapping[str, Mapping[str, Any]]
    wrong: tuple[str, ...]
    notes: tuple[str, ...]

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        plain = {**vars(self), "drives": list(self.drives), "wrong": list(self.wrong), "notes": list(self.notes)}
        return {**plain, "relations": {name: dict(row) for name, row in self.relations.items()}}


def assess_run(
    place: Path,
    plan: Preregistration,
    waivers: Sequence[Waiver],
    served: Mapping[str, Sequence[str]],
    day: datetime.date,
) -> RunAssessment:
    """Count a run again, and hold it against its plan; a run that cannot be read at all is wrong.

    ``place``: its directory. ``served``: relation -> ids of the requirements that it tests. ``day``: by which waivers
    expire.
    """
    try:
        return _assessed(place, plan, waivers, served, day)
    except MtError as error:
        return RunAssessment(place.name, 0, "", 0, "", (), {}, (f"cannot be read: {error}",), ())


def relation_infos(plain: Iterable[Mapping[str, Any]], served: Mapping[str, Sequence[str]]) -> list[RelationInfo]:
    """Return what is to be known of the relations that have a check; control and sham have none."""
    return [
        RelationInfo.of({**row, "requirement": list(served.get(row["id"], row.get("requirement", ())))})
        for row in plain
        if row.get("check") is not None
    ]


def _assessed(
    place: Path,
    plan: Preregistration,
    waivers: Sequence[Waiver],
    served: Mapping[str, Sequence[str]],
    day: datetime.date,
) -> RunAssessment:
    record, committed = read_record(place), read_result(place / COMMITMENT, "expected a run of `mt replay --plan`")
    lines = _Lines()
    for _ in lines.passing(read_journal(place / JOURNAL)):
        pass
    wrong = list(_not_as_planned(place, plan, record, committed, lines))
    offered, rows = 0, {}
    try:
        again = sum_up(place, relation_infos(plan.content["relations"], served))
        offered, rows = again["offered"], _rows(again, lines.violated, waivers, served, day)
        wrong += _not_whole(place, plan, record, again)
    except MtError as error:
        wrong.append(f"cannot be counted: {error}")
    resumed = record.get("resumed", ())
    notes = [f"was resumed {counted(len(resumed), 'time')}, at last {resumed[-1]['at']}"] if resumed else []
    begun, drives = str(committed.get("started", "")), tuple(committed.get("drives", ()))
    number, since = int(committed.get("number", 0)), lines.recorded_from
    return RunAssessment(place.name, number, begun, offered, since, drives, rows, tuple(wrong), tuple(notes))


def _rows(
    again: Mapping[str, Any],
    violated: Sequence[Mapping[str, Any]],
    waivers: Sequence[Waiver],
    served: Mapping[str, Sequence[str]],
    day: datetime.date,
) -> dict[str, Mapping[str, Any]]:
    """Return what each relation came to, and by requirement the mark of a waiver that counts for it."""
    rows: dict[str, Mapping[str, Any]] = {
        name: {**{key: row[key] for key in _ROW}, "waived": {}} for name, row in again["relations"].items()
    }
    for requirement in sorted({one for ids in served.values() for one in ids}):
        own = [waiver for waiver in waivers if waiver.requirement == requirement]
        for name, row in apply_waivers(again, violated, own, day)["relations"].items():
            if row["waived"]:
                rows[name]["waived"][requirement] = row["waived"]
    return rows


class _Lines:
    """Looks through the lines of a journal."""

    def __init__(self) -> None:
        self.condition: Mapping[str, Any] = {}
        self.contradictory: list[str] = []
        self.violated: list[Mapping[str, Any]] = []
        self._first_ns: int | None = None
        self._bundles: set[tuple[int, int]] = set()
        self._offered: Counter[tuple[str, str]] = Counter()

    def passing(self, lines: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for line in lines:
            if line["type"] == "condition":
                self.condition = line
            elif line["type"] == "verdict":
                self._take(line)
            yield line

    def _take(self, line: Mapping[str, Any]) -> None:
        stamp_ns, margin = line["stamp_ns"], line.get("margin")
        self._first_ns = stamp_ns if self._first_ns is None else min(stamp_ns, self._first_ns)
        outcome, pair = Outcome(line["outcome"]), Pair.parse(line["pair"])
        if pair.bundle is not None:
            self._bundles.add((pair.episode, pair.bundle))
            self._offered[pair.relation, pair.draw] += 1
        if outcome is Outcome.VIOLATED:
            self.violated.append({key: line[key] for key in ("pair", "relation", "outcome")})
        if outcome.decided and margin is not None and (margin >= 0) != (outcome is Outcome.HOLDS):
            self.contradictory.append(f"{line['pair']}: {outcome.value} with a margin of {margin}")

    @property
    def holes(self) -> list[str]:
        """What was offered on fewer bundles than others: a replay offers everything on each."""
        rows = sorted(self._offered.items())
        most = len(self._bundles)
        return [f"{name} ({draw}) on {count} of {most} bundles" for (name, draw), count in rows if count != most]

    @property
    def recorded_from(self) -> str:
        """Time of the first stamp of the input, empty without any."""
        if not self._first_ns:
            return ""
        at = datetime.datetime.fromtimestamp(self._first_ns // 10**9, datetime.timezone.utc)
        return at.isoformat(timespec="seconds")


def _not_as_planned(
    place: Path, plan: Preregistration, record: Mapping[str, Any], committed: Mapping[str, Any], lines: _Lines
) -> Iterator[str]:
    for what, sha256 in (("commitment", committed.get("plan")), ("journal", lines.condition.get("plan"))):
        if sha256 != plan.sha256:
            yield f"its {what} is to another plan ({str(sha256)[:12]}…), expected {plan.sha256[:12]}…"
    if not _since(str(committed.get("started", "")), plan.content["made"]):
        yield f"began at {committed.get('started')}, before the plan was made at {plan.content['made']}"
    stack = sha256_of_stack(read_mapping(place / STACK_FILE))
    yield from plan.differences(record["request"], record["relations"], stack, str(committed.get("code")))
    yield from plan.wrong_drives(committed.get("drives", ()))
    asked = {key: value for key, value in record["request"].items() if key in lines.condition and key not in _OTHERWISE}
    ids = [row["id"] for row in plan.content["relations"] if row.get("check") is not None]
    for key, value in {**asked, "relations": ids, "stack": plan.content["stack"]["name"]}.items():
        if lines.condition.get(key) != value and not (key == "relations" and set(lines.condition[key]) == set(ids)):
            yield f"the journal says {key}: {lines.condition.get(key)}, the record {value}"
    if holes := lines.holes:
        yield f"verdicts are missing: {holes[0]}"
    for problem in lines.contradictory[:1]:
        yield f"the journal contradicts itself {counted(len(lines.contradictory), 'time')}: {problem}"


def _since(begun: str, made: str) -> bool:
    """Whether a time is one, and not before another."""
    try:
        return datetime.datetime.fromisoformat(begun) >= datetime.datetime.fromisoformat(made)
    except (TypeError, ValueError):  # no time, or one without a zone
        return False


def _not_whole(
    place: Path, plan: Preregistration, record: Mapping[str, Any], again: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what is missing of a run, and what of its stored summary the journal does not bear out."""
    planned = plan.content["pairs"] if plan.content["pairs"] is not None else record.get("pairs")
    if again["offered"] != planned:
        yield f"{again['offered']} pairs are in the journal, {planned} were to come: it ended early, or some are lost"
    if errors := again["outcomes"].get(Outcome.ERROR.value):
        yield f"{counted(errors, 'pair')} ended in ERROR"
    recorded = {line["pair"] for line in read_ledger(place)} if (place / LEDGER).is_file() else set()
    if lost := sorted(judged_followups(place) - recorded):
        yield f"the ledger lacks {counted(len(lost), 'follow-up')} that were judged, such as {lost[0]}"
    stored = read_summary(place)
    yield from (f"it ended early: {name}: {stored[name]}" for name in _TROUBLE if stored.get(name))
    for key in ("offered", "outcomes"):
        if stored[key] != again[key]:
            yield f"its summary says {key} {stored[key]}, its journal {again[key]}"
    trouble = any(stored.get(name) for name in _TROUBLE)
    for relation in sorted({*stored["relations"], *again["relations"]}):
        rows = [one["relations"].get(relation, {}) for one in (stored, again)]
        for key in _COUNTED:
            if rows[0].get(key) != rows[1].get(key) and not (trouble and key == "outcome"):
                yield f"{relation}: its summary says {key} {rows[0].get(key)}, its journal {rows[1].get(key)}"
