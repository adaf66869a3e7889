# SPDX-License-Identifier: Apache-2.0
"""What a relay makes of who connects to it: whole offers arrive, whatever else is sent holds up nobody."""

from __future__ import annotations

import socket
import stat
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.processes import wait_until
from mt_nodes.runs.vehicle.offers import MOST_BYTES, Offers, OfferServer

LONG_S = 100.0
Offer = tuple[int, int, bytes]


class Taken:
    """The relay's end, and what came in."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offers: list[Offer] = []
        self.end = OfferServer(path, self._take)

    def _take(self, number: int, stamp_ns: int, data: memoryview) -> None:
        self.offers.append((number, stamp_ns, bytes(data)))

    def raw(self) -> socket.socket:
        """A peer that sends what it likes."""
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        peer.connect(str(self.path))
        peer.settimeout(LONG_S)
        return peer

    def count(self, wanted: int) -> bool:
        return wait_until(lambda: len(self.offers) >= wanted, LONG_S)


@pytest.fixture
def taken(tmp_path: Path) -> Iterator[Taken]:
    one = Taken(tmp_path / "offers.sock")
    yield one
    one.end.close()


def header(number: int, stamp_ns: int, length: int) -> bytes:
    return struct.pack("<HqI", number, stamp_ns, length)


@given(st.lists(st.tuples(st.integers(0, 2**16 - 1), st.integers(-(2**63), 2**63 - 1), st.binary(max_size=500))))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_offers_arrive_whole_and_in_their_order(taken: Taken, rows: list[Offer]) -> None:
    taken.offers.clear()
    mutator = Offers(taken.path)
    for row in rows:
        mutator.offer(*row)
    assert taken.count(len(rows))
    mutator.close()
    assert taken.offers == rows


def test_only_its_user_may_offer(taken: Taken) -> None:
    assert stat.S_IMODE(taken.path.stat().st_mode) == 0o600


def test_what_comes_in_pieces_is_one_offer(taken: Taken) -> None:
    with taken.raw() as peer:
        for byte in header(1, 7, 3) + b"abc":
            peer.sendall(bytes([byte]))
        assert taken.count(1)
    assert taken.offers == [(1, 7, b"abc")]


def test_a_mutator_that_goes_in_the_midst_of_an_offer_has_offered_nothing(taken: Taken) -> None:
    for torn in (header(0, 1, 10)[:5], header(0, 1, 10), header(0, 1, 10) + b"half"):
        with taken.raw() as peer:
            peer.sendall(torn)
    mutator = Offers(taken.path)
    mutator.offer(0, 2, b"whole")
    assert taken.count(1)
    mutator.close()
    assert taken.offers == [(0, 2, b"whole")]


@pytest.mark.parametrize("length", [MOST_BYTES + 1, 2**32 - 1])
def test_who_announces_more_than_any_message_has_is_hung_up_on_and_the_next_is_heard(taken: Taken, length: int) -> None:
    with taken.raw() as peer:
        peer.sendall(header(0, 1, length))
        assert peer.recv(1) == b"", "the relay hangs up"
    mutator = Offers(taken.path)
    mutator.offer(0, 2, b"whole")
    assert taken.count(1)
    mutator.close()
    assert taken.offers == [(0, 2, b"whole")]


def test_it_is_known_whether_a_mutator_is_there(taken: Taken) -> None:
    assert not taken.end.connected
    mutator = Offers(taken.path)
    assert wait_until(lambda: taken.end.connected, LONG_S)
    mutator.close()
    assert wait_until(lambda: not taken.end.connected, LONG_S)


def test_a_relay_ends_though_a_mutator_stands_still_in_the_midst_of_an_offer(tmp_path: Path) -> None:
    one = Taken(tmp_path / "offers.sock")
    with one.raw() as peer:
        peer.sendall(header(0, 1, 10) + b"half")
        assert wait_until(lambda: one.end.connected, LONG_S)
        closing = threading.Thread(target=one.end.close, daemon=True)
        closing.start()
        closing.join(LONG_S)
        assert not closing.is_alive() and one.offers == []
    assert not one.path.exists()


def test_a_mutator_is_told_that_the_relay_is_gone(taken: Taken) -> None:
    mutator = Offers(taken.path)
    assert wait_until(lambda: taken.end.connected, LONG_S)
    taken.end.close()
    with pytest.raises(InfrastructureError, match="the relay is gone"):
        for _ in range(100):
            mutator.offer(0, 1, bytes(100_000))
    with pytest.raises(InfrastructureError, match="no relay listens there"):
        Offers(taken.path)


def test_a_socket_that_another_left_behind_is_replaced(taken: Taken) -> None:
    """A relay that was killed takes nothing away."""
    second = Taken(taken.path)
    mutator = Offers(taken.path)
    mutator.offer(0, 1, b"x")
    assert second.count(1)
    mutator.close()
    second.end.close()
    assert taken.offers == []


def test_a_path_that_is_too_long_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="choose a shorter --out"):
        OfferServer(tmp_path / ("x" * 120), lambda number, stamp_ns, data: None)


def test_who_connects_while_it_closes_holds_nobody_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    accept, came = socket.socket.accept, threading.Event()

    def late(server: socket.socket) -> tuple[socket.socket, Any]:
        accepted = accept(server)
        came.set()
        assert wait_until(lambda: server.fileno() < 0, LONG_S)  # closed in the meantime
        return accepted

    monkeypatch.setattr(socket.socket, "accept", late)
    relay = Taken(tmp_path / "offers.sock")
    with relay.raw() as peer:
        assert came.wait(LONG_S)
        closing = threading.Thread(target=relay.end.close, daemon=True)
        closing.start()
        assert peer.recv(1) == b""
        closing.join(LONG_S)
        assert not closing.is_alive()
