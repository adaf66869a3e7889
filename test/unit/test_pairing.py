# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt_nodes.base.process_clock import process_time_s
from mt_nodes.engine.pairing import Inbox, Ticket

SOON_S, NEVER_S = 30.0, 0.0


def said(ticket: Ticket) -> dict[str, Any]:
    return {role: payload for role, (payload, _) in ticket.parts.items()}


def done(inbox: Inbox, ticket: Ticket) -> bool:
    return inbox.wait(ticket, process_time_s() + NEVER_S)


@given(st.permutations(range(6)), st.permutations(range(6)))
def test_stamped_answers_find_their_inputs_in_any_order(sent: list[int], heard: list[int]) -> None:
    inbox = Inbox(("detections",))
    tickets = {stamp: inbox.expect(stamp) for stamp in sent}
    for stamp in heard:
        inbox.put("detections", stamp, f"of {stamp}")
    assert all(done(inbox, t) for t in tickets.values())
    assert {stamp: said(t)["detections"] for stamp, t in tickets.items()} == {s: f"of {s}" for s in sent}
    assert vars(inbox.strays) == {"repeated": 0, "late": 0, "unknown": 0}


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3)), max_size=30))
def test_of_each_role_the_first_output_counts_and_everything_else_is_a_stray(rows: list[tuple[str, int]]) -> None:
    inbox = Inbox(("a", "b"))
    tickets = [inbox.expect(stamp) for stamp in range(3)]
    for n, (role, stamp) in enumerate(rows):
        inbox.put(role, stamp, n)
    first = {key: rows.index(key) for key in rows}
    for stamp, ticket in enumerate(tickets):
        assert said(ticket) == {role: first[role, stamp] for role in "ab" if (role, stamp) in first}
        assert done(inbox, ticket) == ({("a", stamp), ("b", stamp)} <= set(rows))
    known = [key for key in rows if key[1] < 3]
    assert inbox.strays.repeated == len(known) - len(set(known))
    assert inbox.strays.unknown == len(rows) - len(known)


@given(st.data())
def test_answers_by_order_are_never_shifted(data: st.DataObject) -> None:
    """Whatever is late: the n-th answer is the n-th input's, or nobody's."""
    inbox = Inbox(("detections",), "order")
    heard, got = 0, {}
    for n in range(data.draw(st.integers(1, 12))):
        ticket = inbox.expect(n)
        for _ in range(data.draw(st.integers(0, n + 1 - heard), label="answers before the deadline")):
            inbox.put("detections", None, heard)
            heard += 1
        if done(inbox, ticket):
            got[n] = said(ticket)["detections"]
        inbox.close(ticket)
    assert got == {n: n for n in got}
    assert len(got) + inbox.strays.late == heard


@pytest.mark.parametrize("stamp", [None, 77])
def test_by_order_a_stamp_says_nothing(stamp: int | None) -> None:
    inbox = Inbox(("detections",), "order")
    first, second = inbox.expect(1), inbox.expect(2)
    inbox.put("detections", stamp, "x")
    assert done(inbox, first) and not done(inbox, second)


@pytest.mark.parametrize(("match", "stamp"), [("order", 77), ("stamp", None)])
def test_by_order_an_output_after_an_answer_is_a_second_answer(match: str, stamp: int | None) -> None:
    inbox = Inbox(("detections",), match)
    inbox.put("detections", None, "before any input")
    ticket = inbox.expect(1)
    inbox.put("detections", stamp, "answer")
    inbox.close(ticket)
    assert vars(inbox.strays) == {"repeated": 0, "late": 0, "unknown": 1}
    inbox.put("detections", stamp, "again")
    assert vars(inbox.strays) == {"repeated": 1, "late": 0, "unknown": 1}


def test_by_order_what_a_stack_that_may_keep_silent_says_late_is_no_second_answer() -> None:
    inbox = Inbox(("detections",), "order", owes=False)
    inbox.close(inbox.expect(1))
    inbox.put("detections", None, "late")
    assert inbox.strays.repeated == 0


def test_an_output_without_a_stamp_answers_the_oldest_input_beside_stamped_ones() -> None:
    inbox = Inbox(("detections",))
    first, second = inbox.expect(1), inbox.expect(2)
    inbox.put("detections", 2, "stamped")
    inbox.put("detections", None, "empty")
    assert said(first) == {"detections": "empty"} and said(second) == {"detections": "stamped"}


def test_a_stack_that_may_keep_silent_owes_nothing() -> None:
    inbox = Inbox(("detections",), "order", owes=False)
    first = inbox.expect(1)
    inbox.close(first)
    second = inbox.expect(2)
    inbox.put("detections", None, "of the second")
    assert said(second) == {"detections": "of the second"}


def test_the_input_that_is_waited_for_takes_a_stamped_answer_before_one_that_was_given_up() -> None:
    """A bag played again has the same stamps."""
    inbox = Inbox(("detections",))
    inbox.close(inbox.expect(5))
    again = inbox.expect(5)
    inbox.put("detections", 5, "x")
    assert done(inbox, again)


def test_what_comes_after_the_end_is_counted_and_kept_from_the_next() -> None:
    inbox = Inbox(("detections",))
    first = inbox.expect(1)
    inbox.close(first)
    second = inbox.expect(2)
    inbox.put("detections", 1, "late")
    inbox.put("detections", 1, "later")
    inbox.put("detections", 9, "whose?")
    assert said(second) == {}
    assert vars(inbox.strays) == {"repeated": 0, "late": 1, "unknown": 2}
    assert inbox.unknown_stamp_ns == 9


def test_a_restarted_stack_owes_nothing() -> None:
    inbox = Inbox(("detections",), "order")
    inbox.close(inbox.expect(1))
    inbox.clear()
    fresh = inbox.expect(2)
    inbox.put("detections", None, "x")
    assert done(inbox, fresh)


def test_waiting_ends_when_the_last_role_comes_from_another_thread() -> None:
    inbox = Inbox(("a", "b"))
    ticket = inbox.expect(1)
    inbox.put("a", 1, 0)
    assert not done(inbox, ticket)
    other = threading.Thread(target=inbox.put, args=("b", 1, 1))
    other.start()
    assert inbox.wait(ticket, process_time_s() + SOON_S)
    other.join()
    assert all(arrived >= ticket.sent_s for _, arrived in ticket.parts.values())


def test_many_threads_lose_nothing_and_repeat_nothing() -> None:
    inbox, count, threads = Inbox(("detections",)), 200, 8
    tickets = [inbox.expect(stamp) for stamp in range(count)]
    start = threading.Barrier(threads)

    def feed(worker: int) -> None:
        start.wait()
        for stamp in range(count) if worker % 2 else reversed(range(count)):
            inbox.put("detections", stamp, worker)

    workers = [threading.Thread(target=feed, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    assert all(inbox.wait(ticket, process_time_s() + SOON_S) for ticket in tickets)
    for worker in workers:
        worker.join()
    assert inbox.strays.repeated == count * (threads - 1) and inbox.strays.unknown == 0
