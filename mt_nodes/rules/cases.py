# SPDX-License-Identifier: Apache-2.0
"""Cases of a bag: frames with the one before and the one after each, their scenes, and what can be run on them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.bags import BagSource, sensors_of
from mt_nodes.errors import UsageError, suggest
from mt_nodes.frames import Bundle
from mt_nodes.rules.binding import edit_facts
from mt_nodes.rules.matching import Matcher
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.scene import ROADS, Scene, describe, given
from mt_nodes.rules.scene_facts import Facts
from mt_nodes.rules.shipped import of_entry
from mt_nodes.rules.store_entry import Entry
from mt_nodes.transforms import TransformTree


@dataclass(frozen=True)
class Recording:
    """A bag and what is known of it beforehand.

    Attributes:
        topics: role -> topic. transforms: those that the bag lacks. told: facts that the user states.
        utc_offset_h: of local time where it was recorded; None: not known.
    """

    bag: Path
    topics: Mapping[str, str]
    transforms: TransformTree | None = None
    told: Facts | None = None
    utc_offset_h: float | None = None

    @property
    def sensors(self) -> tuple[str, ...]:
        """Sensors of the bag that mutations can change."""
        return tuple(sensors_of(self.bag, ("lidar", "camera"), self.topics))

    def scenes(self, frames: Sequence[int], progress: Callable[[int], None] = lambda read: None) -> dict[str, Scene]:
        """Return the scene of each frame, by the name of its case, in their order.

        Args:
            progress: is told how many frames have been read.

        Raises:
            UsageError: there is no such bag or frame.
            InfrastructureError: the bag is damaged before the last frame.
        """
        cases = {frame: self._scene(around) for frame, around in self._cases(set(frames), progress)}
        if missing := [frame for frame in frames if frame not in cases]:
            raise UsageError(f"{self.bag}: got frame {missing[0]}, which it has not; frames are numbered from 0")
        return {f"{self.bag.name}/{frame}": cases[frame] for frame in frames}

    def _cases(self, frames: Collection[int], progress: Callable[[int], None]) -> Iterator[tuple[int, list[Bundle]]]:
        """Yield wanted frames with their neighbours; the first one has none, for it must be in the middle."""
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

    def _scene(self, bundles: Sequence[Bundle]) -> Scene:
        return describe(bundles, told=self.told, utc_offset_h=self.utc_offset_h)


def matcher(ontology: Ontology, sensors: Collection[str], **asked: Any) -> Matcher:
    """Return what chooses relations for cases of a bag; ``asked`` is the rest of what :class:`Matcher` takes.

    A relation that cannot be bound, or needs a sensor that the bag has not, is never chosen.
    """

    def refuse(entry: Entry) -> str:
        try:
            needs = of_entry(entry).relation(ontology).requires
        except UsageError as error:
            return str(error)
        lacking = [sensor for sensor in needs if sensor not in sensors]
        return f"it needs a {lacking[0]}, which the bag has not" if lacking else ""

    def edited(entry: Entry) -> Mapping[str, Any]:
        return edit_facts(entry.statement, ontology, entry.region)

    return Matcher(refuse=refuse, edit_facts=edited, **asked)


def facts(values: Mapping[str, Any], ontology: Ontology) -> Facts:
    """Return facts that the user states; ``roads`` is a road or a list of them.

    Raises:
        UsageError: names what is no fact or no road, or whose value is of another kind.
    """
    told = dict(values)
    if ROADS in told:
        roads = told[ROADS] if isinstance(told[ROADS], list) else [told[ROADS]]
        for road in roads:
            if road not in ontology.roads:
                raise UsageError(f"fact '{ROADS}': no road '{road}'{suggest(str(road), ontology.roads)}")
        told[ROADS] = tuple(roads)
    return given(told, ontology.predicates)
