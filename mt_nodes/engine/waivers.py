# SPDX-License-Identifier: Apache-2.0
"""Violations that are known and accepted until a date: they stay FAIL, are marked, and do not fail a build."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.yaml_files import read_list, refuse_unknown
from mt_nodes.data.verdict import Outcome, Pair, RelationOutcome
from mt_nodes.engine.summary.summary import run_exit

KEYS = ("relation", "reason", "expires", "pair", "requirement", "id", "who")
NEEDED = KEYS[:3]


@dataclass(frozen=True)
class Waiver:
    """One accepted violation.

    Attributes:
        reason: why, for whoever reads the report.
        expires: last day on which it counts.
        pair: the one violated pair that is accepted; empty: all of the relation's.
        requirement: id of the user's requirement that is known to be missed; the relation must carry it.
        id, who: its name in the user's own lists, and who accepts it; a case for safety needs to know who.
    """

    relation: str
    reason: str
    expires: datetime.date
    pair: str = ""
    requirement: str = ""
    id: str = ""
    who: str = ""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"waiver of {self.pair or self.relation}"

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {**asdict(self), "expires": self.expires.isoformat()}


def load_waivers(path: Path) -> tuple[Waiver, ...]:
    """Read ``[{relation, reason, expires, pair?, requirement?, id?, who?}, …]``. Raises UsageError."""
    return tuple(_from_row(row, f"{path}[{i}]") for i, row in enumerate(read_list(path)))


def apply_waivers(
    summary: Mapping[str, Any],
    verdicts: Iterable[Mapping[str, Any]],
    waivers: Sequence[Waiver],
    today: datetime.date | None = None,
) -> dict[str, Any]:
    """Return a summary with waived FAILs marked (``waived`` of a relation) and the exit code that this leaves.

    ``waivers`` of the summary then tells of those that do not count, and why. Marks of another time are replaced.

    Args:
        summary: as :func:`mt_nodes.engine.summary.summary.summarise` makes it.
        verdicts: lines of the journal; others than violated pairs are passed over.
        waivers: accepted violations.
        today: the day that expiry is judged by, that of this machine's clock when None.
    """
    violated = _violated(verdicts)
    today = today or datetime.date.today()
    relations, notes = {name: dict(r) for name, r in summary["relations"].items()}, []
    counting: dict[str, list[Waiver]] = {}
    for waiver in waivers:
        idle = _idle(waiver, relations.get(waiver.relation), violated.get(waiver.relation, set()), today)
        if idle:
            notes.append(f"{waiver.name}: {idle}")
        else:
            counting.setdefault(waiver.relation, []).append(waiver)
    for name, relation in relations.items():
        relation["waived"], note = _waived(counting.get(name, []), violated.get(name, set()))
        notes += [f"relation {name}: {note}"] if note else []
    code, why = run_exit(
        summary["outcomes"],
        {name: RelationOutcome(r["outcome"]) for name, r in relations.items()},
        summary,
        waived=[name for name, r in relations.items() if r["waived"]],
    )
    return {**summary, "exit_code": int(code), "exit_why": why, "relations": relations, "waivers": notes}


def _violated(verdicts: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Return the violated pairs by relation; those of control and sham are nobody's to waive."""
    found: dict[str, set[str]] = {}
    for line in verdicts:
        if line.get("outcome") == Outcome.VIOLATED.value and "@" not in Pair.parse(line["pair"]).draw:
            found.setdefault(line["relation"], set()).add(line["pair"])
    return found


def _idle(waiver: Waiver, relation: Mapping[str, Any] | None, violated: set[str], today: datetime.date) -> str | None:
    """Say why a waiver does not count, None when it does."""
    if today > waiver.expires:
        return f"expired on {waiver.expires}, does not count; renew it or mend what it waives"
    if relation is None:
        return f"the run has no relation '{waiver.relation}'"
    if waiver.requirement and waiver.requirement not in relation["requirement"]:
        has = ", ".join(relation["requirement"]) or "(none)"
        return f"the relation carries requirement {has}, not {waiver.requirement}; does not count"
    if relation["outcome"] != RelationOutcome.FAIL.value:
        return f"relation {waiver.relation} is {relation['outcome']}, nothing to waive"
    if waiver.pair and waiver.pair not in violated:
        return "the pair is not violated, nothing to waive"
    return None


def _waived(waivers: Sequence[Waiver], violated: set[str]) -> tuple[dict[str, Any] | None, str | None]:
    """Return the mark of a relation, or what of it is waived but not enough."""
    whole = [w for w in waivers if not w.pair]
    pairs = {w.pair for w in waivers}
    if not waivers:
        return None, None
    if not whole and violated - pairs:
        return None, f"{len(pairs)} of {len(violated)} violated pairs are waived, so it still counts as FAIL"
    used = whole[:1] or list(waivers)
    return {
        "reason": "; ".join(dict.fromkeys(w.reason for w in used)),
        "expires": min(w.expires for w in used).isoformat(),
        "requirement": sorted({w.requirement for w in used if w.requirement}),
        "pairs": sorted(pairs) if not whole else [],
    }, None


def _from_row(row: Any, where: str) -> Waiver:
    if not isinstance(row, dict):
        raise UsageError(f"{where}: got {row!r}, expected a mapping with {', '.join(NEEDED)}")
    refuse_unknown(row, KEYS, where)
    missing = [key for key in NEEDED if not str(row.get(key) or "").strip()]
    if missing:
        raise UsageError(f"{where}: missing {', '.join(missing)}")
    texts = {key: _text(row.get(key, ""), f"{where}.{key}") for key in KEYS if key != "expires"}
    if texts["pair"]:
        _check_pair(texts["pair"], texts["relation"], f"{where}.pair")
    return Waiver(expires=_date(row["expires"], f"{where}.expires"), **texts)


def _check_pair(text: str, relation: str, where: str) -> None:
    try:
        pair = Pair.parse(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    if pair.relation != relation or "@" in pair.draw:
        raise UsageError(f"{where}: got '{text}', expected a pair of relation '{relation}' (not of control or sham)")


def _text(value: Any, where: str) -> str:
    if isinstance(value, str):
        return value.strip()
    raise UsageError(f"{where}: got {value!r}, expected a text")


def _date(value: Any, where: str) -> datetime.date:
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return value
    try:
        return datetime.date.fromisoformat(value)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: got {value!r}, expected a date such as 2027-03-31") from error
