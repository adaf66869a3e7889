# SPDX-License-Identifier: Apache-2.0
"""Which frames are cases, which relation each is given, and what is known of its scene: frozen, to be run again.

``mt rules match --plan`` writes the file, ``mt replay --cases`` runs it. Whoever has it needs neither the store nor
the scene analysis to repeat a run.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import jsonable
from mt_nodes.base.yaml_files import LARGEST_BYTES, read_mapping, refuse_unknown
from mt_nodes.engine.entries import mapping, text

SCHEMA = 1
#: What the copy of a plan in a results directory is called.
FILE = "cases.yaml"
_NUMBERS = ("speed_kmh", "steering_rad")
#: What others are derived from; the kind of the rest is asked for by conditions, to which another kind is unknown.
_KINDS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(_NUMBERS, (int, float)),
    **dict.fromkeys(("time_of_day", "weather"), (str,)),
    **dict.fromkeys(("roads", "has", "looked_for"), (list,)),
    "objects": (dict,),
}
#: How the names of facts begin that say whether an element is present, such as ``has(red_light)``.
_PRESENCE = "has("
_KEYS = ("name", "bag", "first", "last", "draw", "relation", "facts", "sources", "why")


@dataclass(frozen=True)
class PlannedCase:
    """Some frames in a row and the relation that they are given.

    Attributes:
        name: bag and first frame; those of other rounds over the same frames have the same.
        bag: number of the bag on the command line of the replay: the episode. first, last: frames, both inclusive.
        draw: of the relation; tells cases of the same frames and relation apart.
        relation: id of a shipped one or path of a file; empty: none applied, ``why`` tells.
        facts: what is known of the scene, as predicates of conditions are called; beside them ``roads``, ``objects``
            and ``steering_rad``. sources: where each is from.
        why: the relation, or none, was chosen.
    """

    name: str
    bag: int
    first: int
    last: int
    draw: int = 0
    relation: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    why: str = ""

    @property
    def frames(self) -> range:
        """Numbers of its frames."""
        return range(self.first, self.last + 1)

    def as_plain(self) -> dict[str, Any]:
        """Return it as the file says it."""
        return {key: jsonable(getattr(self, key)) for key in _KEYS}


@dataclass(frozen=True)
class CasePlan:
    """Cases in the order in which they were matched; ``made_by`` says how, in free words."""

    made_by: Mapping[str, Any]
    cases: tuple[PlannedCase, ...]

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that are named, each once."""
        return tuple(dict.fromkeys(case.relation for case in self.cases if case.relation))

    @property
    def sha256(self) -> str:
        """What tells whether it is still the same (hex)."""
        return hashlib.sha256(json.dumps(self.as_plain()["cases"]).encode()).hexdigest()

    def as_plain(self) -> dict[str, Any]:
        """Return it as the file says it."""
        cases = [case.as_plain() for case in self.cases]
        return {"schema": SCHEMA, "made_by": jsonable(self.made_by), "cases": cases}


def load_cases(path: Path) -> CasePlan:
    """Read a plan; a relation file is looked for from the plan's directory.

    Raises UsageError: unreadable, or no plan; names the file, the case, what was got and what was expected.
    """
    data = read_mapping(path)
    refuse_unknown(data, ("schema", "made_by", "cases"), str(path))
    if data.get("schema") != SCHEMA:
        raise UsageError(f"{path}: schema: got {data.get('schema')!r}, expected {SCHEMA}")
    rows = data.get("cases")
    if not (isinstance(rows, list) and rows):
        raise UsageError(f"{path}: cases: got {rows!r}, expected a list of cases; `mt rules match --plan` writes one")
    cases = tuple(_case(row, f"{path}: cases[{i}]", path.parent) for i, row in enumerate(rows))
    _refuse_overlap(cases, path)
    return CasePlan(mapping(data.get("made_by") or {}, f"{path}: made_by"), cases)


def write_cases(plan: CasePlan, path: Path) -> None:
    """Write a plan, whole or not at all.

    Raises UsageError: it is larger than what is read. InfrastructureError: it cannot be written.
    """
    text = yaml.dump(plan.as_plain(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    if len(text.encode()) > LARGEST_BYTES:
        raise UsageError(
            f"{path}: got a plan of {len(plan.cases):,} cases, more than the {LARGEST_BYTES / 1e6:g} MB that are read; "
            "match fewer bags at a time"
        )
    try:
        write_whole(path, text)
    except OSError as error:
        raise cannot_write(path.parent, error) from error


class _Dumper(yaml.SafeDumper):
    """Writes every case out in full: no anchors for what two of them share."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _case(row: Any, where: str, directory: Path) -> PlannedCase:
    data = mapping(row, where, "{name: drive/0, bag: 0, first: 0, last: 9, relation: rule_germany_30}")
    refuse_unknown(data, _KEYS, where)
    first, last = _number(data, "first", where), _number(data, "last", where)
    if last < first:
        raise UsageError(f"{where}.last: got {last}, expected at least first, {first}")
    relation = text(data, "relation", where)
    if relation.endswith((".yaml", ".yml")):
        relation = str((directory / relation).resolve())
    return PlannedCase(
        name=text(data, "name", where, default=None),
        bag=_number(data, "bag", where),
        first=first,
        last=last,
        draw=_number({"draw": 0, **data}, "draw", where),
        relation=relation,
        facts=_facts(data.get("facts") or {}, f"{where}.facts"),
        sources=_texts(data.get("sources") or {}, f"{where}.sources"),
        why=text(data, "why", where),
    )


def _number(data: Mapping[str, Any], key: str, where: str) -> int:
    value = data.get(key)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise UsageError(f"{where}.{key}: got {value!r}, expected a whole number of at least 0")


def _facts(value: Any, where: str) -> Mapping[str, Any]:
    facts = mapping(value, where, "{speed_kmh: 31.2, roads: [intersection]}")
    for name, fact in facts.items():
        values = [*fact.values()] if isinstance(fact, dict) else fact if isinstance(fact, list) else [fact]
        # A flag is a whole number to Python.
        if not (isinstance(name, str) and _fits(name, fact) and all(map(_plain, values))):
            raise UsageError(f"{where}.{name}: got {fact!r}, expected {_expected(name)}; leave out what is not known")
    return facts


def _fits(name: str, fact: Any) -> bool:
    """Return whether a fact is of its kind; whether an element is present is a flag."""
    if name.startswith(_PRESENCE):
        return isinstance(fact, bool)
    return isinstance(fact, _KINDS.get(name, (bool, int, float, str, list))) and not (
        name in _NUMBERS and isinstance(fact, bool)
    )


def _expected(name: str) -> str:
    if str(name).startswith(_PRESENCE):
        return "true (present) or false (absent)"
    known = {int: "a finite number", str: "a name", list: "a list of names", dict: "a number for each of some names"}
    return known[_KINDS[name][0]] if name in _KINDS else "a flag, a finite number, a name or a list of names"


def _plain(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, (bool, int, float)) and abs(value) <= sys.float_info.max)


def _texts(value: Any, where: str) -> Mapping[str, str]:
    texts = mapping(value, where, "{speed_kmh: odometry}")
    for name, source in texts.items():
        if not (isinstance(name, str) and isinstance(source, str)):
            raise UsageError(f"{where}.{name}: got {source!r}, expected a text")
    return texts


def _refuse_overlap(cases: Sequence[PlannedCase], path: Path) -> None:
    """Of two follow-ups of one frame, relation and draw nobody could say which case they are of."""
    given = [(case.relation, case.draw, case.bag, case.first, i) for i, case in enumerate(cases) if case.relation]
    for one, other in pairwise(sorted(given)):
        before, after = cases[one[-1]], cases[other[-1]]
        if one[:3] == other[:3] and before.last >= after.first:
            raise UsageError(
                f"{path}: cases[{other[-1]}]: got frames {after.first} to {after.last} of bag {after.bag} for relation "
                f"'{after.relation}', draw {after.draw}, as cases[{one[-1]}] has in part; give one another draw"
            )
