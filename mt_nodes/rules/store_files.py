# SPDX-License-Identifier: Apache-2.0
"""Export and import of relations: CSV with AutoMT's columns, YAML, and Gherkin.

A CSV file has the paper's columns first, which suffice for import. For a ``.feature`` file, which has neither region
nor origin nor executions, the reader provides them.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.directories import cannot_write, write_whole
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.yaml_files import read_list, read_text, refuse_unknown
from mt_nodes.rules.gherkin import feature, read_feature_file
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.statement import ADDS, ON_ROAD, ON_ROADSIDE, REPLACES, Statement
from mt_nodes.rules.store_entry import MANUAL, Entry

PAPER_COLUMNS = ("Index", "MR Text", "Road Type", "Manipulation", "Expected Behaviour", "Execution Count")
COLUMNS = (*PAPER_COLUMNS, "Condition", "Rules", "Region", "Origin", "Prompt", "Answer", "Agreement", "Rejected")
_NEEDED = PAPER_COLUMNS[2:5]
_KEYS = ("road", "verb", "element", "place", "behaviour", "condition", "rules")
_ENTRY_KEYS = ("region", "origin", "prompt_id", "answer_id", "executions", "agreement", "rejected")


@dataclass(frozen=True)
class Reader:
    """Settings of an import: the allowed words, and defaults for what a file lacks."""

    ontology: Ontology
    region: str = ""
    origin: str = MANUAL

    def read(self, path: Path) -> list[Entry]:
        """Return the relations of a file, by its suffix.

        Raises UsageError: it is invalid: names the file, the place in it, what was got and what was expected.
        """
        if path.suffix not in _FORMATS:
            raise UsageError(f"{path}: got '{path.suffix}', expected {', '.join(_FORMATS)}")
        rows = _FORMATS[path.suffix][0](self, path)
        if not rows:
            raise UsageError(f"{path}: got no relation, expected one at the least")
        return rows

    def entry(self, row: Mapping[str, Any], where: str) -> Entry:
        """Return a relation from plain data.

        Raises UsageError: a key is missing or unknown, a value is of the wrong kind, or a word is not in the ontology.
        """
        refuse_unknown(row, (*_KEYS, *_ENTRY_KEYS), where)
        if missing := [key for key in ("road", "element", "behaviour") if not row.get(key)]:
            raise UsageError(f"{where}: missing {', '.join(missing)}")
        texts = {key: str(row.get(key) or "") for key in _KEYS if key != "rules"}
        texts["verb"] = texts["verb"] or ADDS
        rules, count = row.get("rules") or (), row.get("executions") or 0
        if not isinstance(rules, (list, tuple)) or not isinstance(count, int) or count < 0:
            raise UsageError(f"{where}: got rules {rules!r} and executions {count!r}, expected a list and a count")
        statement = Statement(rules=tuple(map(str, rules)), **texts)
        self.ontology.refuse_unknown(statement, where)
        region, origin = str(row.get("region") or self.region), str(row.get("origin") or self.origin)
        prompt, answer = (str(row.get(key) or "") for key in ("prompt_id", "answer_id"))
        agreement, rejected = row.get("agreement"), row.get("rejected", False)
        judged = agreement is None or (isinstance(agreement, (int, float)) and 0.0 <= agreement <= 1.0)
        if not judged or not isinstance(rejected, bool):
            got = f"agreement {agreement!r} and rejected {rejected!r}"
            raise UsageError(f"{where}: got {got}, expected a share from 0 to 1 and true or false")
        return Entry(statement, region, origin, prompt, answer, 0, count, agreement, rejected)


def write(entries: Sequence[Entry], path: Path) -> None:
    """Write relations to a file, by its suffix, atomically.

    Raises UsageError: the suffix is unknown. InfrastructureError: it cannot be written.
    """
    if path.suffix not in _FORMATS:
        raise UsageError(f"{path}: got '{path.suffix}', expected {', '.join(_FORMATS)}")
    try:
        write_whole(path, _FORMATS[path.suffix][1](entries))
    except OSError as error:
        raise cannot_write(path, error) from error


def _as_csv(entries: Iterable[Entry]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for e in entries:
        paper = (e.index, e.text, e.road_type, e.manipulation, e.expected_behaviour, e.executions)
        further = (e.statement.condition, " ".join(e.statement.rules), e.region, e.origin, e.prompt_id, e.answer_id)
        judged = ("" if e.agreement is None else e.agreement, "yes" if e.rejected else "")
        writer.writerow((*paper, *further, *judged))
    return text.getvalue()


def _from_csv(reader: Reader, path: Path) -> list[Entry]:
    rows = csv.DictReader(io.StringIO(read_text(path)), strict=True)
    try:
        names = [name.strip() for name in rows.fieldnames or ()]
        for needed in _NEEDED:
            if needed not in names:
                raise UsageError(f"{path}: no column '{needed}'{suggest(needed, names)}")
        rows.fieldnames = names
        return [_from_row(reader, row, f"{path}:{rows.line_num}") for row in rows]
    except csv.Error as error:
        raise UsageError(f"{path}:{rows.line_num}: not valid CSV: {error}") from error


def _from_row(reader: Reader, row: Mapping[Any, Any], where: str) -> Entry:
    if None in row or None in row.values():
        raise UsageError(f"{where}: got another number of values than there are columns")
    count = row.get("Execution Count", "").strip() or "0"
    if not count.isascii() or not count.isdigit():
        raise UsageError(f"{where}: Execution Count: got '{count}', expected a whole number")
    verb, element, place = _parts(row["Manipulation"], where)
    fields = {
        "road": _name(row["Road Type"]),
        "verb": verb,
        "element": element,
        "place": place,
        "behaviour": _name(row["Expected Behaviour"]),
        "condition": row.get("Condition", ""),
        "rules": row.get("Rules", "").split(),
        "region": row.get("Region", ""),
        "origin": row.get("Origin", ""),
        "prompt_id": row.get("Prompt", ""),
        "answer_id": row.get("Answer", ""),
        "executions": int(count),
        "agreement": _share(row.get("Agreement", "").strip(), where),
        "rejected": _flag(row.get("Rejected", "").strip(), where),
    }
    return reader.entry(fields, where)


def _share(value: str, where: str) -> float | None:
    try:
        return float(value) if value else None
    except ValueError as error:
        raise UsageError(f"{where}: Agreement: got '{value}', expected a share from 0 to 1") from error


def _flag(value: str, where: str) -> bool:
    if value.lower() not in ("", "no", "yes"):
        raise UsageError(f"{where}: Rejected: got '{value}', expected yes, no or nothing")
    return value.lower() == "yes"


def _parts(change: str, where: str) -> tuple[str, str, str]:
    """Return verb, element and place of a text like ``adds red light on the roadside``."""
    verb, _, rest = " ".join(change.split()).partition(" ")
    if verb not in (ADDS, REPLACES) or not rest:
        raise UsageError(f"{where}: Manipulation: got '{change}', expected '{ADDS} …' or '{REPLACES} …'")
    place = next((place for place in (ON_ROADSIDE, ON_ROAD) if rest.endswith(f" {place}")), "")
    return verb, _name(rest.removesuffix(place)), place


def _name(words: str) -> str:
    return "_".join(words.lower().split())


def _as_yaml(entries: Iterable[Entry]) -> str:
    rows = []
    for e in entries:
        fields = {key: getattr(e.statement, key) for key in _KEYS} | {key: getattr(e, key) for key in _ENTRY_KEYS}
        given = {key: v for key, v in fields.items() if v or (key == "agreement" and v is not None)}
        rows.append({key: list(v) if isinstance(v, tuple) else v for key, v in given.items()})
    return yaml.safe_dump(rows, sort_keys=False, allow_unicode=True, width=120)


def _from_yaml(reader: Reader, path: Path) -> list[Entry]:
    found = []
    for number, row in enumerate(read_list(path), 1):
        if not isinstance(row, dict):
            raise UsageError(f"{path}[{number}]: got {row!r}, expected a mapping such as {{road: any_road, …}}")
        found.append(reader.entry(row, f"{path}[{number}]"))
    return found


def _as_feature(entries: Iterable[Entry]) -> str:
    entries = list(entries)
    if marked := sum(entry.rejected for entry in entries):
        raise UsageError(f"{marked} of the relations are rejected, which .feature cannot tell; write .csv or .yaml")
    return feature((entry.statement for entry in entries), "Relations from traffic rules")


def _from_feature(reader: Reader, path: Path) -> list[Entry]:
    return [Entry(statement, reader.region, reader.origin) for statement in read_feature_file(path, reader.ontology)]


_FORMATS: dict[str, tuple[Callable[[Reader, Path], list[Entry]], Callable[[Sequence[Entry]], str]]] = {
    ".csv": (_from_csv, _as_csv),
    ".yaml": (_from_yaml, _as_yaml),
    ".yml": (_from_yaml, _as_yaml),
    ".feature": (_from_feature, _as_feature),
}
