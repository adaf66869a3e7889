# SPDX-License-Identifier: Apache-2.0
"""Groups recorded messages by instant."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError, MtError
from mt_nodes.data.bags.reader import RecordedWire
from mt_nodes.data.cdr import codec
from mt_nodes.data.messages import Bundle, Cloud

#: Largest distance of a sensor's stamp from the leading one's while the period is unknown.
JOIN_NS = 50_000_000
Region = tuple[str, Floats]


@dataclass(eq=False)
class Moment:
    """The messages that belong to one message of the leading sensor; ``at`` is its position in the bag."""

    at: int
    stamp_ns: int
    sensors: list[RecordedWire]
    others: list[tuple[int, RecordedWire]]
    regions: dict[str, Region] = field(default_factory=dict)
    wires: list[RecordedWire] = field(default_factory=list)


class BundleAssembly:
    """Groups recorded messages. A moment is complete after two later leading messages, so that
    other sensors may be recorded late by more than a period.
    """

    def __init__(self, lead: str, sensors: set[str], regions: set[str]) -> None:
        self._lead, self._sensors, self._region_topics = lead, sensors, regions
        self._at = 0
        self._open: deque[Moment] = deque()
        self._loose: list[tuple[int, RecordedWire]] = []  # of other sensors, not joined yet
        self._others: list[tuple[int, RecordedWire]] = []  # since the last leading message
        self._regions: dict[str, Region] = {}
        self._previous_ns: int | None = None

    def take(self, wire: RecordedWire) -> Iterator[Moment]:
        """Take the next recorded message; yield a moment that it completes."""
        self._at += 1
        if wire.topic in self._sensors:
            stamp_ns = codec.header_stamp_ns(wire.cdr)
            wire = replace(wire, stamp_ns=wire.received_ns if stamp_ns is None else stamp_ns)
        if wire.topic == self._lead:
            self._begin(wire)
        elif wire.topic in self._sensors:
            self._loose.append((self._at, wire))
        else:
            self._others.append((self._at, wire))
            if wire.topic in self._region_topics:
                self._set_region(wire)
        if len(self._open) > 2:
            yield self._close()

    def rest(self) -> Iterator[Moment]:
        """Yield the moments that are still open; the last one gets all remaining messages."""
        while len(self._open) > 1:
            yield self._close()
        if self._open:
            yield self._close(last=True)

    @property
    def upcoming(self) -> Moment | None:
        """The moment after the one that was yielded last, with its leading message alone; None: there is none yet."""
        return self._open[0] if self._open else None

    def _begin(self, wire: RecordedWire) -> None:
        others = [*self._others, (self._at, wire)]
        self._open.append(Moment(self._at, wire.stamp_ns, [wire], others, dict(self._regions)))
        self._others = []

    def _set_region(self, wire: RecordedWire) -> None:
        region = codec.polygon_from_msg(codec.decode(wire.type, wire.cdr))
        self._regions[wire.topic] = region
        for moment in self._open:  # only those that had none: a region counts from when it was recorded
            moment.regions.setdefault(wire.topic, region)

    def _close(self, last: bool = False) -> Moment:
        moment = self._open.popleft()
        near_ns = self._tolerance_ns(moment)
        joined = [n for topic in sorted(self._sensors) if (n := self._nearest(topic, moment.stamp_ns, near_ns))]
        moment.sensors += [wire for _, wire in joined]
        places = {at for at, _ in joined}
        passed = {
            at for at, w in self._loose if last or at < moment.at or w.stamp_ns <= moment.stamp_ns + near_ns
        } | places
        leaving = [entry for entry in self._loose if entry[0] in passed]
        self._loose = [entry for entry in self._loose if entry[0] not in passed]
        everything = moment.others + leaving + (self._others if last else [])
        moment.wires = [wire for _, wire in sorted(everything, key=lambda entry: entry[0])]
        self._previous_ns = moment.stamp_ns
        return moment

    def _tolerance_ns(self, moment: Moment) -> int:
        gaps = [self._open[0].stamp_ns - moment.stamp_ns] if self._open else []
        gaps += [moment.stamp_ns - self._previous_ns] if self._previous_ns is not None else []
        return min((gap for gap in gaps if gap > 0), default=2 * JOIN_NS) // 2

    def _nearest(self, topic: str, stamp_ns: int, within_ns: int) -> tuple[int, RecordedWire] | None:
        entries = [entry for entry in self._loose if entry[1].topic == topic]
        best = min(entries, key=lambda entry: abs(entry[1].stamp_ns - stamp_ns), default=None)
        return best if best and abs(best[1].stamp_ns - stamp_ns) <= within_ns else None


def cloud_after(gathered: BundleAssembly, now_ns: int, stamp_ns: int) -> Cloud | None:
    """Return the leading cloud of the moment after the one that is read; None where there is none.

    ``now_ns``: stamp of the moment that is read. ``stamp_ns``: after which the cloud is to come; another one if
    somebody asks for an earlier bundle, whose successor has passed.
    """
    moment = gathered.upcoming
    if stamp_ns != now_ns or moment is None or moment.sensors[0].type != codec.POINT_CLOUD:
        return None
    wire = moment.sensors[0]
    with suppress(MtError):
        return codec.cloud_from_msg(wire.topic, codec.decode(wire.type, wire.cdr))
    return None


def refuse_lost_frame(bundle: Bundle, required: Collection[str], placed: set[str]) -> None:
    """Refuse a message of a required topic whose frame nothing places, where the topic was ``placed`` before.

    A topic that was never placed is another matter: the user gave no transforms for it.
    Raises InfrastructureError: it names topic and frame.
    """
    frames = bundle.transforms.frames
    for message in (m for m in bundle.messages if m.topic in required):
        if message.frame_id in frames:
            placed.add(message.topic)
        elif message.topic in placed:
            raise InfrastructureError(
                f"{message.topic}: got frame '{message.frame_id}', which no transform places, expected the frame of "
                "the messages before"
            )
