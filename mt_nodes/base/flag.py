# SPDX-License-Identifier: Apache-2.0
"""What a signal handler may set: whoever looks for it must ask again and again."""

from __future__ import annotations

import signal


class Flag:
    """False until it is set.

    Not ``threading.Event``, whose ``set`` takes a lock: a second signal that comes while the first is being handled
    would wait for that lock in the very thread that holds it, for ever.
    """

    def __init__(self) -> None:
        self._set = False

    def set(self, *_: object) -> None:
        """Set it; may be a signal's handler."""
        self._set = True

    def is_set(self) -> bool:
        """Whether it was."""
        return self._set


def flag_of_signals() -> Flag:
    """Return a flag that SIGINT and SIGTERM set from now on; to be called in the main thread."""
    ended = Flag()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, ended.set)
    return ended
