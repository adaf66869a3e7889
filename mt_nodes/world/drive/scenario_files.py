# SPDX-License-Identifier: Apache-2.0
"""Finds, reads and checks scenario files."""

from __future__ import annotations

from collections.abc import Mapping

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.drive.scenario_checks import checked

#: Suffixes of scenario files: our own language, and OpenSCENARIO.
SUFFIXES = (".scenario", ".xosc")
#: Folder of shipped scenarios with claims, which need the library that judges them.
CLAIMED = "scenarios/claims"


def scenarios_of(
    name: str, seed: int, parameters: Mapping[str, str] | None = None, strict: bool = False
) -> tuple[Scenario, ...]:
    """Return the scenarios of a file or of a shipped one, with ranges drawn by the seed.

    ``parameters``: of the file, by name. ``strict``: refuse what lenient reading repairs.
    Raises UsageError: there is no such file, or it has problems.
    """
    from mt_nodes.world.scenarios.language import load_scenarios  # a parser is heavy

    path = resources.find("scenarios", name, SUFFIXES, CLAIMED)
    scenarios = load_scenarios(path, parameters or {}, seed, strict)
    for scenario in scenarios:
        try:
            checked(scenario, load_map(scenario.road))
        except UsageError as error:
            raise UsageError(f"{path}: {error}") from error
    return scenarios
