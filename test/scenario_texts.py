# SPDX-License-Identifier: Apache-2.0
"""Scripts for tests of the scenario language."""

from __future__ import annotations

from pathlib import Path

from mt_nodes.world.drive.scenario import Actor, Scenario
from mt_nodes.world.scenarios.language import Problem, read

FOLDER = Path(__file__).parent / "scenario_language"
SHIPPED = sorted((Path(__file__).parents[1] / "config" / "scenarios").glob("*.scenario"))
EGO = 'ego = AV(("lane_1" -> 20, , 8));\n'


def scene(people: str = "", vehicles: str = "", before: str = "", road: str = "straight", ego: str = EGO) -> str:
    """Return a script with one scenario ``s``."""
    return f'{before}\n{ego}s = CreateScenario {{ load("{road}"); ego; {{{vehicles}}}; {{{people}}}; }};\n'


def only(text: str, **how: object) -> Scenario:
    """Return the one scenario of a script that has no problems."""
    reading = read(text, **how)  # type: ignore[arg-type]
    assert reading.problems == ()
    (scenario,) = reading.scenarios
    return scenario


def actor(text: str, road: str = "straight", ego: str = EGO) -> Actor:
    """Return somebody, written as ``Person(…)``, ``Vehicle(…)`` …, in a scenario."""
    vehicles = text if text.startswith("Vehicle") else ""
    (one,) = only(scene("" if vehicles else text, vehicles, road=road, ego=ego), strict=True).actors
    return one


def first(text: str, **how: object) -> Problem:
    """Return the first problem of a script."""
    return read(text, **how).problems[0]  # type: ignore[arg-type]
