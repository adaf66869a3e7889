# SPDX-License-Identifier: Apache-2.0
"""What relations beside a live rig take of a computer: processor time of follow-ups, and of passing messages on.

What passing messages on takes is a figure of ``scripts/bench_rig.py`` (two cores, AMD EPYC; docs/performance_rig.md);
what a follow-up takes is measured here, on the rig's own messages.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.environment import suite_environment
from mt_nodes.base.errors import MtError, NotApplicable
from mt_nodes.data.bags.bundles import DECODERS
from mt_nodes.data.cdr import codec
from mt_nodes.data.cdr.radar_codec import radar_from_msg
from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.intensity.sensor_reading import SensorBook
from mt_nodes.data.messages import Bundle, Wire
from mt_nodes.data.radar import radar_of
from mt_nodes.data.transforms import TransformTree
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.relations.pipeline import MutationPipeline
from mt_nodes.relations.relation import Relation
from mt_nodes.runs.live.config import LEAST_S
from mt_nodes.stacks.stack import Stack
from mt_nodes.stacks.topic_sync import Joiner

#: To receive, delay and publish: for each MB, each message, and the rest of the suite.
PASS_MS_PER_MB, PASS_MS_PER_MESSAGE, IDLE_CORES = 0.95, 0.2, 0.045
#: Processor time for each MB of an instant that another process makes a follow-up of: of the suite's thread, to hand it
#: over and take the follow-up back, and to hash that; of the process, to read the one and to write the other.
HAND_OVER_MS_PER_MB, HASH_MS_PER_MB, TAKE_MS_PER_MB = 0.2, 0.5, 0.3


@dataclass(frozen=True)
class RigLoad:
    """What a rig's sensors publish: instants, messages and MB in a second."""

    instants_hz: float
    messages_hz: float
    mb_per_s: float

    @classmethod
    def of(cls, rates_hz: Mapping[str, float], sizes: Mapping[str, float], leading: str) -> RigLoad:
        """Return the load of topics with these rates and mean sizes in bytes."""
        mb_per_s = sum(rate * sizes[topic] / 1e6 for topic, rate in rates_hz.items())
        return cls(rates_hz[leading], sum(rates_hz.values()), mb_per_s)

    @property
    def passing_cores(self) -> float:
        """Cores that take it to the second instance as it is."""
        return IDLE_CORES + 1e-3 * (PASS_MS_PER_MB * self.mb_per_s + PASS_MS_PER_MESSAGE * self.messages_hz)


@dataclass(frozen=True)
class FollowupCost:
    """Processor time (ms) of a relation's follow-up of an instant: drawn, changed, proved, encoded, hashed."""

    made_ms: float

    def cores(self, load: RigLoad) -> float:
        """Cores' worth of time in which every instant is tested, and all is passed on."""
        return load.passing_cores + 1e-3 * self.made_ms * load.instants_hz

    def tested_hz(self, load: RigLoad, cores: float, workers: int = 0) -> float:
        """Return how many instants a second can be tested.

        ``cores``: that there are for it. ``workers``: processes that make follow-ups; otherwise, and of what is too
        cheap to be handed over, one thread of the suite makes them.
        """
        spare, made_s = max(0.0, cores - load.passing_cores), 1e-3 * self.made_ms
        mb = load.mb_per_s / load.instants_hz
        handed_s, hashed_s, taken_s = (1e-3 * mb * ms for ms in (HAND_OVER_MS_PER_MB, HASH_MS_PER_MB, TAKE_MS_PER_MB))
        if not workers or made_s - hashed_s < LEAST_S:
            return min(load.instants_hz, min(1.0, spare) / made_s)
        there_s = made_s - hashed_s + taken_s
        limits = spare / (there_s + handed_s + hashed_s), workers / there_s, 1.0 / (handed_s + hashed_s)
        return min(load.instants_hz, *limits)


def instants_of(wires: Iterable[Wire], stack: Stack) -> Iterator[tuple[Wire, ...]]:
    """Yield the instants that a stack's sensor messages make, each with the frames between it and the one before."""
    joiner = Joiner[Wire](stack.sensor_topics, round(stack.sync_s * 1e9))
    for wire in sorted(wires, key=lambda wire: wire.stamp_ns):
        if (instant := joiner.take(wire.topic, wire)) is not None:
            yield (*joiner.passed_over, *instant.values())


def bundle_of(
    index: int, wires: Sequence[Wire], stack: Stack, transforms: TransformTree, book: SensorBook | None = None
) -> Bundle:
    """Return the bundle of an instant as :func:`instants_of` yields it, decoded anew.

    ``book``: what the instants of a run share, since a sensor is recognised once.
    Raises MtError: a message cannot be understood.
    """
    radars, book = frozenset(stack.topics.get("radar", ())), book or SensorBook(stack.intensities)
    last = {wire.topic: wire for wire in wires}  # the instant's, which comes behind those between
    parts: dict[str, list[Any]] = {"clouds": [], "images": [], "camera_infos": [], "radars": []}
    for wire in last.values():
        message = codec.decode(wire.type, wire.cdr)
        if wire.topic in radars:
            cloud = wire.type == codec.POINT_CLOUD
            made = radar_of(codec.cloud_from_msg(wire.topic, message)) if cloud else radar_from_msg(wire.topic, message)
            parts["radars"].append(made)
            continue
        part, decode = DECODERS[wire.type]
        read: Any = decode(wire.topic, message)
        parts[part].append(book.read(read) if part == "clouds" else read)
    known: dict[str, Any] = {name: tuple(found) for name, found in parts.items()}
    loose = tuple(wire for wire in wires if last[wire.topic] is not wire)
    stamp_ns = last[stack.leading_topic].stamp_ns
    bundle = Bundle(0, index, stamp_ns, transforms=transforms, wires=tuple(wires), loose=loose, radar_topics=radars)
    return replace(bundle, **known)


def followup_cost(relation: Relation, bundles: Iterable[Bundle], seed: int = 0) -> FollowupCost:
    """Measure what a relation's follow-ups of bundles take, each seen for the first time; the first warms up.

    Raises NotApplicable: none of them has one. MtError: a guarantee is broken.
    """
    with _threads_as_in_a_run():
        return _mean_cost(relation, bundles, seed)


@contextmanager
def _threads_as_in_a_run() -> Iterator[None]:
    """Give OpenCV as many threads as the process of a run gives it."""
    before = cv2.getNumThreads()
    cv2.setNumThreads(int(suite_environment(os.environ)["OPENCV_FOR_THREADS_NUM"]))
    try:
        yield
    finally:
        cv2.setNumThreads(before)


def _mean_cost(relation: Relation, bundles: Iterable[Bundle], seed: int) -> FollowupCost:
    pipeline = MutationPipeline(relation.mutate, seed, relation.id, relation.baseline, relation.requires)
    took_ms, reason = [], ""
    for bundle in bundles:
        began_ns = time.process_time_ns()
        try:
            derived = pipeline.derive(bundle)
        except NotApplicable as why:
            reason = str(why)
            continue
        if derived.broken:
            raise MtError(derived.broken)
        for _, part in derived.followup.bundles:
            wires_of_bundle(part, part.changed_topics(bundle))
        sha256_of_followup(derived.followup)
        took_ms.append(1e-6 * (time.process_time_ns() - began_ns))
    if len(took_ms) < 2:
        raise NotApplicable(reason or "too few instants to measure by")
    return FollowupCost(float(np.mean(took_ms[1:])))
