# SPDX-License-Identifier: Apache-2.0
"""A frame and its follow-up, with the frames around it, for the picture of a mutation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mt_nodes.base.errors import InfrastructureError, MtError, NotApplicable, UsageError
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, TransformTree
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.pipeline import DerivedFollowup, MutationPipeline
from mt_nodes.report.pictures.cloud_diff import CloudChange, compare

#: Frames before and after the inspected one, to show send times.
BEFORE, AFTER = 6, 6


@dataclass(frozen=True)
class SentBundle:
    """One bundle as it is sent.

    ``frame``: number of its source bundle. ``sent_ns``: send time, by the clock of the recording. ``stamp_ns``: header
    stamp of its first cloud. ``content``: number of the source bundle with the same points; None: there is none.
    """

    frame: int
    sent_ns: int
    stamp_ns: int
    content: int | None


@dataclass(frozen=True, eq=False)
class MutatedFrame:
    """A frame before and after a mutation.

    Attributes:
        mutations: those applied, in order.
        change: change of the returns of its first cloud, from the baseline where there is one; None when the follow-up
            has no such cloud.
        sources, sent: the bundles of the frames around it, original and as sent to the follow-up arm.
        baseline: mutations of the source arm's input; empty: the original frame.
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
        """Whether only order, send time or stamps of bundles differ, not their contents."""
        return self.sent != self.sources and all(bundle.content is not None for bundle in self.sent)

    def counts(self) -> dict[str, Any]:
        """Return the change in numbers."""
        points = {} if self.change is None else self.change.counts()
        return {"bundles_sent": len(self.derived.followup.bundles), **points, **self.derived.effects.numbers}


def inspect(
    bundles: Iterable[Bundle],
    mutations: Sequence[Mutation],
    name: str,
    relation: str,
    frame: int,
    seed: int,
    baseline: Sequence[Mutation] = (),
) -> MutatedFrame:
    """Derive the follow-up of one frame as a run over these bundles does.

    Raises UsageError: there is no such frame, or the mutations cannot be applied to it. InfrastructureError: a
    guarantee is broken.

    Args:
        bundles: of one episode, from its beginning.
        name: title of the picture.
        relation: id of the relation, on which draws depend beside seed, episode and frame.
        baseline: mutations of the source arm's input, with the same draws; none: the original frame.
    """
    inspection = _Inspection(MutationPipeline(mutations, seed, relation, baseline), frame, name)
    sensors = {sensor for mutation in (*mutations, *baseline) for sensor in mutation.sensors}
    source, derived, count = None, None, 0
    if "camera" not in sensors:  # mutations of clouds alone may contradict images
        bundles = (replace(bundle, images=(), camera_infos=()) for bundle in bundles)
    for bundle in _until_damage(bundles, frame):
        count = bundle.index + 1
        followup = inspection.take(bundle)
        if bundle.index == frame:
            source, derived = bundle, followup
        if bundle.index == frame + AFTER:
            break
    if source is None or derived is None:
        raise UsageError(f"no frame {frame}: there are {count}{f', expected 0 to {count - 1}' if count else ''}")
    change = _change(source, derived)
    around = tuple(inspection.sources), tuple(inspection.sent)
    return MutatedFrame(name, tuple(mutations), seed, source, derived, change, *around, tuple(baseline))


def inspect_bag(
    bag: Path,
    topics: Mapping[str, str],
    transforms: TransformTree | None,
    mutations: Sequence[Mutation],
    **options: Any,
) -> MutatedFrame:
    """Inspect a frame of a bag; ``options`` are the other arguments of :func:`inspect`.

    Raises MtError: as of :func:`inspect`, with the name of the bag, or the bag is damaged.
    """
    from mt_nodes.data.bags.bundles import BagSource
    from mt_nodes.engine.bag_mutation import changed_in

    require = changed_in(bag, mutations, topics)
    with BagSource(bag, topics, transforms, limit=options["frame"] + AFTER + 1, require=require) as source:
        try:
            return inspect(source, mutations, **options)
        except UsageError as error:
            raise UsageError(f"{bag}: {str(error).removeprefix(f'{bag}: ')}") from error


def _until_damage(bundles: Iterable[Bundle], frame: int) -> Iterator[Bundle]:
    """Yield the bundles; ignore damage of the bag after the frame."""
    index = -1
    try:
        for bundle in bundles:
            index = bundle.index
            yield bundle
    except MtError:
        if index < frame:
            raise


class _Inspection:
    """Derives the follow-up of one frame, with its guarantee checked, and those of the frames around it."""

    def __init__(self, pipeline: MutationPipeline, frame: int, name: str) -> None:
        self._pipeline, self._frame, self._name = pipeline, frame, name
        self._contents: dict[bytes, int] = {}
        self.sources: list[SentBundle] = []
        self.sent: list[SentBundle] = []

    def take(self, bundle: Bundle) -> DerivedFollowup | None:
        """Return the follow-up; None where there is none or the frame is too early."""
        self._contents.setdefault(_digest(bundle), bundle.index)
        if bundle.index < self._frame - BEFORE and self._pipeline.begun(bundle):
            self._pipeline.meet(bundle)
            return None
        derived = self._derived(bundle)
        if derived is not None and bundle.index >= self._frame - BEFORE:
            self.sources.append(SentBundle(bundle.index, bundle.stamp_ns, _stamp_ns(bundle), bundle.index))
            self.sent += [self._sent(bundle, delay_ns, followup) for delay_ns, followup in derived.followup.bundles]
        return derived

    def _derived(self, bundle: Bundle) -> DerivedFollowup | None:
        inspected = bundle.index == self._frame
        try:
            # The persistent state of a baseline begins only with a derivation that checks the guarantee.
            if not inspected and self._pipeline.begun(bundle):
                return self._pipeline.derive_unproven(bundle)[0]
            derived = self._pipeline.derive(bundle)
        except NotApplicable as reason:
            if not inspected:
                return None
            raise UsageError(f"{self._name} cannot be applied to frame {bundle.index}: {reason}") from reason
        if derived.broken is not None and inspected:
            where = f"frame {bundle.index} at {bundle.stamp_ns} ns"
            raise InfrastructureError(f"{where}: guarantee broken: {derived.broken}")
        return derived

    def _sent(self, source: Bundle, delay_ns: int, followup: Bundle) -> SentBundle:
        digest = _digest(followup)
        content = source.index if digest == _digest(source) else self._contents.get(digest)
        return SentBundle(source.index, source.stamp_ns + delay_ns, _stamp_ns(followup), content)


def _change(source: Bundle, derived: DerivedFollowup) -> CloudChange | None:
    shown = _shown(source, derived)
    if shown is None:
        return None
    effects, baseline = derived.effects, derived.baseline
    old = shown if baseline is None else baseline.followup.first.cloud(shown.topic)
    clouds = [c for _, b in derived.followup.bundles[:1] for c in (*b.clouds, *b.radars) if c.topic == old.topic]
    if not clouds:
        return None
    # Points that were added to the frame may also have been added to its baseline.
    added = effects.added_points.get(old.topic) if baseline is None else None
    return compare(old, clouds[0], added, _expected(source, effects))


def _shown(source: Bundle, derived: DerivedFollowup) -> Cloud | None:
    """Return the first cloud, or the first radar where only radars change; None without either."""
    changed = {topic for _, bundle in derived.followup.bundles[:1] for topic in bundle.changed_topics(source)}
    radars = [radar for radar in source.radars if radar.topic in changed]
    only_radars = bool(radars) and not changed & {cloud.topic for cloud in source.clouds}
    return next(iter(radars if only_radars else (*source.clouds, *source.radars)), None)


def _expected(source: Bundle, effects: Effects) -> Matrix | None:
    """Return the transform of the whole scene, in the frame of the first cloud; None without."""
    if effects.output_transform is None:
        return None
    to_output = source.transforms.lookup(effects.output_frame_id, source.clouds[0].frame_id)
    return np.asarray(np.linalg.inv(to_output) @ effects.output_transform @ to_output)


def _stamp_ns(bundle: Bundle) -> int:
    return bundle.clouds[0].stamp_ns if bundle.clouds else bundle.stamp_ns


def _digest(bundle: Bundle) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for cloud in (*bundle.clouds, *bundle.radars):
        digest.update(cloud.points.tobytes())
    return digest.digest()
