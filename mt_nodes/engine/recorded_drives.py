# SPDX-License-Identifier: Apache-2.0
"""A pair of drives as a finished run left it: both worlds and both traces, made of ledger and ``episodes/``."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import InfrastructureError, MtError, UsageError
from mt_nodes.base.params import build, structure
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.ledger import load_draws, read_ledger
from mt_nodes.relations.world_changes.base import Setting, WorldEffects
from mt_nodes.relations.world_changes.change_application import WHOLE, Window, applied
from mt_nodes.world.drive.driven import ScenarioTrace
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Scenario
from mt_nodes.world.drive.trace_file import load_trace

Line = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RecordedDrives:
    """Both arms of a pair.

    Attributes:
        settings, drives: of the source and of the follow-up. effects: how the follow-up's world differs.
        changes: what was done to the source's world, by name, and what was drawn for it.
        back, window: what `mt shrink` left of it, see
            :class:`mt_nodes.relations.world_changes.change_application.ChangedWorld`.
    """

    settings: tuple[Setting, Setting]
    drives: tuple[ScenarioTrace, ScenarioTrace]
    effects: WorldEffects
    changes: tuple[tuple[str, Mapping[str, Any]], ...]
    back: tuple[str, ...] = ()
    window: Window = WHOLE


def episode_lines(results_dir: Path, pairs: Collection[Pair] | None = None) -> dict[Pair, dict[str, Any]]:
    """Return the ledger lines of episodes by the follow-up's pair.

    ``pairs``: those that are wanted; None: all. Raises MtError: there is no ledger, or it is damaged.
    """
    followups = None if pairs is None else {pair.followup for pair in pairs}
    named = ((Pair.parse(line["pair"]), line) for line in read_ledger(results_dir) if line["type"] == "episode")
    return {pair: line for pair, line in named if followups is None or pair in followups}


def episode_line(results_dir: Path, pair: Pair) -> dict[str, Any]:
    """Return the ledger line of a pair of drives.

    Raises MtError: there is no ledger, or it is damaged; or nobody drove.
    """
    for line in episode_lines(results_dir, [pair]).values():
        return line
    raise UsageError(
        f"{results_dir}: pair '{pair}' drove nothing; expected a pair of a run of `mt scenario` that did "
        "(report.html shows the pairs of other runs, `mt reproduce` plays them again)"
    )


def load_recorded_drives(results_dir: Path, line: Line) -> RecordedDrives:
    """Return what a ledger line tells of: the changes are applied once more, with the draws of then.

    Raises InfrastructureError: a trace is missing, damaged or of another world, or the world cannot be made again.
    """
    try:
        setting = _setting(line["scenario"])
        rows, draws = line["changes"], load_draws(results_dir, dict(line))
        changes: list[Any] = [
            build(plugins.find("scenario_changes", r["name"], "change"), r["params"], r["name"]) for r in rows
        ]
        first, end = line.get("window", WHOLE)
        changed = applied(setting, changes, draws, line.get("back", ()), (first, end))
        source = _driven(results_dir / line["source"]["trace"], setting)
        followup = _driven(results_dir / line["trace"], changed.setting)
    except (MtError, LookupError, TypeError, ValueError) as error:
        raise InfrastructureError(
            f"{results_dir}: drives of pair {line['pair']} cannot be told: {type(error).__name__}: {error}"
        ) from error
    named = tuple((row["name"], draw) for row, draw in zip(rows, draws, strict=True))
    return RecordedDrives(
        (setting, changed.setting), (source, followup), changed.effects, named, changed.back, changed.window
    )


def _setting(scenario: Mapping[str, Any]) -> Setting:
    parsed: Scenario = structure(Scenario, scenario)
    return Setting(parsed, load_map(parsed.road))


def _driven(path: Path, setting: Setting) -> ScenarioTrace:
    trace, names = load_trace(path), tuple(actor.name for actor in setting.scenario.actors)
    if trace.names != names:
        raise InfrastructureError(f"{path}: got actors {trace.names}, expected {names}")
    if not len(trace):
        raise InfrastructureError(f"{path}: the drive ended before its first instant")
    return ScenarioTrace(trace, setting.scenario)
