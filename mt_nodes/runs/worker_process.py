# SPDX-License-Identifier: Apache-2.0
"""A process that answers one question after another through a pipe, and ends with the one that started it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.processes import die_with_parent, uninterrupted


class WorkerProcess:
    """Our end of a process that answers.

    Args:
        serve: what it does, a function that can be imported; called with its end of the pipe, ``args``, the
            directories of plugins and the id of this process, which it hands to :func:`answer_questions`.
        args: what else it is called with. name: of the process.
    """

    def __init__(self, serve: Callable[..., None], *args: Any, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, *args, plugins.directories(), os.getpid())
        self.process = context.Process(target=serve, args=arguments, name=name)
        with uninterrupted():
            self.process.start()
        theirs.close()

    def end(self, within_s: float) -> int:
        """Ask nothing more, wait so long for its end, then enforce it; return the exit code."""
        self.pipe.close()
        self.process.join(within_s)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        return self.process.exitcode or 0


def answer_questions(pipe: Connection, directories: Iterable[Path], parent: int, answer: Callable[[Any], Any]) -> None:
    """Answer what is asked, in the main thread of a process of its own, until nobody asks any more.

    ``pipe``: questions come in, answers go out. ``directories``: of plugins. ``parent``: id of the process that asks;
    when that ends, so does this one.
    """
    os.setsid()  # an interruption at the terminal is the parent's: it ends us
    die_with_parent()
    if os.getppid() != parent:  # it ended before we asked to be told
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    plugins.add_directories(directories)
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        while True:
            try:
                question = pipe.recv()
            except OSError:
                return
            reply = answer(question)
            try:
                pipe.send(reply)
            except OSError:  # nobody listens any more
                return
