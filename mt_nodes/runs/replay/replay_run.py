# SPDX-License-Identifier: Apache-2.0
"""One run, checked: what it replays, into what, judged by what; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base import plugins
from mt_nodes.base.dsse import SignedStatement
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.bags.bundles import Source, Unreadable
from mt_nodes.data.bags.reader import Topic
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.scenes import in_scenes
from mt_nodes.data.transforms import TransformTree, UnknownTransform, load_transforms
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.case_plan import FILE, CasePlan, write_cases
from mt_nodes.engine.compatibility import check_needs, check_requirements
from mt_nodes.engine.evidence_source import EvidenceSource
from mt_nodes.engine.first_pairs import FirstPairs
from mt_nodes.engine.judging import Offer
from mt_nodes.engine.plan import PLAN_FILE, ReplayedTopic, ReplayRequest, check_request
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.reduction.reduction import Reduction
from mt_nodes.engine.run_record import request_of
from mt_nodes.engine.schedule import EVERYTHING, Schedule
from mt_nodes.engine.waivers import load_waivers
from mt_nodes.relations.relation import load_suite, sham_for
from mt_nodes.runs.relation_choice import choose_relations
from mt_nodes.runs.replay.explored_frames import ExploredFrames, replay_misfit
from mt_nodes.runs.replay.opened_bags import first_readable, source_for
from mt_nodes.runs.replay.planned_cases import plan_of, refuse_missing_frames, schedule_of
from mt_nodes.runs.run_directory import SuiteRun
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import load_stack

#: Topics of a bag that are the suite's own or the middleware's.
NEVER_REPLAYED = frozenset({"/clock", "/rosout", "/parameter_events"})


@dataclass(frozen=True, eq=False)
class Damage:
    """What of a run's bags could not be read, as far as it was met: bags by path, bundles by episode and number."""

    bags: dict[str, InfrastructureError] = field(default_factory=dict)
    bundles: dict[tuple[int, int], Unreadable] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Run(SuiteRun[ReplayRequest]):
    """Everything a replay needs, checked: what cannot run was refused while making it."""

    COMMAND, KEY, REQUEST = "mt replay", "bags", ReplayRequest

    sources: tuple[Source, ...]
    damage: Damage = field(default_factory=Damage)
    plan: CasePlan | None = None
    schedule: Schedule = EVERYTHING

    @classmethod
    def make(cls, request: ReplayRequest, out: Path) -> Run:
        """Load and check what the request names. Raises UsageError: saying what to type instead."""
        plugins.add_directories(map(Path, request.plugins))
        stack = with_faults(load_stack(request.stack, request.stack_settings), request.faults)
        check_request(request, stack)
        plan = plan_of(request, stack)
        if plan and not request.only:
            request = dataclasses.replace(request, relations=plan.relations)
        choice = choose_relations(request.relations, functools.partial(replay_misfit, request, stack))
        request = dataclasses.replace(request, relations=choice.relations)
        suite = load_suite(request.relations, sham_for(stack.inputs), stack.traits)
        check_requirements(suite, stack, over_topics=request.transport == "ros")
        if request.waivers:
            load_waivers(Path(request.waivers))
        extra = load_transforms(Path(request.transforms)) if request.transforms else None
        only = Pair.parse(request.only).episode if request.only else None
        sources: tuple[Source, ...] = tuple(
            source_for(stack, Path(bag), request.topics, extra, episode=episode, limit=request.limit)
            for episode, bag in enumerate(request.bags, request.first_episode)
            if only in (None, episode) and not request.from_evidence
        )
        if request.from_evidence:
            sources = (EvidenceSource(Path(request.bags[0]), Pair.parse(request.only), stack),)
        if not sources:
            raise UsageError("got no bag to replay; type `mt replay BAG`")
        check_needs(sources, stack)
        if plan and not request.only:
            refuse_missing_frames(plan, request, sources)
        alone = FirstPairs.of(request, remembers=not stack.stateless) if request.only_first else None
        schedule = alone or schedule_of(plan)
        run = cls(request, out, stack, suite, sources, plan=plan, schedule=schedule, left_out=choice.left_out)
        if request.explore and not request.only:
            frames = ExploredFrames.of(request, stack, suite.relations, run._bundles)
            return dataclasses.replace(run, schedule=frames)
        return run

    @classmethod
    def read_request(cls, plain: Mapping[str, Any], out: Path) -> ReplayRequest:
        """Return the request; its cases and its plan are those that the directory keeps."""
        request = ReplayRequest.from_plain(plain)
        cases, plan = (name and str(out / file) for name, file in ((request.cases, FILE), (request.plan, PLAN_FILE)))
        return dataclasses.replace(request, cases=cases, plan=plan)

    @classmethod
    def resume(cls, out: Path) -> Run:
        """Make the run of a directory, to go on with it; one by a plan with its code and drives. Raises UsageError."""
        if (out / PLAN_FILE).is_file():
            from mt_nodes.runs.safety_case.preregistration import refuse_changed

            refuse_changed(out, cls.read_request(request_of(out, cls.KEY, cls.COMMAND), out))
        return super().resume(out)

    def refuse_impossible(self) -> None:
        """Refuse also what is not as planned."""
        super().refuse_impossible()
        if self.request.plan:
            from mt_nodes.runs.safety_case.preregistration import refuse_other_run  # few runs have a plan

            refuse_other_run(self.request, self.suite.all, self.stack)

    def save(self) -> None:
        """Write the cases, if any, and what it commits to by a plan, before what every run has."""
        if self.plan is not None:
            write_cases(self.plan, self.out / FILE)
        if self.request.plan:
            from mt_nodes.runs.safety_case.preregistration import commit

            commit(self.out, self.request)
        super().save()

    @property
    def more_of_record(self) -> dict[str, Any]:
        """The cases, if any, what was left out, and what intensities are taken for."""
        known = {"intensities": self.intensities} if self.intensities else {}
        return super().more_of_record | known | ({} if self.plan is None else {"cases": self.plan.as_plain()})

    @property
    def topics_of_sources(self) -> dict[str, Any]:
        """Bag -> role -> topic."""
        return {source.reader.path.name: source.roles for source in self.sources}

    @property
    def episodes(self) -> list[Episode]:
        """One episode a bag; each can be opened again. What cannot be read is left out and kept in ``damage``."""
        return [functools.partial(self._readable, source) for source in self.sources]

    def _readable(self, source: Source) -> Iterator[Bundle]:
        try:
            for found in itertools.islice(in_scenes(source.readings()), *self._span):
                if isinstance(found, Unreadable):
                    self.damage.bundles[found.bundle.episode, found.bundle.index] = found
                else:
                    yield found
        except InfrastructureError as error:
            self.damage.bags[str(source.reader.path)] = error

    @property
    def most_evidence(self) -> int | None:
        """Of how many violated pairs of each relation evidence is kept, None: of all."""
        return self.request.most_evidence

    @property
    def input_condition(self) -> dict[str, Any]:
        """What is replayed, and how."""
        request = self.request
        first = {"first_episode": request.first_episode} if request.first_episode else {}
        chosen = {"explore": request.explore, "explore_by": request.explore_by} if self.schedule.chosen else {}
        how = {"pace": request.pace, "transport": request.transport}
        return {**how, "bags": list(request.bags), "limit": request.limit, **first, **chosen}

    @property
    def condition(self) -> dict[str, Any]:
        """What the journal begins with; the plan of cases and the signed one among it, if any."""
        cases = {"cases": self.plan.sha256} if self.plan else {}
        signed = {"plan": SignedStatement.load(Path(self.request.plan)).sha256} if self.request.plan else {}
        return {**super().condition, **cases, **signed}

    @property
    def settings(self) -> PlaySettings:
        """What is played."""
        request, stack = self.request, self.stack
        return PlaySettings(
            *(self.suite, request.seed, stack.stateless, stack.publishes_when_empty),
            mode=request.mode,
            rate=request.rate,
            draws=request.draws,
            only=self.only,
            schedule=self.schedule,
        )

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What is offered on every bundle."""
        return self.settings.offers

    @property
    def _span(self) -> tuple[int, int | None]:
        """First bundle and end of what is played of an episode.

        A stack that remembers is given all before a pair, any other what the follow-up looks back on.
        """
        bundle, left = self.only.bundle if self.only else None, Reduction.of_request(self.request)
        if self.request.from_evidence:
            return 0, None
        if left is not None and (bundle is None or not self.stack.stateless):
            return left.first, left.end
        if bundle is None:
            return 0, None
        mutations = [m for offer in self.offers for m in (*offer.relation.mutate, *offer.relation.baseline)]
        back = max((mutation.needs_history for mutation in mutations), default=0)
        # A draw by earlier pictures needs the ego's motion, which depends on all that was before.
        whole = not self.stack.stateless or ("camera" in self.stack.topics and any(m.draw_history for m in mutations))
        return 0 if whole else max(0, bundle - back), bundle + 1

    @property
    def inputs(self) -> dict[str, str]:
        """Topic of a bag -> topic of the stack that it is given as: of several that play a role, by their order."""
        return {
            topic: name
            for source in self.sources
            for role, names in self.stack.topics.items()
            for topic, name in zip(source.roles[role], names, strict=True)
        }

    @property
    def bundles_to_come(self) -> int:
        """How many bundles the bags give."""
        return sum(self._bundles.values())

    @property
    def _bundles(self) -> dict[int, int]:
        return dict(enumerate(map(self._bundles_of, self.sources), self.request.first_episode))

    def _bundles_of(self, source: Source) -> int:
        first, end = self._span
        ends = [e for e in (self.request.limit, end) if e is not None]
        return max(0, min([source.info[source.lead].count, *ends]) - first)

    @property
    def pairs_to_come(self) -> int:
        """How many verdicts a whole run owes."""
        schedule = EVERYTHING if self.only else self.schedule
        count = schedule.chosen
        for episode, played in self._bundles.items():
            for offer in self.offers:
                whole, bundles = len(offer.sequences), schedule.count(offer, episode, played)
                count += bundles * (len(offer.judges) - whole) + whole
        return count

    @property
    def message_types(self) -> dict[str, str]:
        """Topic of the stack -> message type, of what it must get and of what it says."""
        mapped, required = self.topics()
        given = {row.topic: row.type for topic, row in mapped.items() if topic in required}
        return given | self.stack.message_types

    def topics(self) -> tuple[dict[str, ReplayedTopic], frozenset[str]]:
        """Return how each topic of the bag reaches the stack, and the topics that the stack must subscribe to.

        A topic of the bag that bears the name of an input or output of the stack, but is another, is left out.
        """
        mapped: dict[str, ReplayedTopic] = {}
        required = set()
        inputs = self.inputs
        taken = {*inputs.values(), *(row.topic for row in self.stack.published), *NEVER_REPLAYED}
        for source in self.sources:
            roles = {topic for role in self.stack.inputs for topic in source.roles[role]}
            for topic, info in source.info.items():
                if topic in roles:
                    mapped[topic] = ReplayedTopic(inputs[topic], info.type)
                elif topic not in taken:
                    mapped[topic] = as_recorded(topic, info)
            required |= {*roles, *self.stack.needs}
        return mapped, frozenset(required)

    @functools.cached_property
    def _first_bundles(self) -> tuple[tuple[Source, Bundle], ...]:
        """The first bundle of each bag that can be understood; a bag without any has none."""
        found = ((source, first_readable(source)) for source in self.sources)
        return tuple((source, first) for source, first in found if first is not None)

    @property
    def intensities(self) -> dict[str, str]:
        """LiDAR topic -> what its intensities are taken for, and from what."""
        assumptions = (first.intensity_assumptions for _, first in reversed(self._first_bundles))
        return {topic: text for of_bag in assumptions for topic, text in of_bag.items()}

    @property
    def static_transforms(self) -> TransformTree:
        """Transforms for hosted callables, who have no /tf: the same for every bag, or the run is refused."""
        trees = []
        for source, first in self._first_bundles:
            trees.append(first.transforms)
            for cloud in (*first.clouds, *first.radars) if self.stack.points_frame else ():
                frame = cloud.frame_id
                try:
                    before, pose = (t.lookup(self.stack.points_frame, frame) for t in (trees[0], first.transforms))
                except UnknownTransform as error:
                    raise UnknownTransform(f"{source.reader.path}: {cloud.topic}: {error}") from error
                if not np.allclose(before, pose):
                    raise UsageError(
                        f"{source.reader.path}: {frame} stands elsewhere in {self.stack.points_frame} than in "
                        "the first bag; replay the bags one by one"
                    )
        return trees[0] if trees else TransformTree()


def as_recorded(topic: str, info: Topic) -> ReplayedTopic:
    """Return how a topic is replayed under its own name; ``/tf_static`` is latched whatever the bag knows of QoS."""
    return ReplayedTopic(topic, info.type, info.latched or topic == "/tf_static")
