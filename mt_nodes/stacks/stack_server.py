# SPDX-License-Identifier: Apache-2.0
"""Forks the processes of in-process stacks: ``python -m mt_nodes.stacks.stack_server DESCRIPTOR``.

It has imported what every such stack needs, runs no code of a stack and has no threads, so that a process forked from
it starts within milliseconds and is as good as a new one. It reports the exit code of each
and the processor time that it took.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import socket
import sys

from mt_nodes.base.garbage import end_process
from mt_nodes.stacks.shared_channel import SharedChannel
from mt_nodes.stacks.stack_host import serve

MESSAGE_BYTES = 1 << 16
#: Descriptors that come with a request: end of the channel, memory to write to, memory to read from, log.
DESCRIPTORS = 4
#: Only modules of the package are imported here; users' code is imported in its own process.
OURS = "mt_nodes."


def main(number: int) -> None:
    """Serve requests from a socket until its other end is closed; a forked process ends in here."""
    control = socket.socket(fileno=number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends with the other end of its socket
    ends: dict[int, tuple[int, float] | None] = {}
    importlib.import_module("numpy.ma")  # np.unique would import it in each forked process
    gc.freeze()  # garbage collection would copy shared pages
    while True:
        data, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
        if not data:
            return
        request = json.loads(data)
        _reap(ends)
        if "pid" in request:
            control.send(json.dumps(ends.pop(request["pid"])).encode())
            continue
        if request["module"].startswith(OURS):
            importlib.import_module(request["module"])
        pid = os.fork()
        if not pid:
            control.close()
            _host(*descriptors)
            end_process(0)
        ends[pid] = None
        handle = os.pidfd_open(pid)
        socket.send_fds(control, [json.dumps(pid).encode()], [handle])
        for each in (handle, *descriptors):
            os.close(each)


def _reap(ends: dict[int, tuple[int, float] | None]) -> None:
    """Collect exit code and processor time in seconds, children included, of ended processes."""
    for pid in [pid for pid, end in ends.items() if end is None]:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            ends[pid] = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime


def _host(end: int, outgoing: int, incoming: int, log: int) -> None:
    """Run as the process of a stack."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for output in (1, 2):
        os.dup2(log, output)
    os.close(log)
    serve(SharedChannel(socket.socket(fileno=end), outgoing, incoming))


if __name__ == "__main__":
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    main(int(sys.argv[1]))
