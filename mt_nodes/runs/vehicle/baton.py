# SPDX-License-Identifier: Apache-2.0
"""What a relay leaves to the one that takes its place: a little memory that both see, and that outlives either.

One relay writes at a time; whoever takes over reads what the other wrote when that is dead. All cells are 64 bits
wide and written whole.
"""

from __future__ import annotations

import mmap
import os
from enum import IntEnum

#: So many messages of a topic are remembered as claimed, and twice the depth of its readers: more than can be on their
#: way from a publisher to one reader that another has had already.
CLAIMS = 16
#: So many relays of one run are told from strangers; older ones are long forgotten by the graph.
KIN = 16
#: An endpoint's GID begins with that of its participant (DDS-RTPS, GuidPrefix_t).
PREFIX_BYTES = 12
_PHASE, _OWNER, _BEATS, _FIRST_KIN = range(4)
_KIN_CELLS = 2
_FIRST_TOPIC = _FIRST_KIN + KIN * _KIN_CELLS


class Phase(IntEnum):
    """What the relay that serves is about."""

    STARTING = 0
    #: It beats; when it does not, it is frozen.
    SERVING = 1
    #: It begins, or loads what it needs for another topic, which may take a while.
    BUSY = 2
    #: It was told to end, or cannot go on: nobody is to take its place.
    ENDED = 3


class Baton:
    """The shared memory of the relays of one run.

    Args:
        descriptor: of the memory, see :meth:`create`. topics: how many there are. depth: history depth of readers.
    """

    def __init__(self, descriptor: int, topics: int, depth: int = 0) -> None:
        self.descriptor, self._topics, self._claims = descriptor, topics, _claims(depth)
        self._cells = memoryview(mmap.mmap(descriptor, _size(topics, depth))).cast("q")

    @classmethod
    def create(cls, topics: int, depth: int = 0) -> Baton:
        """Return new memory that nobody else has yet; processes get it by its descriptor."""
        descriptor = os.memfd_create("mt_relay")
        os.ftruncate(descriptor, _size(topics, depth))
        return cls(descriptor, topics, depth)

    @property
    def phase(self) -> Phase:
        """What the relay that serves is about."""
        return Phase(self._cells[_PHASE])

    @phase.setter
    def phase(self, phase: Phase) -> None:
        """Say what it is about."""
        self._cells[_PHASE] = phase

    @property
    def owner(self) -> int:
        """Process id of the relay that serves."""
        return self._cells[_OWNER]

    @property
    def beats(self) -> int:
        """So many signs of life were given."""
        return self._cells[_BEATS]

    def beat(self) -> None:
        """Give a sign of life: the relay serves."""
        self._cells[_BEATS] += 1
        self.phase = Phase.SERVING

    def begin(self, pid: int) -> None:
        """Serve from now on, as the first, or in place of one that has ended."""
        self.phase = Phase.BUSY  # until its first sign of life
        self._cells[_OWNER] = pid

    def forget(self) -> None:
        """Forget what was sent: nobody who takes over has any of it."""
        for at in range(_FIRST_TOPIC, len(self._cells)):
            self._cells[at] = 0

    def announce(self, number: int, prefix: bytes) -> None:
        """Make a relay of this run known by what the GIDs of all of its endpoints begin with."""
        at = _FIRST_KIN + number % KIN * _KIN_CELLS
        whole = prefix[:PREFIX_BYTES].ljust(8 * _KIN_CELLS, b"\0")
        for place in range(_KIN_CELLS):
            self._cells[at + place] = int.from_bytes(whole[8 * place : 8 * place + 8], "little", signed=True)

    def is_kin(self, gid: bytes) -> bool:
        """Whether an endpoint belongs to a relay of this run."""
        cells = self._cells[_FIRST_KIN:_FIRST_TOPIC].tobytes()
        prefix = gid[:PREFIX_BYTES]
        return any(prefix) and any(
            cells[at : at + PREFIX_BYTES] == prefix for at in range(0, len(cells), 8 * _KIN_CELLS)
        )

    def claim(self, topic: int, published_ns: int) -> None:
        """Take it upon oneself to send the message that its publisher published then; before it is sent.

        Whoever dies in the midst of sending leaves a message that nobody sends a second time.
        """
        at = self._at(topic)
        count = self._cells[at]
        self._cells[at] = count + 1
        self._cells[at + 2 + count % self._claims] = published_ns

    def sent(self, topic: int) -> None:
        """Say that what was claimed last is out."""
        at = self._at(topic)
        self._cells[at + 1] = self._cells[at]

    def claimed(self, topic: int) -> frozenset[int]:
        """Return when the messages claimed last were published, ns."""
        at = self._at(topic)
        return frozenset(self._cells[at + 2 : at + 2 + self._claims]) - {0}

    def in_doubt(self, topic: int) -> bool:
        """Whether a message was claimed, and not said to be out: it may have been, and may not."""
        at = self._at(topic)
        return self._cells[at] != self._cells[at + 1]

    def _at(self, topic: int) -> int:
        if not 0 <= topic < self._topics:
            raise IndexError(f"got topic {topic} of {self._topics}")
        return _FIRST_TOPIC + topic * (2 + self._claims)


def _claims(depth: int) -> int:
    return CLAIMS + 2 * depth


def _size(topics: int, depth: int) -> int:
    return 8 * (_FIRST_TOPIC + topics * (2 + _claims(depth)))
