# SPDX-License-Identifier: Apache-2.0
"""One run in the closed loop, checked: who drives through what, judged by what; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.data.transforms import TransformTree
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.compatibility import check_requirements, incompatibility
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.recorded_drives import episode_line, load_recorded_drives
from mt_nodes.engine.waivers import load_waivers
from mt_nodes.relations.relation import LOOP_SHAM, load_suite
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.relations.world_changes.change_application import ChangedWorld
from mt_nodes.runs.loop.other_simulators import check_simulator, settings_given
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.loop.scenario_request import USUAL_EPISODES, ScenarioRequest, checked_request
from mt_nodes.runs.relation_choice import choose_relations
from mt_nodes.runs.run_directory import SuiteRun
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack
from mt_nodes.world.drive.jitter import jittered
from mt_nodes.world.drive.map_mirror import MIRRORED
from mt_nodes.world.drive.maps import is_map_file, load_map
from mt_nodes.world.drive.scenario import Scenario, TraceClaim
from mt_nodes.world.drive.scenario_files import scenarios_of


@dataclass(frozen=True, eq=False)
class PlannedEpisode:
    """One episode that is to be driven.

    Attributes:
        number: of it. setting: what its world is made of. file: of which that is.
        recorded_world: what the follow-up of a finished run drove through, where that is driven again; None: it is yet
            to be drawn.
    """

    number: int
    setting: Setting
    file: str
    recorded_world: ChangedWorld | None = None

    @property
    def name(self) -> str:
        """The scenario as journals name it: episodes of one name are one drive, repeated."""
        return f"{self.file}#{self.setting.scenario.name}"

    def claim_name(self, claim: TraceClaim) -> str:
        """Return the name of a claim about the scenario in results: file, scenario, line and column."""
        return f"{self.name}:{claim.line}:{claim.column}"


@dataclass(frozen=True, eq=False)
class ScenarioRun(SuiteRun[ScenarioRequest]):
    """Everything a run in the closed loop needs, checked: what cannot run was refused while making it."""

    COMMAND, KEY, REQUEST = "mt scenario", "scenarios", ScenarioRequest

    rig: Rig
    episodes: tuple[PlannedEpisode, ...]

    @classmethod
    def make(cls, request: ScenarioRequest, out: Path) -> ScenarioRun:
        """Load and check what the request names. Raises UsageError: saying what to type instead."""
        plugins.add_directories(map(Path, request.plugins))
        stack = with_faults(load_stack(request.stack), request.faults)
        request = checked_request(request, stack)
        check_simulator(request, stack)
        choice = choose_relations(request.relations, partial(incompatibility, stack=stack, loop=True), loop=True)
        request = dataclasses.replace(request, relations=choice.relations)
        suite = load_suite(request.relations, LOOP_SHAM)
        check_requirements(suite, stack, loop=True)
        if request.waivers:
            load_waivers(Path(request.waivers))
        episodes = _recorded(request) if request.only else _planned(request)
        claimed_drives(episodes)  # refuses claims that nobody can judge before anything is driven
        return cls(request, out, stack, suite, Rig.for_stack(stack), episodes, left_out=choice.left_out)

    @property
    def static_transforms(self) -> TransformTree:
        """Where the sensors are mounted."""
        return self.rig.mounts

    @property
    def topics_of_sources(self) -> dict[str, Any]:
        """Scenario -> role -> topic."""
        return {planned.name: dict(self.rig.topics) for planned in self.episodes}

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What is offered of every episode."""
        return offers(self.suite, only=self.only)

    @property
    def pairs_to_come(self) -> int:
        """How many verdicts a whole run owes."""
        return len(self.episodes) * sum(len(offer.judges) for offer in self.offers)

    @property
    def input_condition(self) -> dict[str, Any]:
        """What is driven through: the scenario of each episode stands where a replay has its bags.

        Of one scenario alone nothing can be said but what happens in it: each repetition is a case of its own, unless
        they are copies. Of several, each scenario is a case, however often it was repeated.
        """
        request, names = self.request, [planned.name for planned in self.episodes]
        one = len(set(names)) == 1 and request.jitter > 0.0
        drives = {"drives": list(range(len(names)))} if one else {}
        claims = {} if request.only else claimed_drives(self.episodes)
        named: dict[str, Any] = {"claims": claims} if claims else {}
        named |= _map_digests({planned.setting.scenario.road for planned in self.episodes})
        named |= {"claim_followups": True} if request.claim_followups else {}
        if request.simulator:
            named["simulator"] = {"name": request.simulator, "settings": settings_given(request)}
        return {"pace": "lockstep", "transport": request.transport, "bags": names, **drives, "limit": None, **named}


def _map_digests(roads: Iterable[str]) -> dict[str, Any]:
    """Return the digests of users' maps, so that a run does not go on with another map; nothing if there is none."""
    files = sorted(road.removesuffix(MIRRORED) for road in roads if is_map_file(road.removesuffix(MIRRORED)))
    if not files:
        return {}
    from mt_nodes.world.drive.map_files import digest_of  # SciPy is for those who have a map of their own

    return {"maps": {file: digest_of(file) for file in files}}


def claimed_drives(episodes: Iterable[PlannedEpisode]) -> dict[str, int]:
    """Return how many drives each claim of a run is about, by name.

    Raises UsageError: there are claims, and the library that judges them is missing.
    """
    drives: dict[str, int] = {}
    for planned in episodes:
        for claim in planned.setting.scenario.claims:
            drives[planned.claim_name(claim)] = drives.get(planned.claim_name(claim), 0) + 1
    if drives:
        from mt_nodes.world.scenarios.temporal.robustness import require_library

        require_library()
    return drives


def _recorded(request: ScenarioRequest) -> tuple[PlannedEpisode]:
    """Return the episode of the one pair of a finished run, both worlds made of its ledger.

    Raises MtError: the run did not drive that pair, or the worlds cannot be made again.
    """
    directory, pair = Path(request.recorded), Pair.parse(request.only)
    recorded = load_recorded_drives(directory, episode_line(directory, pair))
    setting, followup_setting = recorded.settings
    draws = tuple(dict(draw) for _, draw in recorded.changes)
    world = ChangedWorld(followup_setting, recorded.effects, draws, recorded.back, recorded.window)
    return (PlannedEpisode(pair.episode, setting, ", ".join(request.scenarios), world),)


def _planned(request: ScenarioRequest) -> tuple[PlannedEpisode, ...]:
    """Return every episode: all scenarios of all files, then all again: their ranges drawn anew, a little elsewhere.

    Raises UsageError: a file cannot be read, or a scenario cannot be driven through.
    """
    first = _scenarios(request, 0)
    repeat = request.repeat or -(-USUAL_EPISODES // len(first))
    settings = [*first, *(row for repetition in range(1, repeat) for row in _scenarios(request, repetition))]
    return tuple(PlannedEpisode(number, setting, file) for number, (file, setting) in enumerate(settings))


def _scenarios(request: ScenarioRequest, repetition: int) -> list[tuple[str, Setting]]:
    found = []
    for file in request.scenarios:
        for scenario in scenarios_of(file, request.seed + repetition, request.parameters, request.strict):
            rng = generator(request.seed, f"jitter of {file}#{scenario.name}", 0, None, repetition)
            try:
                found.append((file, _setting(scenario, rng, request.jitter if repetition else 0.0)))
            except UsageError as error:
                raise UsageError(f"{file}: {error}") from error
    if not found:
        raise UsageError(f"{', '.join(request.scenarios)}: no scenario is created; expected CreateScenario")
    return found


def _setting(scenario: Scenario, rng: np.random.Generator, jitter: float) -> Setting:
    """Return what the world of an episode is made of; without ``jitter`` it is the scenario to the last bit."""
    road = load_map(scenario.road)
    return Setting(jittered(scenario, road, rng, jitter) if jitter else scenario, road)
