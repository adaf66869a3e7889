# SPDX-License-Identifier: Apache-2.0
"""Runs one command cut off from the vehicle: ``python -I -S box.py SPEC -- PROGRAM ARGUMENT…``.

``SPEC`` is JSON: ``required`` (every layer must be there, else exit code 5), ``devices`` (files of ``/dev`` that the
command gets), ``writable`` (directories that it may write to; none: as the user may), ``keep`` (descriptors that stay
open beside 0 to 2), ``report`` (file that is told of each layer why it is missing, empty where it is there).

==========  ===================================================================================================
network     a network of its own with loopback only: no interface, no CAN bus, no abstract socket of others
devices     a ``/dev`` with null, zero, full, random, urandom, tty, terminals of its own, and what is named; device
            files in other places cannot be opened
memory      shared memory and message queues of its own, an empty ``/run``: no DDS shared memory is joined; Unix
            sockets in other places are covered, as far as they were there before
processes   others' processes are not seen and cannot be signalled; all in it end with its first one
system      ``/sys`` and the switches below ``/proc`` can be read only
files       nothing can be written to but ``writable``; only where that names something
privileges  no capability, and none to be had by running a program (``no_new_privs``)
sockets     Unix, IPv4, IPv6 and netlink sockets only: CAN, Bluetooth, raw packets and virtual machines' sockets are
            refused, and io_uring, which opens sockets past that filter; so are user namespaces, which give
            capabilities back, keys that processes of a user share, and typing into a terminal
==========  ===================================================================================================

Not met: a Unix socket that is made later outside ``/run``, and what a named device does. It is there before the
command and costs some ten milliseconds, since it starts without ``site``.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # python -I -S knows of no package
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from mt_nodes.runs.vehicle import layers

LAYERS = ("network", "devices", "memory", "processes", "system", "files", "privileges", "sockets")
REFUSED, CANNOT_START = 5, 127
#: Processes that are left when the command has ended may end by themselves, once told.
GRACE_S = 2.0
_TO_END = (signal.SIGINT, signal.SIGTERM)
_DIES_WITH_PARENT = 1


class Box:
    """The layers of one command, and what became of each: empty where it is there, else why not."""

    def __init__(self, spec: Mapping[str, Any]) -> None:
        """Open the report before anything is hidden."""
        self._spec = spec
        self.missing: dict[str, str] = {}
        self._sockets: tuple[str, ...] = ()
        self._report = os.open(spec["report"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644) if "report" in spec else -1

    def leave(self) -> None:
        """Share no mounts and no network with others, and find out whether processes can be numbered anew."""
        self._try("mounts", layers.own_mounts)
        self._try("memory", self._find_sockets)
        self._try("network", layers.network)
        self._try("processes", _try_numbering, mounts=True)

    def furnish(self) -> None:
        """Put up what the command sees, then take away what that took."""
        if not self.missing["processes"]:
            self._try("processes", layers.own_proc, mounts=True)
        self._try("files", lambda: layers.files(self._spec.get("writable", ())), mounts=True)
        self._try("devices", lambda: layers.devices(self._spec.get("devices", ())), mounts=True)
        if not self.missing["memory"]:
            self._try("memory", lambda: layers.memory(self._sockets), mounts=True)
        self._try("system", layers.system, mounts=True)
        self._try("privileges", layers.privileges)
        self._try("sockets", layers.sockets)
        self._tell({name: self.missing[name] for name in LAYERS})

    def _find_sockets(self) -> None:
        self._sockets = layers.named_sockets()

    def _try(self, name: str, layer: Callable[[], None], *, mounts: bool = False) -> None:
        """Put a layer up; one that mounts is none where others would see it."""
        try:
            if mounts and self.missing["mounts"]:
                raise OSError(self.missing["mounts"])
            layer()
            self.missing[name] = ""
        except OSError as error:
            self.missing[name] = error.strerror or str(error)

    def _tell(self, missing: Mapping[str, str]) -> None:
        if self._report >= 0:
            os.write(self._report, json.dumps(missing).encode())
        lacking = [f"{name} ({why})" for name, why in missing.items() if why]
        if lacking and self._spec.get("required"):
            print(f"box: this system does not allow: {'; '.join(lacking)}", file=sys.stderr, flush=True)
            os._exit(REFUSED)

    def start(self, argv: Sequence[str]) -> None:
        """Become the command."""
        descriptors = sorted({0, 1, 2, *self._spec.get("keep", ())})
        # A limit of today says nothing of descriptors from before it.
        open_descriptors = (int(each.name) for each in Path("/proc/self/fd").iterdir())
        for low, high in pairwise([-1, *descriptors, max(*descriptors, *open_descriptors) + 1]):
            if low + 1 < high:  # of an empty range Python may make all there are
                os.closerange(low + 1, high)
        for descriptor in descriptors:
            os.set_inheritable(descriptor, True)
        for number in _TO_END:
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(argv[0], list(argv))
        except OSError as error:
            print(f"cannot start {argv[0]!r}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(CANNOT_START)


def _try_numbering() -> None:
    """Try it in processes that are thrown away: it cannot be taken back, and ``/proc`` may not be mounted anew."""

    def inside() -> None:
        layers.own_mounts()
        layers.number_processes()
        _carried_out(layers.own_proc)

    _carried_out(inside)


def _carried_out(what: Callable[[], None]) -> None:
    """Do something in a process of its own, and raise what it raised there."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            what()
        except OSError as error:
            os.write(writable, (error.strerror or str(error)).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, encoding="utf-8") as pipe:
        message = pipe.read()
    os.waitpid(child, 0)
    if message:
        raise OSError(message)


def _first_process(box: Box, argv: Sequence[str], tell: int) -> None:
    """Be the first process of the box: when it ends, whatever is left in there ends with it."""
    layers.libc.prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    command = os.fork()
    if command == 0:
        box.furnish()
        box.start(argv)
    child, status = os.wait()
    while child != command:
        child, status = os.wait()
    os.write(tell, struct.pack("i", status))
    _let_end()
    os._exit(0)


def _let_end() -> None:
    """Tell everybody who is left in the box to end, and wait a while for it."""
    until_s = time.monotonic() + GRACE_S
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    try:
        for number in (signal.SIGTERM, signal.SIGCONT):
            os.kill(-1, number)
        while (left_s := until_s - time.monotonic()) > 0.0:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            signal.sigtimedwait({signal.SIGCHLD}, left_s)
    except (ProcessLookupError, ChildProcessError):
        return


def _leave_as(status: int) -> None:
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.exit(os.WEXITSTATUS(status))


def main(spec: Mapping[str, Any], argv: Sequence[str]) -> None:
    """Run the command to its end, and exit as it did."""
    layers.libc.prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    # The whole group is told to end: the command answers, and who stands before it waits for that.
    for number in _TO_END:
        signal.signal(number, signal.SIG_IGN)
    box = Box(spec)
    box.leave()
    if box.missing["processes"]:
        box.furnish()
        box.start(argv)
    readable, writable = os.pipe()
    layers.number_processes()
    first = os.fork()
    if first == 0:
        os.close(readable)
        _first_process(box, argv, writable)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        status = pipe.read()
    ended = os.waitpid(first, 0)[1]
    _leave_as(struct.unpack("i", status)[0] if status else ended)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[sys.argv.index("--") + 1 :])
