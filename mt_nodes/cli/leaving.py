# SPDX-License-Identifier: Apache-2.0
"""Only the command itself ends its process with a code of its own: what a plugin exits with says nothing of a run."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from mt_nodes.base.errors import InfrastructureError


@contextmanager
def no_early_end() -> Iterator[None]:
    """Take ``sys.exit`` in the block for a breakdown; what ends the process itself is for ``supervision`` to tell.

    Raises:
        InfrastructureError: something in the block wanted to exit.
    """
    try:
        yield
    except SystemExit as error:
        raise InfrastructureError(
            f"a plugin, or what it uses, called sys.exit({error.code!r}) before the command had come to its end"
        ) from error


def reader_is_gone() -> bool:
    """Tell whether nobody reads standard output any more; what is still to go there then goes nowhere."""
    try:
        stdout = sys.stdout.fileno()
    except (OSError, ValueError):  # it is none of the system's
        return False
    poll = select.poll()
    poll.register(stdout, 0)
    if not any(state & select.POLLERR for _, state in poll.poll(0)):
        return False
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stdout)
    os.close(nowhere)
    return True
