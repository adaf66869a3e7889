# SPDX-License-Identifier: Apache-2.0
"""What comes through the wall of a box is a message of a known topic or a report; all else ends it, and is told."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.errors import ExitCode, InfrastructureError
from mt_nodes.base.safety_settings import Actuators, BoxSettings
from mt_nodes.runs.vehicle.boxed_stack import BoxedStack, Passing
from mt_nodes.runs.vehicle.pipe import Pipe

REPORT = 0xFFFF
LIMIT_S = 150.0


def framed(number: int, data: bytes, length: int | None = None) -> bytes:
    return struct.pack("<HI", number, len(data) if length is None else length) + data


def received(sent: bytes, topics: int = 2) -> list[Any]:
    """Return what a pipe makes of bytes after which the other end is gone."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        writer = threading.Thread(target=_send, args=(theirs, sent))
        writer.start()
        try:
            return list(Pipe(ours).received(topics))
        finally:
            ours.close()
            writer.join()


def _send(end: socket.socket, sent: bytes) -> None:
    with suppress(OSError):  # whoever refuses does not read on
        end.sendall(sent)
        end.shutdown(socket.SHUT_WR)


def test_messages_and_reports_come_as_they_were_sent() -> None:
    ours, theirs = socket.socketpair()
    sender = Pipe(theirs)
    sender.report({"ready": True})
    sender.message(1, b"\x00\x01data")
    sender.message(0, b"")
    sender.close()
    assert list(Pipe(ours).received(2)) == [{"ready": True}, (1, b"\x00\x01data"), (0, b"")]
    ours.close()


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (framed(2, b"data"), "got a message of topic number 2, expected a number below 2"),
        (framed(1, b"", 0xFFFFFFFF), "got 4294967295 bytes at once, expected 268435456 at most"),
        (framed(REPORT, b"", 5000), "got 5000 bytes at once, expected 4096 at most"),
        (framed(REPORT, b"no json"), "got a report that is no JSON"),
        (framed(REPORT, b"\xff\xfe\xfd"), "got a report that is no JSON"),
        (framed(REPORT, b"[" * 4000), "got a report that is no JSON"),
        (framed(REPORT, b"[1]"), "got a report that is a list, expected an object"),
        (framed(REPORT, b"null"), "got a report that is a NoneType"),
        (framed(REPORT, b""), "got a report that is no JSON"),
    ],
)
def test_what_is_neither_is_refused_with_what_it_was(sent: bytes, says: str) -> None:
    with pytest.raises(InfrastructureError, match=says):
        received(sent)


@pytest.mark.parametrize("cut", range(1, 11))
def test_who_stops_amid_a_message_has_sent_those_before_it(cut: int) -> None:
    whole = framed(0, b"first")
    assert received(whole + framed(1, b"abcd")[:cut]) == [(0, b"first"), *([(1, b"abcd")] if cut == 10 else [])]


@given(st.binary(max_size=200))
def test_no_bytes_do_more_than_end_it(sent: bytes) -> None:
    try:
        got = received(sent)
    except InfrastructureError:
        return
    assert all(isinstance(one, dict) or one[0] < 2 for one in got)


#: Stands in for what runs in the box: is told the descriptor of its end of the pipe, and says what it is given.
IMPOSTOR = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
os.write(int(sys.argv[1]), bytes.fromhex(sys.argv[2]))
try:
    while True:
        time.sleep(60.0)
except KeyboardInterrupt:
    sys.exit(0)
"""


@pytest.fixture
def spec(tmp_path: Path, domains: tuple[int, ...]) -> Iterator[Path]:
    boxed = BoxedStack(
        name="stack",
        argv=("true",),
        env={},
        log=str(tmp_path / "log"),
        domain=domains[1],
        inputs=(Passing("/points", "sensor_msgs/msg/PointCloud2"),),
        outputs=(Passing("/boxes", "std_msgs/msg/String"),),
        nodes=(),
        actuators=Actuators(),
        observers=(),
        ready_timeout_s=LIMIT_S,
        stop_timeout_s=5.0,
        box=BoxSettings(use="auto"),
    )
    boxed.save(tmp_path / "box.json")
    yield tmp_path / "box.json"


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (framed(REPORT, b"[" * 4000), "a report that is no JSON"),
        (framed(REPORT, b"[1]"), "a report that is a list"),
        (framed(REPORT, b'{"ready": true}') + framed(7, b"data"), "a message of topic number 7"),
    ],
)
def test_a_bridge_whose_other_side_talks_nonsense_ends_and_says_so(sent: bytes, says: str, spec: Path) -> None:
    code = (
        "import sys\nfrom mt_nodes.nodes import box_outside\n"
        "def instead(settings, argv, report, keep):\n"
        f"    return (sys.executable, '-c', {IMPOSTOR!r}, str(keep[0]), {sent.hex()!r})\n"
        "box_outside.in_box = instead\n"
        f"box_outside.main(['--spec', {str(spec)!r}])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=LIMIT_S, env=os.environ
    )
    assert ended.returncode == ExitCode.INFRASTRUCTURE, ended.stderr
    assert f"box_outside: from the other side of the box: got {says}" in ended.stderr
