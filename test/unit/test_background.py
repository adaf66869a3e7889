# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import threading

import pytest

from mt_nodes.base.background import Background


def test_jobs_are_done_in_order_and_beside_the_caller() -> None:
    done: list[int] = []
    gate, background = threading.Event(), Background()
    background.do(lambda: done.append(0) if gate.wait(60) else None)
    for i in (1, 2, 3):
        background.do(done.append, i)
    assert done == []
    gate.set()
    background.wait()
    assert done == [0, 1, 2, 3]
    background.close()


def test_a_caller_too_far_ahead_waits() -> None:
    gate, background, done = threading.Event(), Background(most_waiting=2), threading.Event()

    def ahead() -> None:
        for _ in range(3):
            background.do(gate.wait, 10)  # type: ignore[arg-type]
        done.set()

    caller = threading.Thread(target=ahead)
    caller.start()
    assert not done.wait(0.1)
    gate.set()
    assert done.wait(60)
    caller.join()
    background.close()


def test_what_went_wrong_is_told() -> None:
    def fail() -> None:
        raise OSError("no space left")

    background = Background()
    background.do(fail)
    with pytest.raises(OSError, match="no space left"):
        background.wait()
    background.wait()
    background.close()
