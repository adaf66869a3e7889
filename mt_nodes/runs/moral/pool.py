# SPDX-License-Identifier: Apache-2.0
"""Pools of dilemmas, read from YAML: those that ship in ``config/dilemmas``, and a user's own.

A file maps names to dilemmas. What is left out has the default of :class:`~mt_nodes.runs.moral.dilemma.Dilemma`; a
party is a list of members, each a kind, or a mapping of ``kind``, ``number`` (of such) and what is known of the
person::

    child_and_two_adults:
      first: [{kind: child, age_years: 7}]
      second: [{kind: adult, number: 2, compliance: crossing_on_red}]
      speed_mps: 25.0
      gap_m: 34.0
      environment: {wetness: 1.0}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from itertools import groupby
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import build
from mt_nodes.base.yaml_files import read_mapping
from mt_nodes.runs.moral.dilemma import LANES, Dilemma, Member
from mt_nodes.runs.moral.dilemma_stage import staged
from mt_nodes.world.drive.bodies import TOP_MPS
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Environment, Person
from mt_nodes.world.drive.scenario_checks import checked
from mt_nodes.world.scene.objects import KINDS

FOLDER, PUBLISHED = "dilemmas", "published"
_PARTIES = ("first", "second")
_LARGEST = {"speed_mps": TOP_MPS, "gap_m": 500.0, "spacing_m": 5.0}
#: Of one mapping of a file; more have no room in a lane.
_MOST = 50


def load_pool(name: str = "default") -> tuple[Dilemma, ...]:
    """Return the dilemmas of a shipped pool by name, or of the user's own by path.

    Raises UsageError: naming the file, the dilemma, the key, what was got and what was expected.
    """
    path = resources.find(FOLDER, name)
    return tuple(_dilemma(str(key), value, f"{path}: {key}") for key, value in read_mapping(path).items())


def published() -> tuple[Dilemma, ...]:
    """Return the two that were published with the idea: ``adult_ahead_child_left`` and ``person_and_boar``."""
    return load_pool(PUBLISHED)


def as_plain(pool: Iterable[Dilemma]) -> dict[str, Any]:
    """Return what a file of a pool holds: dilemmas by name, without what is the default."""
    return {dilemma.name: _plain(dilemma) for dilemma in pool}


def _dilemma(name: str, value: Any, where: str) -> Dilemma:
    if not name.strip():
        raise UsageError(f"{where.rstrip()} got {name!r} as the name of a dilemma, expected a word or more")
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping of first, second …")
    if "name" in value:
        raise UsageError(f"{where}: got 'name', expected none: its key is its name")
    given = dict(value) | {party: _party(value[party], f"{where}.{party}") for party in _PARTIES if party in value}
    if "environment" in value:
        given["environment"] = build(Environment, value["environment"], f"{where}.environment")
    dilemma = build(Dilemma, {"name": name, **given}, where)
    if dilemma.lane not in LANES:
        raise UsageError(f"{where}.lane: got '{dilemma.lane}', expected {' or '.join(LANES)}")
    for key, most in _LARGEST.items():
        if not 0.0 < (got := getattr(dilemma, key)) <= most:
            raise UsageError(f"{where}.{key}: got {got:g}, expected more than 0, {most:g} at most")
    try:
        for swapped in (False, True):
            checked(staged(dilemma, swapped), load_map(dilemma.road))
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    return dilemma


def _party(value: Any, where: str) -> tuple[Member, ...]:
    if not isinstance(value, list):
        raise UsageError(f"{where}: got {value!r}, expected a list of members such as [adult, {{kind: child}}]")
    return tuple(member for i, row in enumerate(value) for member in _members(row, f"{where}[{i}]"))


def _members(row: Any, where: str) -> list[Member]:
    """Read a kind, or a mapping of kind, number and what is known of the person."""
    if not isinstance(row, str | Mapping):
        raise UsageError(f"{where}: got {row!r}, expected a kind such as adult, or {{kind: adult, age_years: 40}}")
    given = {"kind": row} if isinstance(row, str) else dict(row)
    kind, number = given.pop("kind", "adult"), given.pop("number", 1)
    if not isinstance(kind, str) or kind not in KINDS:
        raise UsageError(f"{where}.kind: got {kind!r}, which does not exist{suggest(str(kind), KINDS)}")
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= _MOST:
        raise UsageError(f"{where}.number: got {number!r}, expected a whole number, 1 to {_MOST}")
    return [Member(kind, build(Person, given, where) if given else None)] * number


def _plain(dilemma: Dilemma) -> dict[str, Any]:
    parties = {name: list(_rows(party)) for name, party in zip(_PARTIES, dilemma.parties, strict=True)}
    environment = _set_fields(dilemma.environment)
    return (
        parties
        | _set_fields(dilemma, "name", "environment", *_PARTIES)
        | ({"environment": environment} if environment else {})
    )


def _rows(party: Iterable[Member]) -> Iterator[dict[str, Any]]:
    for member, alike in groupby(party):
        number = len(list(alike))
        yield (
            {"kind": member.kind} | ({"number": number} if number > 1 else {}) | _set_fields(member.person or Person())
        )


def _set_fields(value: Any, *without: str) -> dict[str, Any]:
    """Return the fields of a dataclass that have not their default, by name."""
    values = {
        each.name: (getattr(value, each.name), each.default) for each in fields(value) if each.name not in without
    }
    return {name: got for name, (got, default) in values.items() if got != default}
