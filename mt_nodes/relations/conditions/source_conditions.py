# SPDX-License-Identifier: Apache-2.0
"""Conditions on a source: on its cloud, its output, and known facts of the case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.output_traits import DEFAULT_THRESHOLDS, OutputTraits
from mt_nodes.data.outputs import Detections, Output
from mt_nodes.data.regions import Region, RegionUnavailable, load_optional_region
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.relations.conditions.base import Condition
from mt_nodes.relations.facts.condition import evaluate, missing, parse, presence_of
from mt_nodes.relations.facts.derived_facts import with_derived
from mt_nodes.relations.facts.presence import agreed_presence, by_detector, by_labels
from mt_nodes.relations.facts.scene_ego import ego_motion
from mt_nodes.relations.facts.scene_facts import Fact, Facts, first_known


@dataclass(frozen=True)
class ObstaclesWithin(Condition):
    """The source output has at least so many obstacles within range, and inside the region if one is named."""

    range_m: float = param(float("inf"), low=0.0, unit="m", help="distance over ground from the origin of frame_id")
    at_least: int = param(1, low=1, high=10_000, help="obstacles that must be there")
    region: Region | None = param(None, convert=load_optional_region, help="count only obstacles inside")
    score: float | None = param(
        None, low=0.0, high=1.0, help="least score that counts; not given: as the stack file's scores say"
    )
    frame_id: str = param("base_link", help="frame whose origin the range is measured from")

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_optional_region(self.region))

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Count the source's obstacles."""
        if source.detections is None:
            return "the source output has no detections to count"
        try:
            in_reach = self._in_reach(bundle, source.detections)
        except (UnknownTransform, RegionUnavailable) as error:
            return str(error)
        least = DEFAULT_THRESHOLDS["detections"].high if self.score is None else self.score
        count = int((in_reach & (source.detections.score >= least)).sum())
        if count >= self.at_least:
            return None
        unsure = int(in_reach.sum()) - count
        more = f" and {unsure} with a score below {least:g}" if unsure else ""
        return f"{count} obstacles{more} {self._place()}, expected at least {self.at_least}"

    def of_stack(self, traits: OutputTraits) -> ObstaclesWithin:
        """Return the condition with a missing threshold taken from the stack file."""
        return replace(self, score=traits.thresholds("detections").high if self.score is None else self.score)

    def _in_reach(self, bundle: Bundle, detections: Detections) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        counts = detections.finite
        if np.isfinite(self.range_m):
            xyz = move(bundle.transforms.lookup(self.frame_id, detections.frame_id), detections.center_m)
            counts &= np.hypot(xyz[:, 0], xyz[:, 1]) <= self.range_m
        if self.region is not None:
            region = self.region.resolve(bundle)
            counts &= region.contains(
                move(bundle.transforms.lookup(region.frame_id, detections.frame_id), detections.center_m)
            )
        return counts

    def _place(self) -> str:
        near = f"within {self.range_m:g} m" if np.isfinite(self.range_m) else "seen"
        return near if self.region is None else f"{near} in region '{self.region.name}'"


@dataclass(frozen=True)
class PathReaches(Condition):
    """The source output has a path that reaches far enough ahead, in its own frame.

    A stack that detects no lane need not turn where the lane would move.
    """

    ahead_m: float = param(8.0, low=0.0, high=200.0, unit="m", help="how far ahead it must reach at the least")

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Measure the farthest point of the path."""
        if source.path is None or not len(source.path.pose):
            return "the source output tells no path"
        reach_m = float(source.path.pose[:, 0].max())
        if reach_m >= self.ahead_m:
            return None
        return f"the source's path reaches {reach_m:.1f} m ahead, expected at least {self.ahead_m:g} m"


@dataclass(frozen=True)
class PointsAtLeast(Condition):
    """The source cloud has at least so many points with finite coordinates, inside the region if one is named."""

    points: int = param(1000, low=1, help="points that must be there")
    topic: str = param("", help="topic of the cloud; empty for the first one")
    region: Region | None = param(None, convert=load_optional_region, help="count only points inside")

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", load_optional_region(self.region))

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Count the source's points."""
        try:
            cloud = bundle.cloud(self.topic or None)
            count = self._count(bundle, cloud)
        except KeyError as error:
            return str(error.args[0])
        except (UnknownTransform, RegionUnavailable) as error:
            return str(error)
        where = "" if self.region is None else f" in region '{self.region.name}'"
        return None if count >= self.points else f"{count} points{where}, expected at least {self.points}"

    def _count(self, bundle: Bundle, cloud: Cloud) -> int:
        if self.region is None:
            return int(np.isfinite(cloud.xyz).all(axis=1).sum())
        region = self.region.resolve(bundle)
        # Points with non-finite coordinates are in no region.
        return int(region.contains(move(bundle.transforms.lookup(region.frame_id, cloud.frame_id), cloud.xyz)).sum())


#: For stacks that command a yaw rate instead of a steering angle: wheelbase of a usual car, as in checks of commands.
WHEELBASE_M = 2.7


def _condition(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise UsageError(f"{where}: got {value!r}, expected a condition such as 'speed_kmh > 50'")
    parse(value)
    return value


@dataclass(frozen=True)
class KnownToBe(Condition):
    """A condition on the ego vehicle or the scene, such as ``speed_kmh > 50``, holds by the known facts.

    Odometry of the frame itself has priority over facts known in advance (``mt replay --cases``), and those over the
    source's command. Whether an element is present is known from facts in advance, else from labels of the frame, else
    from the source output of a stack with ``coverage``. A fact without a source is unknown, and an unknown condition is
    not met.
    """

    by_facts: ClassVar[bool] = True
    #: Of the stack under test; set by :meth:`of_stack` and no parameter.
    _traits: ClassVar[OutputTraits] = OutputTraits()

    condition: str = param("moving", convert=_condition, help="in the language of mt_nodes.relations.facts.condition")

    def of_stack(self, traits: OutputTraits) -> KnownToBe:
        """Return the condition with the coverage of the stack file."""
        made = replace(self)
        object.__setattr__(made, "_traits", traits)
        return made

    def unmet(self, bundle: Bundle, source: Output) -> str | None:
        """Evaluate the condition from speed, steering and the known facts of the case."""
        known = self._known(bundle, source)
        facts = {name: fact.value for name, fact in known.items() if fact.known}
        holds = evaluate(self.condition, facts)
        if holds:
            return None
        if holds is None:
            lacking = missing(self.condition, facts)
            reasons = [f"{name}: {known[name].source}" for name in lacking if name in known and known[name].source]
            more = f" ({'; '.join(reasons)})" if reasons else ""
            return f"it is unknown whether {self.condition}: {', '.join(lacking)} not told{more}"
        values = [f"{name} {value:.1f}" for name, value in facts.items() if type(value) in (int, float)]
        values += [
            f"{name} {str(facts[name]).lower()}"
            for name in map(presence_of, parse(self.condition).elements)
            if name in facts
        ]
        return f"it is not so that {self.condition} ({', '.join(values)})"

    def _known(self, bundle: Bundle, source: Output) -> Facts:
        by_topics, by_command = (ego_motion((bundle,), outputs, WHEELBASE_M) for outputs in ((), (source,)))
        of_the_case = {name: Fact(value, "the case") for name, value in bundle.facts.items()}
        known = first_known(*map(with_derived, (by_topics, of_the_case, by_command)))
        values = {name: fact.value for name, fact in known.items() if fact.known}
        by_stack = by_detector(source, self._traits, "the stack under test", values)
        return {**known, **agreed_presence((of_the_case, by_labels(bundle.truth)), (by_stack,))}
