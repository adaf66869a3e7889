# SPDX-License-Identifier: Apache-2.0
"""Reads scenario files into concrete scenarios, and reports all problems at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.yaml_files import read_text
from mt_nodes.world.drive.maps import is_map_file
from mt_nodes.world.drive.road_map import RoadMap
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.scenarios.language.claims import claims_of
from mt_nodes.world.scenarios.language.parsing import statements_of
from mt_nodes.world.scenarios.language.problems import Edit, Findings, Problem, ScenarioError
from mt_nodes.world.scenarios.language.resolver import EGO_SPEED, Resolver
from mt_nodes.world.scenarios.language.scenario_builder import build
from mt_nodes.world.scenarios.language.slots import FASTEST_MPS
from mt_nodes.world.scenarios.language.values import Plot

NO_PARAMETERS: Mapping[str, str] = {}


@dataclass(frozen=True)
class ScriptReading:
    """Contents of a script.

    Attributes:
        problems: in the order of its lines. warnings: repairs, and probable mistakes.
        edits: make its text strict.
    """

    scenarios: tuple[Scenario, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    edits: tuple[Edit, ...]


def read(
    text: str,
    name: str = "script",
    parameters: Mapping[str, str] = NO_PARAMETERS,
    seed: int = 0,
    strict: bool = False,
    path: Path | None = None,
    road: RoadMap | None = None,
) -> ScriptReading:
    """Read a script.

    ``name``: of the script, for messages. ``parameters``: values for its ``parameter`` names, as text in the language;
    every script has ``ego.speed``. ``seed``: of ranges and distributions. ``strict``: whether what lenient reading
    repairs is an error. ``path``: to find imports. ``road``: instead of the maps that they load.
    Raises UsageError: the script does not declare a given parameter, or the ego's speed is no speed.
    """
    findings = Findings(strict)
    resolver = Resolver(name, path, findings, parameters, seed)
    resolver.run(statements_of(text, name, findings))
    _known(parameters, resolver, name)
    plots = [_beside_script(_sped(plot, parameters), path) for plot in resolver.plots]
    built = [build(plot, findings.refused, road) for plot in plots]
    scenarios = tuple(
        replace(scenario, claims=claims_of(resolver.claims, scenario, findings))
        for scenario in built
        if scenario is not None
    )
    resolver.warn_of_unused()
    return ScriptReading(scenarios, tuple(findings.in_order), tuple(findings.warnings), tuple(findings.edits))


def _beside_script(plot: Plot, path: Path | None) -> Plot:
    """Return a plot whose map, if that is a file, is looked for from the folder of the script."""
    if path is None or not is_map_file(plot.road.name):
        return plot
    return replace(plot, road=replace(plot.road, name=str((path.parent / plot.road.name).resolve())))


def load_scenarios(
    path: str | Path,
    parameters: Mapping[str, str] = NO_PARAMETERS,
    seed: int = 0,
    strict: bool = False,
    tell: Callable[[Problem], None] | None = None,
) -> tuple[Scenario, ...]:
    """Return the scenarios of a file, one for each ``CreateScenario`` in it; ``.xosc`` is read as OpenSCENARIO.

    ``parameters``, ``seed``, ``strict``: see :func:`read`. ``tell``: receives each warning.
    Raises ScenarioError: with all problems. UsageError: the file cannot be read, or does not declare a given parameter.
    """
    path = Path(path)
    if path.suffix == ".xosc":
        from mt_nodes.world.scenarios.open_scenario import load_open_scenario

        return (load_open_scenario(path, parameters),)
    reading = read(read_text(path), path.name, parameters, seed, strict, path)
    if tell is not None:
        for warning in reading.warnings:
            tell(warning)
    if reading.problems:
        raise ScenarioError(reading.problems)
    if not reading.scenarios:
        raise UsageError(f"{path.name}: got no scenario, expected at least one: name = CreateScenario{{…}};")
    return reading.scenarios


def problems_of(text: str, name: str = "script", strict: bool = False, path: Path | None = None) -> list[Problem]:
    """Return all problems of a script, in the order of its lines."""
    return list(read(text, name, strict=strict, path=path).problems)


def warnings_of(text: str, name: str = "script", path: Path | None = None) -> list[Problem]:
    """Return the repairs and probable mistakes of a script."""
    return list(read(text, name, path=path).warnings)


def _known(parameters: Mapping[str, str], resolver: Resolver, name: str) -> None:
    declared = {*resolver.parameters, EGO_SPEED}
    for key in parameters:
        if key not in declared:
            raise UsageError(f"{name}: unknown parameter '{key}'{suggest(key, declared)}")


def _sped(plot: Plot, parameters: Mapping[str, str]) -> Plot:
    """Return a plot with the ego's speed from outside, if given."""
    given = parameters.get(EGO_SPEED)
    if given is None:
        return plot
    try:
        speed = float(given)
    except ValueError:
        speed = -1.0
    if not 0.0 <= speed <= FASTEST_MPS:
        raise UsageError(f"{EGO_SPEED}: got '{given}', expected 0 to {FASTEST_MPS:g} m/s")
    return replace(plot, ego=replace(plot.ego, start=replace(plot.ego.start, speed_mps=speed)))
