# SPDX-License-Identifier: Apache-2.0
"""One frame and its follow-up, with the frames around it: what a picture of a mutation is drawn from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError, MtError, NotApplicable, UsageError
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.transforms import Matrix, TransformTree
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.report.pictures.cloud_diff import CloudChange, compare

#: Frames before and after the one looked at that show when things are sent.
BEFORE, AFTER = 6, 6


@dataclass(frozen=True)
class SentBundle:
    """One bundle as it goes out.

    Attributes:
        frame: number of the source bundle that it was made of.
        sent_ns: when it goes out, by the clock of the recording.
        stamp_ns: header stamp of its first cloud.
        content: number of the source bundle whose points it carries, None where they are no source's.
    """

    frame: int
    sent_ns: int
    stamp_ns: int
    content: int | None


@dataclass(frozen=True, eq=False)
class MutatedFrame:
    """What was done to one frame.

    Attributes:
        name: of the mutation or relation.
        mutations: those applied, in order.
        seed: of every draw.
        source: the frame as it was.
        derived: its follow-up.
        change: what became of the returns of its first cloud, which is the baseline's where there is one; None when the
            follow-up has no such cloud.
        sources, sent: the bundles of the frames around it, as they were and as they go to the follow-up arm.
        baseline: mutations that make what the source arm is given, and is compared with; empty: the frame as it was.
    """

    name: str
    mutations: tuple[Mutation, ...]
    seed: int
    source: Bundle
    derived: DerivedFollowup
    change: CloudChange | None
    sources: tuple[SentBundle, ...]
    sent: tuple[SentBundle, ...]
    baseline: tuple[Mutation, ...] = ()

    @property
    def of_times(self) -> bool:
        """Whether it is order, time or stamps of whole bundles that differ, and nothing in them."""
        return self.sent != self.sources and all(bundle.content is not None for bundle in self.sent)

    def counts(self) -> dict[str, Any]:
        """Return the change in numbers."""
        points = {} if self.change is None else self.change.counts()
        return {"bundles_sent": len(self.derived.followup.bundles), **points, **self.derived.effects.numbers}


def look(
    bundles: Iterable[Bundle],
    mutations: Sequence[Mutation],
    name: str,
    relation: str,
    frame: int,
    seed: int,
    baseline: Sequence[Mutation] = (),
) -> MutatedFrame:
    """Make the follow-up of one frame as a run over these bundles makes it.

    Args:
        bundles: of one episode, from its beginning.
        mutations: applied one after the other.
        name: what to call it.
        relation: what draws depend on beside seed, episode and frame; the id of a relation.
        frame: number of the bundle.
        seed: of every draw.
        baseline: mutations, drawn alike, of what it is compared with; none: the frame as it was.

    Raises:
        UsageError: there is no such frame, or no honest follow-up of it.
        InfrastructureError: a guarantee is broken.
    """
    passing = _Passing(MutationPipeline(mutations, seed, relation, baseline), frame, name)
    sensors = {sensor for mutation in (*mutations, *baseline) for sensor in mutation.sensors}
    source, derived, seen = None, None, 0
    if "camera" not in sensors:  # what is of clouds alone may be looked at where a camera would contradict it
        bundles = (replace(bundle, images=(), camera_infos=()) for bundle in bundles)
    for bundle in _until_damage(bundles, frame):
        seen = bundle.index + 1
        made = passing.take(bundle)
        if bundle.index == frame:
            source, derived = bundle, made
        if bundle.index == frame + AFTER:
            break
    if source is None or derived is None:
        raise UsageError(f"no frame {frame}: there are {seen}" + (f", expected 0 to {seen - 1}" if seen else ""))
    change = _change(source, derived)
    around = tuple(passing.sources), tuple(passing.sent)
    return MutatedFrame(name, tuple(mutations), seed, source, derived, change, *around, tuple(baseline))


def look_into(
    bag: Path, topics: Mapping[str, str], transforms: TransformTree | None, mutations: Sequence[Mutation], **asked: Any
) -> MutatedFrame:
    """Do the same with a frame of a bag; ``asked`` is the rest of what :func:`look` takes.

    Raises:
        MtError: what :func:`look` refuses, naming the bag, and what is wrong with the bag.
    """
    from mt_nodes.data.bags.bundles import BagSource
    from mt_nodes.engine.bag_mutation import changed_in

    require = changed_in(bag, mutations, topics)
    with BagSource(bag, topics, transforms, limit=asked["frame"] + AFTER + 1, require=require) as source:
        try:
            return look(source, mutations, **asked)
        except UsageError as error:
            raise UsageError(f"{bag}: {str(error).removeprefix(f'{bag}: ')}") from error


def _until_damage(bundles: Iterable[Bundle], frame: int) -> Iterator[Bundle]:
    """What is wrong with a bag after the frame is of no interest here."""
    index = -1
    try:
        for bundle in bundles:
            index = bundle.index
            yield bundle
    except MtError:
        if index < frame:
            raise


class _Passing:
    """Derives the follow-up of one frame, proved, and those of the frames around it; takes former ones in."""

    def __init__(self, pipeline: MutationPipeline, frame: int, name: str) -> None:
        self._pipeline, self._frame, self._name = pipeline, frame, name
        self._contents: dict[bytes, int] = {}
        self.sources: list[SentBundle] = []
        self.sent: list[SentBundle] = []

    def take(self, bundle: Bundle) -> DerivedFollowup | None:
        """Return the follow-up, None where there is none or it is of no interest."""
        self._contents.setdefault(_digest(bundle), bundle.index)
        if bundle.index < self._frame - BEFORE and self._pipeline.begun(bundle.episode):
            self._pipeline.meet(bundle)
            return None
        derived = self._derived(bundle)
        if derived is not None and bundle.index >= self._frame - BEFORE:
            self.sources.append(SentBundle(bundle.index, bundle.stamp_ns, _stamp_ns(bundle), bundle.index))
            self.sent += [self._sent(bundle, delay_ns, made) for delay_ns, made in derived.followup.bundles]
        return derived

    def _derived(self, bundle: Bundle) -> DerivedFollowup | None:
        looked_at = bundle.index == self._frame
        try:
            # What a baseline persists with begins where it is derived, too, and that is with its proof only.
            if not looked_at and self._pipeline.begun(bundle.episode):
                return self._pipeline.derive_unproven(bundle)[0]
            derived = self._pipeline.derive(bundle)
        except NotApplicable as reason:
            if not looked_at:
                return None
            raise UsageError(f"{self._name} cannot be applied to frame {bundle.index}: {reason}") from reason
        if derived.broken is not None and looked_at:
            where = f"frame {bundle.index} at {bundle.stamp_ns} ns"
            raise InfrastructureError(f"{where}: guarantee broken: {derived.broken}")
        return derived

    def _sent(self, source: Bundle, delay_ns: int, made: Bundle) -> SentBundle:
        digest = _digest(made)
        content = source.index if digest == _digest(source) else self._contents.get(digest)
        return SentBundle(source.index, source.stamp_ns + delay_ns, _stamp_ns(made), content)


def _change(source: Bundle, derived: DerivedFollowup) -> CloudChange | None:
    if not source.clouds:
        return None
    effects, milder = derived.effects, derived.baseline
    old = source.clouds[0] if milder is None else milder.followup.first.cloud(source.clouds[0].topic)
    clouds = [c for _, b in derived.followup.bundles[:1] for c in b.clouds if c.topic == old.topic]
    if not clouds:
        return None
    # What was added to the frame may have been added to its baseline as well.
    added = effects.added_points.get(old.topic) if milder is None else None
    return compare(old, clouds[0], added, _expected(source, effects))


def _expected(source: Bundle, effects: Effects) -> Matrix | None:
    """Return where the whole scene is expected to be, in the frame of the first cloud."""
    if effects.output_transform is None:
        return None
    to_output = source.transforms.lookup(effects.output_frame_id, source.clouds[0].frame_id)
    return np.asarray(np.linalg.inv(to_output) @ effects.output_transform @ to_output)


def _stamp_ns(bundle: Bundle) -> int:
    return bundle.clouds[0].stamp_ns if bundle.clouds else bundle.stamp_ns


def _digest(bundle: Bundle) -> bytes:
    made = hashlib.blake2b(digest_size=16)
    for cloud in bundle.clouds:
        made.update(cloud.points.tobytes())
    return made.digest()
