# SPDX-License-Identifier: Apache-2.0
"""Requirements of the user's, from YAML, CSV or ReqIF; errors name file and line."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base.errors import UsageError, needs_extra
from mt_nodes.base.params import build, param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.wording import counted
from mt_nodes.base.yaml_files import read_list, read_text

#: Share of violated pairs that is accepted where a requirement states none.
DEFAULT_RATE = 0.05


@dataclass(frozen=True)
class SafetyRequirement(PlainData):
    """What the stack must do, and which relations test it.

    Attributes:
        max_rate: share of violated pairs that is accepted: the upper end of the 95 % interval must not exceed it.
        frames: that must be decided for each relation; None: as many as the rate needs if each counted for itself.
        relations: names or files. Relations that name the requirement in their own file are added by the plan.
    """

    id: str = param("", help="as in your own documents")
    text: str = param("", help="what is required")
    hazard: str = param("", help="what happens if it is missed")
    relations: tuple[str, ...] = param((), help="relations that test it")
    max_rate: float = param(DEFAULT_RATE, low=1e-6, high=0.5, help="accepted share of violated pairs")
    frames: int | None = param(None, low=1, help="fewest decided frames (default: what max_rate needs at least)")


def read_requirements(path: Path) -> tuple[SafetyRequirement, ...]:
    """Read a file by its suffix. Raises UsageError: it is no such file; names the line."""
    readers = {".yaml": _yaml_rows, ".yml": _yaml_rows, ".csv": _csv_rows, ".reqif": _reqif_rows}
    if path.suffix.lower() not in readers:
        raise UsageError(f"{path}: got the suffix '{path.suffix}', expected .yaml, .csv or .reqif")
    found: dict[str, SafetyRequirement] = {}
    for where, row in readers[path.suffix.lower()](path):
        one = build(SafetyRequirement, row, where)
        for key in ("id", "text"):
            if not getattr(one, key).strip():
                raise UsageError(f"{where}: {key} is empty; each requirement needs an id and a text")
        if one.id in found:
            raise UsageError(f"{where}: got id '{one.id}' twice, expected each once")
        found[one.id] = one
    if not found:
        raise UsageError(f"{path}: holds no requirement")
    return tuple(found.values())


def _yaml_rows(path: Path) -> Iterator[tuple[str, Any]]:
    rows = read_list(path)
    node = yaml.compose(read_text(path), Loader=yaml.SafeLoader)
    lines = [item.start_mark.line + 1 for item in node.value] if isinstance(node, yaml.SequenceNode) else []
    for line, row in zip(lines, rows, strict=True):
        # `id: 7` is a number in YAML and a name to whoever writes it.
        named = {**row, "id": str(row["id"])} if isinstance(row, dict) and isinstance(row.get("id"), int) else row
        yield f"{path}, line {line}", named


def _csv_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    text = read_text(path)
    first = text.partition("\n")[0]
    reader = csv.DictReader(
        io.StringIO(text, newline=""), delimiter=";" if first.count(";") > first.count(",") else ","
    )
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if None in row or None in row.values():
            raise UsageError(f"{where}: got other columns than {counted(len(reader.fieldnames or ()), 'column')}")
        yield where, _texts(row, where)


def _texts(row: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return a row of texts with a list of relations and a number; empty ones are left out."""
    plain: dict[str, Any] = {key.strip(): value.strip() for key, value in row.items() if value and value.strip()}
    if "relations" in plain:
        plain["relations"] = [word for word in re.split(r"[\s,;]+", plain["relations"]) if word]
    for key, kind in (("max_rate", float), ("frames", int)):
        try:
            plain |= {key: kind(plain[key])} if key in plain else {}
        except ValueError as error:
            raise UsageError(f"{where}: {key}: got '{plain[key]}', expected a number") from error
    return plain


#: Attributes of ReqIF by what they stand for here: the names that the ReqIF implementation guide recommends first.
_REQIF = {
    "id": ("reqif.foreignid", "id", "identifier"),
    "text": ("reqif.text", "text", "description"),
    "hazard": ("hazard",),
    "relations": ("relations", "metamorphic relations"),
    "max_rate": ("max_rate", "accepted rate"),
    "frames": ("frames",),
}


def _reqif_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the objects of a ReqIF file that have a text; headings have none."""
    data = read_text(path)
    # Nothing in ReqIF needs a document type, and entities are declared nowhere else: none can be expanded.
    if "<!DOCTYPE" in data.upper() or "<!ENTITY" in data.upper():
        raise UsageError(f"{path}: got a document type (DTD), expected a ReqIF file without; entities are not read")
    with needs_extra("evidence", "ReqIF needs the package reqif; type"):
        from reqif.parser import ReqIFParser
    try:
        bundle = ReqIFParser.parse_from_string(data)
        content = bundle.core_content.req_if_content
        names = {
            attribute.identifier: (attribute.long_name or "").lower()
            for kind in content.spec_types or ()
            for attribute in getattr(kind, "attribute_definitions", None) or ()
        }
        objects = list(content.spec_objects or ())
    except Exception as error:  # its parser and lxml raise errors of many kinds
        raise UsageError(f"{path}: cannot be read as ReqIF: {error}") from error
    for one in objects:
        values = {names.get(a.definition_ref, ""): _reqif_text(a) for a in one.attributes}
        where = f"{path}, line {one.xml_node.sourceline}, object {one.identifier}"
        row = _texts({key: _first(values, known) for key, known in _REQIF.items()}, where)
        if "text" in row:
            yield where, {"id": one.identifier, **row}


def _reqif_text(attribute: Any) -> str:
    """Return the value of an attribute as text: of XHTML its texts alone."""
    inner = attribute.xml_node.find("THE-VALUE")
    if inner is not None:
        return " ".join(" ".join(inner.itertext()).split())
    return attribute.value if isinstance(attribute.value, str) else " ".join(attribute.value or ())


def _first(values: Mapping[str, str], names: Iterable[str]) -> str:
    return next((values[name] for name in names if values.get(name)), "")
