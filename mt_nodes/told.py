# SPDX-License-Identifier: Apache-2.0
"""What a signal handler may set: whoever looks for it must ask again and again."""

from __future__ import annotations

import signal


class Told:
    """False until it is told.

    Not ``threading.Event``, whose ``set`` takes a lock: a second signal that comes while the first is being handled
    would wait for that lock in the very thread that holds it, for ever.
    """

    def __init__(self) -> None:
        self._told = False

    def set(self, *_: object) -> None:
        """Tell; may be a signal's handler."""
        self._told = True

    def is_set(self) -> bool:
        """Whether it was told."""
        return self._told


def told_to_end() -> Told:
    """Return what SIGINT and SIGTERM tell from now on; to be called in the main thread."""
    ended = Told()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ended.set)
    return ended
