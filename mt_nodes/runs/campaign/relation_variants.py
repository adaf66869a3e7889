# SPDX-License-Identifier: Apache-2.0
"""From a relation and values of its parameters to relation variants, one for each combination."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.jsonl import jsonable
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.relation import FOLDER, RULE_BORN, load_relation
from mt_nodes.runs.campaign.file import CampaignRelation
from mt_nodes.runs.relation_choice import choose_relations
from mt_nodes.stacks.stack import Stack

#: Parts of a relation that have parameters.
SECTIONS = ("mutate", "check", "given", "baseline")
_NAME = re.compile(r"[A-Za-z0-9_.+-]+")

Plain = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """A relation of a campaign.

    ``text``: its YAML; empty for one that ships as it is. ``version``: SHA-256 of what it says, defaults filled in.
    """

    id: str
    text: str
    version: str


def relations_for(
    stack: Stack, rows: Sequence[CampaignRelation]
) -> tuple[tuple[CampaignRelation, ...], Mapping[str, str]]:
    """Return the relations for a stack, in place of patterns and suites, and what is left out and why.

    Raises UsageError: a pattern or suite stands for nothing that the stack can be judged by.
    """
    relations: list[CampaignRelation] = []
    left_out: dict[str, str] = {}
    for row in rows:
        choice = choose_relations((row.name,), partial(incompatibility, stack=stack))
        if row.values or choice.relations == (row.name,):
            relations.append(row)
            continue
        before = {one.name for one in relations if not one.values}
        relations += [CampaignRelation(name, {}) for name in choice.relations if name not in before]
        left_out |= choice.left_out
    return tuple(relations), left_out


def variants(relations: Sequence[CampaignRelation]) -> tuple[Variant, ...]:
    """Return the variants of all relations, in their order.

    Raises UsageError: a relation or parameter is unknown, a value is refused, or two variants have one id.
    """
    found = tuple(itertools.chain.from_iterable(map(_variants, relations)))
    ids = [variant.id for variant in found]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise UsageError(f"relations: got {', '.join(twice)} twice, expected each once")
    return found


def _variants(entry: CampaignRelation) -> Iterator[Variant]:
    relation = load_relation(entry.name)
    plain = jsonable(relation.as_plain())
    if not entry.values:
        yield Variant(relation.id, "" if _ships(entry.name) else _yaml(plain), version_of(plain))
        return
    short = _short_names(tuple(entry.values))
    for values in itertools.product(*entry.values.values()):
        chosen = dict(zip(entry.values, values, strict=True))
        name = "~".join((relation.id, *(f"{short[key]}_{_word(key, value)}" for key, value in chosen.items())))
        changed = _with_values(plain, chosen, f"relations: {entry.name}")
        yield _checked({**changed, "id": name}, f"relations: {entry.name}.set")


def version_of(value: Any) -> str:
    """Return the SHA-256 of a plain value, as hexadecimal text."""
    return hashlib.sha256(json.dumps(jsonable(value), sort_keys=True).encode()).hexdigest()


def _ships(name: str) -> bool:
    return name in resources.shipped(FOLDER) or (name.startswith(RULE_BORN) and not name.endswith((".yaml", ".yml")))


def _yaml(plain: Plain) -> str:
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)


def _checked(plain: Plain, where: str) -> Variant:
    """Read it as a user's file would be."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / f"{plain['id']}.yaml"
        path.write_text(_yaml(plain), encoding="utf-8")
        try:
            relation = load_relation(str(path))
        except UsageError as error:
            raise UsageError(str(error).replace(str(path), where)) from error
    return Variant(relation.id, _yaml(plain), version_of(relation.as_plain()))


def _with_values(plain: Plain, chosen: Mapping[str, Any], where: str) -> Plain:
    changed = deepcopy(plain)
    places = _places(changed)
    for key, value in chosen.items():
        found = [at for name, at in places if key in (name, name.partition(".")[2])]
        if len(found) != 1:
            raise UsageError(f"{where}.set: {_unclear(key, [name for name, _ in places], len(found))}")
        parameters, name = found[0]
        parameters[name] = value
    return changed


def _places(plain: Plain) -> list[tuple[str, tuple[Plain, str]]]:
    """Return every parameter as (``<section>.<plugin>.<parameter>``, where it stands)."""
    rows = []
    for section in SECTIONS:
        value = plain.get(section) or []
        for plugin in value if isinstance(value, list) else [value]:
            for name, parameters in plugin.items():
                rows += [(f"{section}.{name}.{each}", (parameters, each)) for each in parameters]
    return rows


def _unclear(key: str, known: Sequence[str], count: int) -> str:
    if count:
        full = ", ".join(name for name in known if name.endswith(f".{key}"))
        return f"'{key}' stands in {count} places, expected one of {full}"
    short = sorted({name.partition(".")[2] for name in known})
    return f"unknown parameter '{key}'{suggest(key, short)}"


def _short_names(keys: Sequence[str]) -> dict[str, str]:
    """Return the parameter's own name where that tells them apart, else the whole one."""
    last = [key.rpartition(".")[2] for key in keys]
    return {key: name if last.count(name) == 1 else key for key, name in zip(keys, last, strict=True)}


def _word(key: str, value: Any) -> str:
    word = f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)
    if not _NAME.fullmatch(word):
        raise UsageError(f"relations: set.{key}: got {value!r}, expected a number, or a word fit for a file name")
    return word
