# SPDX-License-Identifier: Apache-2.0
"""Only the command itself ends its process with a code of its own: what a plugin exits with says nothing of a run."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from mt_nodes.base.errors import ExitCode, InfrastructureError

_AT_ONCE = os._exit


@contextmanager
def no_early_end() -> Iterator[None]:
    """Take ``sys.exit`` and ``os._exit`` in the block, by whomever and in whichever thread, for a breakdown.

    Processes that were forked of this one end as they like.

    Raises:
        InfrastructureError: something in the block wanted to exit.
    """
    own = os.getpid()

    def leave(status: int) -> NoReturn:
        if os.getpid() == own:
            print(f"mt: {_told(f'os._exit({status})')}", file=sys.stderr, flush=True)
            status = ExitCode.INFRASTRUCTURE
        _AT_ONCE(status)

    os._exit = leave
    try:
        yield
    except SystemExit as error:
        raise InfrastructureError(_told(f"sys.exit({error.code!r})")) from error
    finally:
        os._exit = _AT_ONCE


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


def _told(call: str) -> str:
    return f"a plugin, or what it uses, called {call} before the command had come to its end"
