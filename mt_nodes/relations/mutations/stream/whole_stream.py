# SPDX-License-Identifier: Apache-2.0
"""Base classes of stream mutations: moved stamps, comparison of messages, bursts of affected bundles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import PARTS, Bundle, CameraInfo, Cloud, Image, Message, WorldMessage
from mt_nodes.data.radar import Radar
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation

#: Stamps are 32 bits of seconds, and nanoseconds.
LATEST_NS = 2**31 * 1_000_000_000 - 1
#: Kinds of sensors, the leading one of a bundle first.
SENSORS = ("lidar", "camera", "radar")


class WholeStream(Mutation):
    """Changes when, how often and in which order bundles come, with all their sensor messages.

    Other messages (/tf, the vehicle's state) are unaffected and come as recorded.
    """

    sensors = SENSORS
    random = False


@dataclass(frozen=True)
class NowAndThen(WholeStream):
    """Affects a burst of bundles at a random place of every period of the stream; the others stay.

    The place depends on seed, episode and the bundle's number only, never on earlier bundles. The first bundle of a
    period is never affected: bursts stay apart, and the bundles that they look back to were sent. The draw records
    ``nth``: the position of the bundle in its burst, 0 for none.
    """

    #: Whether ``every`` may be 1: each bundle is affected.
    strikes_all: ClassVar[bool] = False

    every: int = param(
        10, low=1, high=100_000, unit="frames", neutral=100000, help="length of the stretches that hold one burst each"
    )
    burst: int = param(1, low=1, high=100, unit="frames", neutral=1, help="frames in a row that are struck")
    from_frame: int = param(
        0, low=0, high=1_000_000, unit="frames", aspect="place", help="number of the first that may be struck"
    )

    def __post_init__(self) -> None:
        if self.length >= self.every and not (self.strikes_all and self.every == self.length == 1):
            raise UsageError(f"got {self.length} frames to strike of every {self.every}, expected fewer than those")

    @property
    def length(self) -> int:
        """Length of a burst in bundles."""
        return self.burst

    @abstractmethod
    def strike(self, bundle: Bundle, nth: int) -> Followup:
        """Return the follow-up of the ``nth`` bundle of a burst."""

    @abstractmethod
    def prove_strike(self, source: Bundle, followup: Followup, nth: int) -> str | None:
        """Check it; return the broken promise, or None."""

    def check(self, bundle: Bundle, nth: int) -> None:
        """Refuse bundles that cannot be changed. Raises NotApplicable: with the reason."""

    def begin(self, rng: np.random.Generator, bundle: Bundle) -> Any:
        """Draw the seed of the places of all bursts of the episode."""
        return int(rng.integers(2**32))

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Determine whether the bundle is affected."""
        need_messages(bundle)
        stretch, place = divmod(bundle.index - self.from_frame, self.every)
        first = 0
        if self.every > 1:
            chance = np.random.default_rng((state, max(stretch, 0)))
            first = int(chance.integers(1, self.every - self.length, endpoint=True))
        nth = place - first + 1
        if stretch < 0 or not 0 < nth <= self.length:
            return {"nth": 0}
        self.check(bundle, nth)
        return {"nth": nth}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change the bundle, or let it pass."""
        return self.strike(bundle, draw["nth"]) if draw["nth"] else Followup(((0, bundle),))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Prove the promise, and that an unaffected bundle is the source."""
        return self.prove_strike(source, followup, draw["nth"]) if draw["nth"] else passed(source, followup)


@dataclass(frozen=True)
class OneKind(NowAndThen):
    """Affects the messages of all sensors, or of one kind of sensor while the others stay."""

    of: str = param("all", choices=("all", *SENSORS), help="whose frames; camera: with their camera infos")

    @property
    def changes(self) -> tuple[str, ...]:
        """All sensors, or the one kind."""
        return self.sensors if self.of == "all" else (self.of,)

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Determine whether the bundle is affected; one without that kind of sensor cannot be."""
        messages = {"all": True, "lidar": bundle.clouds, "camera": bundle.images, "radar": bundle.radars}
        if not messages[self.of]:
            raise NotApplicable(f"bundle {bundle.index} has no message of a {self.of}, whose frames are changed")
        return super().draw(rng, bundle, state)

    def affected_topics(self, bundle: Bundle) -> frozenset[str]:
        """Return the affected topics."""
        of_kind: dict[str, Iterable[Message]] = {
            "all": bundle.messages,
            "lidar": bundle.clouds,
            "camera": (*bundle.images, *bundle.camera_infos),
            "radar": bundle.radars,
        }
        return frozenset(message.topic for message in of_kind[self.of])

    def leads(self, bundle: Bundle) -> bool:
        """Return whether the affected messages include the leading sensor, whose stamp is the bundle's."""
        lead = "lidar" if bundle.clouds else "camera" if bundle.images else "radar"
        return self.of in ("all", lead)


def topics_of(bundle: Bundle, kind: str) -> set[str]:
    """Return the topics of all sensor messages, or of one kind of sensor, by message type: for proofs."""
    lidar = {id(message) for message in bundle.messages if type(message) is Cloud}
    types = {"all": (Cloud, Image, CameraInfo, WorldMessage), "camera": (Image, CameraInfo), "radar": (Radar,)}
    wanted = (m for m in bundle.messages if (id(m) in lidar if kind == "lidar" else isinstance(m, types[kind])))
    return {message.topic for message in wanted}


def lead_of(bundle: Bundle) -> str:
    """Return the kind of sensor that leads a bundle, by message type: for proofs."""
    return next(kind for kind in SENSORS if topics_of(bundle, kind))


def part_of(bundle: Bundle, topics: frozenset[str]) -> Bundle:
    """Return a bundle with the sensor messages of some topics only, including serialized ones."""
    left_out = {message.topic for message in bundle.messages} - topics
    kept: dict[str, Any] = {name: tuple(m for m in getattr(bundle, name) if m.topic in topics) for name in PARTS}
    return replace(bundle, wires=tuple(wire for wire in bundle.wires if wire.topic not in left_out), **kept)


def need_messages(bundle: Bundle) -> None:
    """Refuse an empty bundle. Raises NotApplicable: it has no sensor message."""
    if not bundle.messages:
        raise NotApplicable(f"bundle {bundle.index} has no sensor message")


def need_room(bundle: Bundle, by_ns: int) -> None:
    """Refuse a bundle whose stamps cannot be moved. Raises NotApplicable: they would exceed the range of a stamp."""
    stamps = [message.stamp_ns + by_ns for message in bundle.messages] + [bundle.stamp_ns + by_ns]
    if min(stamps) < 0 or max(stamps) > LATEST_NS:
        raise NotApplicable(f"stamps moved by {by_ns} ns are {min(stamps)} to {max(stamps)} ns, not in 32 bits of s")


def restamped(bundle: Bundle, by_ns: int) -> Bundle:
    """Return a bundle with all its stamps moved; messages share their data with the old ones."""
    return with_messages(bundle, bundle.stamp_ns + by_ns, {m.topic: moved(m, by_ns) for m in bundle.messages})


def moved(message: Message, by_ns: int) -> Message:
    """Return a message with its stamp moved."""
    return replace(message, stamp_ns=message.stamp_ns + by_ns)


def with_messages(bundle: Bundle, stamp_ns: int, messages: dict[str, Any]) -> Bundle:
    """Return a bundle with another stamp and replaced messages, by topic."""
    new: dict[str, Any] = {name: tuple(messages.get(m.topic, m) for m in getattr(bundle, name)) for name in PARTS}
    return replace(bundle, stamp_ns=stamp_ns, **new)


def passed(source: Bundle, followup: Followup) -> str | None:
    """Prove that the source goes out unchanged and without delay."""
    if [delay_ns for delay_ns, _ in followup.bundles] != [0]:
        return f"delays {[delay_ns for delay_ns, _ in followup.bundles]}, expected one bundle at once"
    return same(source, followup.first, 0)


def same(old: Bundle, new: Bundle, by_ns: int) -> str | None:
    """Prove that two bundles hold the same messages, byte for byte, with every stamp moved by ``by_ns``."""
    if new.stamp_ns - old.stamp_ns != by_ns:
        return f"the bundle's stamp moved by {new.stamp_ns - old.stamp_ns} ns, not {by_ns} ns"
    if [m.topic for m in new.messages] != [m.topic for m in old.messages]:
        return f"got {', '.join(m.topic for m in new.messages)}, was {', '.join(m.topic for m in old.messages)}"
    for a, b in zip(old.messages, new.messages, strict=True):
        if b.stamp_ns - a.stamp_ns != by_ns:
            return f"{a.topic}: the stamp moved by {b.stamp_ns - a.stamp_ns} ns, not {by_ns} ns"
        if not same_content(a, b):
            return f"{a.topic}: more changed than the stamp"
    return None


def same_content(old: Message, new: Message) -> bool:
    """Return whether two messages are the same, byte for byte, except for their stamps."""
    if type(old) is not type(new):
        return False
    return all(_same(getattr(old, f.name), getattr(new, f.name)) for f in fields(old) if f.name != "stamp_ns")


def _same(old: Any, new: Any) -> bool:
    if old is new or not isinstance(old, np.ndarray):
        return bool(old is new or old == new)
    same_layout = isinstance(new, np.ndarray) and (old.dtype, old.shape) == (new.dtype, new.shape)
    return same_layout and np.ascontiguousarray(old).tobytes() == np.ascontiguousarray(new).tobytes()
