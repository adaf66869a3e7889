# SPDX-License-Identifier: Apache-2.0
"""What every suite process is: it carries out what a run directory says, and tells whoever started it how that goes.

What it prints is its log. Events go to the descriptor given with ``--events``: JSON lines, at the end ``{"end": …}``.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import return_freed_memory, use_enclave
from mt_nodes.base.errors import ExitCode, MtError
from mt_nodes.base.processes import Flag, die_with_parent, nobody_left_behind
from mt_nodes.nodes.node_help import node_parser

STATUS_EVERY_S = 0.5


def ros_arguments() -> list[str]:
    """Return the ROS arguments of this process: they hold for the nodes in the user's or the control domain."""
    return sys.argv[sys.argv.index("--ros-args") :] if "--ros-args" in sys.argv else []


_interrupted = Flag()


class ProgressEvents:
    """Where progress is told."""

    def __init__(self, descriptor: int | None) -> None:
        self._file = None if descriptor is None else os.fdopen(descriptor, "w", buffering=1)

    @property
    def unheard(self) -> bool:
        """Whether whoever asked for them is gone: nobody holds the other end any more."""
        if self._file is None:
            return False
        looking = select.poll()
        looking.register(self._file, 0)
        return bool(looking.poll(0))

    def send(self, event: Mapping[str, Any]) -> None:
        """Tell one thing, if anybody listens."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(event) + "\n")
        except BrokenPipeError:
            self._file = None  # whoever asked is gone; the run is not


def run_suite(
    name: str, carry_out: Callable[[Path, ProgressEvents], Mapping[str, Any]], args: list[str] | None
) -> None:
    """Carry out the run of a directory to its end and exit with its exit code.

    ``carry_out``: does it, and returns the summary. ``args``: command line.
    """
    parser = node_parser(name, args)
    parser.add_argument("--run", type=Path, required=True, metavar="DIR", help="made by `mt replay` or `mt live`")
    parser.add_argument("--events", type=int, metavar="FD", help="descriptor for progress")
    given, _ = parser.parse_known_args(args)
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    die_with_parent()
    use_enclave(name)
    return_freed_memory()
    events = ProgressEvents(given.events)
    try:
        if events.unheard:  # it ended before we asked to be told
            raise KeyboardInterrupt
        with nobody_left_behind():
            summary = carry_out(given.run, events)
        code, error = summary["exit_code"], None
    except MtError as problem:
        code, error = int(problem.exit_code), str(problem)
        print(f"{name}: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        code, error = int(ExitCode.INTERRUPTED), "interrupted"
    events.send({"end": code, "error": error})
    sys.exit(code)


def check_interrupted() -> None:
    """Raise an interruption again that came earlier: Python drops one that is raised in a destructor or a hook."""
    if _interrupted.is_set():
        raise KeyboardInterrupt


def _interrupt(number: int, frame: Any) -> None:
    """Interrupt once: terminal, launch file and a user in a hurry may all signal, and the summary is to be written."""
    if not _interrupted.is_set():
        _interrupted.set()
        raise KeyboardInterrupt
