# SPDX-License-Identifier: Apache-2.0
"""Cases of a bag: frames with their neighbours, their scenes, and the relations that can be run on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.data.bags.bundles import BagSource, sensors_of
from mt_nodes.data.bags.topic_roles import SENSORS
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import TransformTree
from mt_nodes.engine.compatibility import incompatibility
from mt_nodes.relations.facts.scene_facts import Facts
from mt_nodes.rules.matching import Matcher
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.scene import ROADS, Detector, SceneFacts, describe, given
from mt_nodes.rules.scene_by_model import SeenBy
from mt_nodes.rules.shipped_rules import of_entry
from mt_nodes.rules.statement_binding import edit_facts
from mt_nodes.rules.store_entry import Entry
from mt_nodes.stacks.stack import Stack


@dataclass(frozen=True)
class Recording:
    """A bag, and what is known of it in advance.

    Attributes:
        topics: role -> topic. transforms: those that the bag lacks. known_facts: facts stated by the user.
        utc_offset_h: of local time at the recording; None if unknown. seen_by: model that describes pictures of cases.
        detectors: say which elements a case's frame shows and lacks.
    """

    bag: Path
    topics: Mapping[str, str]
    transforms: TransformTree | None = None
    known_facts: Facts | None = None
    utc_offset_h: float | None = None
    seen_by: SeenBy | None = None
    detectors: tuple[Detector, ...] = ()

    @cached_property
    def sensors(self) -> tuple[str, ...]:
        """Sensors of the bag that mutations can change."""
        return tuple(sensors_of(self.bag, SENSORS, self.topics))

    @cached_property
    def count(self) -> int:
        """Number of frames in the bag."""
        with BagSource(self.bag, self.topics, self.transforms, require=self.sensors) as source:
            return source.info[source.lead].count

    def scenes(
        self, frames: Sequence[int], progress: Callable[[int], None] = lambda read: None
    ) -> dict[str, SceneFacts]:
        """Return the scene of each frame, by the name of its case, in order.

        ``progress``: receives the number of frames read.
        Raises UsageError: there is no such bag or frame. InfrastructureError: the bag is damaged before the last frame.
        """
        cases = {frame: self._scene(around) for frame, around in self._cases(set(frames), progress)}
        if missing := [frame for frame in frames if frame not in cases]:
            raise UsageError(f"{self.bag}: got frame {missing[0]}, which it has not; frames are numbered from 0")
        return {f"{self.bag.name}/{frame}": cases[frame] for frame in frames}

    def _cases(self, frames: Collection[int], progress: Callable[[int], None]) -> Iterator[tuple[int, list[Bundle]]]:
        """Yield wanted frames with their neighbours; the first frame has none before it and cannot be in the middle."""
        limit = max(frames, default=-1) + 2
        near: list[Bundle] = []
        with BagSource(self.bag, self.topics, self.transforms, limit=limit, require=self.sensors) as source:
            for bundle in source:
                near = [*near[-2:], bundle]
                progress(bundle.index + 1)
                if bundle.index == 0 and 0 in frames:
                    yield 0, near
                if len(near) == 3 and near[1].index in frames:
                    yield near[1].index, near
        if near and near[-1].index > 0 and near[-1].index in frames and near[-1].index != limit - 1:
            yield near[-1].index, near[-2:]

    def _scene(self, bundles: Sequence[Bundle]) -> SceneFacts:
        facts = self.seen_by(bundles) if self.seen_by else None
        return describe(
            bundles,
            known_facts=self.known_facts,
            model_facts=facts,
            detectors=self.detectors,
            utc_offset_h=self.utc_offset_h,
        )


def matcher(ontology: Ontology, sensors: Collection[str], stacks: Sequence[Stack] = (), **settings: Any) -> Matcher:
    """Return the matcher for cases of a bag; ``settings`` are further settings of :class:`Matcher`.

    A relation that cannot be bound, needs a sensor that the bag lacks, or cannot judge one of the stacks, is excluded.
    """

    @cache
    def why_not(entry: Entry) -> str:
        try:
            relation = of_entry(entry).relation(ontology)
        except UsageError as error:
            return str(error)
        lacking = [sensor for sensor in relation.requires if sensor not in sensors]
        if lacking:
            return f"it needs a {lacking[0]}, which the bag has not"
        return next((why for stack in stacks if (why := incompatibility(relation, stack))), "")

    @cache
    def edited(entry: Entry) -> Mapping[str, Any]:
        return edit_facts(entry.statement, ontology, entry.region)

    # Execution counts do not affect either.
    return Matcher(
        refuse=lambda entry: why_not(replace(entry, executions=0)),
        edit_facts=lambda entry: edited(replace(entry, executions=0)),
        **settings,
    )


def facts(values: Mapping[str, Any], ontology: Ontology) -> Facts:
    """Return the user's facts; ``roads``, ``present`` and ``absent`` are a name or a list of them.

    Raises UsageError: naming an unknown fact or road, or a value of the wrong kind.
    """
    known = dict(values)
    if ROADS in known:
        roads = known[ROADS] if isinstance(known[ROADS], list) else [known[ROADS]]
        for road in roads:
            if road not in ontology.roads:
                raise UsageError(f"fact '{ROADS}': no road '{road}'{suggest(str(road), ontology.roads)}")
        known[ROADS] = tuple(roads)
    return given(known, ontology.predicates, ontology.elements)
