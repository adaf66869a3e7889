# SPDX-License-Identifier: Apache-2.0
"""Named manipulations of a scene, as traffic rules use them, and the mutations that they are bound to.

``config/manipulations/*.yaml`` maps each name to one of ``mutate`` (a list of mutations, as in a relation),
``alias_of`` another name, or ``unsupported`` with the reason; ``listed_in`` gives its sources.
``config/in_world/*.yaml`` maps the same names to changes of a closed-loop scenario, or to the reason why there are
none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mt_nodes.base import plugins, resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import build
from mt_nodes.base.yaml_files import named_items, read_mapping, refuse_unknown
from mt_nodes.relations.mutations.base import Mutation

if TYPE_CHECKING:
    from mt_nodes.relations.world_changes.base import ScenarioChange

_WAYS = ("mutate", "alias_of", "unsupported")
_Named = tuple[tuple[str, Mapping[str, Any]], ...]
#: Sources of manipulations: AutoMT's repository, figure 3 of its paper, and its ontologies of the two regions.
LISTS = ("repository", "figure_3", "germany", "california")


@dataclass(frozen=True)
class Manipulation:
    """A named manipulation.

    Attributes:
        name: in snake case. mutate: name and parameters of each of its mutations, in order; for an alias, those of its
            target. alias_of: that target. unsupported: why there are none. listed_in: its sources.
        path: the file that defines it.
        in_world: name and parameters of each of its changes of a scenario. not_in_world: why there are none.
    """

    name: str
    mutate: _Named
    alias_of: str
    unsupported: str
    listed_in: tuple[str, ...]
    path: Path
    in_world: _Named = ()
    not_in_world: str = "it is not said how a world is made so"

    def mutations(self) -> tuple[Mutation, ...]:
        """Build the mutations.

        Raises UsageError: it is unsupported, or a mutation or parameter is not as the file says.
        """
        if self.unsupported:
            raise UsageError(f"manipulation '{self.name}' is unsupported: {self.unsupported}")
        where = f"{self.path}: {self.name}"
        return tuple(
            cast(Mutation, build(plugins.find("mutations", name, where), params, f"{where}.{name}"))
            for name, params in self.mutate
        )

    def changes(self) -> tuple[ScenarioChange, ...]:
        """Build the changes of a scenario.

        Raises UsageError: a world cannot be made so, or a change or parameter is not as the file says.
        """
        if not self.in_world:
            raise UsageError(f"manipulation '{self.name}' is none of a world: {self.unsupported or self.not_in_world}")
        where = f"{self.name} in a world"
        return tuple(
            cast("ScenarioChange", build(plugins.find("scenario_changes", name, where), params, f"{where}.{name}"))
            for name, params in self.in_world
        )

    @property
    def sensors(self) -> tuple[str, ...]:
        """Kinds of sensor that it changes."""
        classes = [plugins.find("mutations", name, f"{self.path}: {self.name}") for name, _ in self.mutate]
        return tuple(dict.fromkeys(sensor for cls in classes for sensor in cls.sensors))  # type: ignore[attr-defined]

    @property
    def summary(self) -> str:
        """Its binding, in one line."""
        if self.unsupported:
            return f"unsupported: {self.unsupported}"
        mutations = " + ".join(
            " ".join([name, *(f"{k}={v}" for k, v in params.items())]) for name, params in self.mutate
        )
        return f"as {self.alias_of}: {mutations}" if self.alias_of else mutations

    def as_plain(self) -> dict[str, Any]:
        """Return it in the form of ``mt list manipulations --json``."""
        return {
            "name": self.name,
            "summary": self.summary,
            "mutate": [{name: dict(params)} for name, params in self.mutate],
            "sensors": list(self.sensors),
            "in_world": [{name: dict(params)} for name, params in self.in_world],
            "not_in_world": "" if self.in_world else self.unsupported or self.not_in_world,
            "alias_of": self.alias_of,
            "unsupported": self.unsupported,
            "listed_in": list(self.listed_in),
        }


@lru_cache
def manipulations() -> dict[str, Manipulation]:
    """Return every manipulation of the package by name, aliases resolved. Raises UsageError."""
    read: dict[str, Manipulation] = {}
    for path in resources.shipped("manipulations").values():
        for name, data in read_mapping(path).items():
            if name in read:
                raise UsageError(f"{path}: '{name}' is in {read[name].path}, too")
            read[name] = _read(name, data, path)
    _in_worlds(read)
    return {name: _resolved(one, read) for name, one in sorted(read.items())}


def find(name: str) -> Manipulation:
    """Return a manipulation. Raises UsageError: there is none of this name; suggests the nearest."""
    known = manipulations()
    if name not in known:
        raise UsageError(f"no manipulation '{name}'{suggest(name, known)}")
    return known[name]


def mutations_named(name: str, params: Mapping[str, Any], where: str) -> tuple[Mutation, ...]:
    """Return the mutation of a name, or the mutations of the manipulation of that name.

    Raises UsageError: there is neither; a manipulation has parameters; or one is wrong. Names the place, ``where``.
    """
    if plugins.get("mutations", name) or name not in manipulations():
        return (cast(Mutation, build(plugins.find("mutations", name, where), params, f"{where}.{name}")),)
    if params:
        raise UsageError(
            f"{where}: got {', '.join(params)} for {name}, which is a manipulation and has its own parameters; for "
            f"others write the mutation that `mt show {name}` names"
        )
    return find(name).mutations()


def _named(value: Any, where: str) -> _Named:
    return tuple(named_items(value, where))


def _read(name: str, data: Any, path: Path) -> Manipulation:
    where = f"{path}: {name}"
    if not isinstance(data, dict):
        raise UsageError(f"{where}: got {data!r}, expected a mapping with one of {', '.join(_WAYS)}")
    refuse_unknown(data, (*_WAYS, "listed_in"), where)
    if len(ways := [way for way in _WAYS if way in data]) != 1:
        raise UsageError(f"{where}: got {', '.join(ways) or 'nothing'}, expected one of {', '.join(_WAYS)}")
    listed_in = tuple(data.get("listed_in") or ())
    refuse_unknown(dict.fromkeys(listed_in), LISTS, f"{where}: listed_in")
    bound = _named(data["mutate"], f"{where}.mutate") if "mutate" in data else ()
    return Manipulation(name, bound, data.get("alias_of", ""), data.get("unsupported", ""), listed_in, path)


def _in_worlds(read: dict[str, Manipulation]) -> None:
    """Add the changes of a scenario to the manipulations."""
    paths: dict[str, Path] = {}
    for path in resources.shipped("in_world").values():
        for name, value in read_mapping(path).items():
            if name in paths or name not in read or not read[name].mutate:
                expected = (
                    "a name that is bound to mutations" if name not in paths else f"it once; {paths[name]} has it"
                )
                raise UsageError(f"{path}: got '{name}', expected {expected}")
            paths[name] = path
            fields = (
                {"not_in_world": value} if isinstance(value, str) else {"in_world": _named(value, f"{path}: {name}")}
            )
            read[name] = replace(read[name], **fields)


def _resolved(one: Manipulation, known: Mapping[str, Manipulation]) -> Manipulation:
    if not one.alias_of:
        return one
    target = known.get(one.alias_of)
    if target is None or not target.mutate:
        got = f"alias_of: got '{one.alias_of}', expected a name that is bound to a mutation"
        raise UsageError(f"{one.path}: {one.name}: {got}")
    return replace(one, mutate=target.mutate, in_world=target.in_world, not_in_world=target.not_in_world)
