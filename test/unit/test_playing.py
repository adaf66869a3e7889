# SPDX-License-Identifier: Apache-2.0
"""Many plays in arms that stay alive: when they are started anew, what is heard of a play, and bundles read once."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from fake_arms import Behaviour, FakeArm, Sent, answered, relation, seen, silent, suite
from recordings import bundles

from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.judging import Answer
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.runs.replay import replay_bench
from mt_nodes.runs.replay.replay_bench import CachedEpisode, PlayResult, ReplayBench

SUITE, DRIVE = suite(relation("shuffled")), bundles(3)


def played(plays: int, behave: Behaviour, **traits: bool) -> tuple[list[str], list[PlayResult]]:
    """Play so often in one arm; return when it was started anew, by the number of the play, and what was heard."""
    stack = {"stateless": True, "publishes_when_empty": False, "external": False, **traits}
    settings = PlaySettings(
        *(SUITE, 0, stack["stateless"], stack["publishes_when_empty"]),
        mode="alternate" if stack["stateless"] else "two_pass",
        only=Pair(0, 2, "shuffled", "0"),
    )
    arm, heard, restarts = FakeArm("source", behave), [], []
    bench = ReplayBench(SimpleNamespace(**stack), (arm, arm))  # type: ignore[arg-type]
    for play in range(plays):
        before = len(arm.events)
        heard.append(bench.play(PlayResult(), settings, [lambda: iter(DRIVE)]))
        first = next((name for name, _ in arm.events[before:]), "")
        restarts += [str(play)] if first == "restart" else []
    assert bench.plays == plays
    return restarts, heard


def loses(sent: Sent) -> Answer:
    return answered(seen(0 if sent.changed else 1))


def late(sent: Sent) -> Answer:
    return silent() if sent.changed and sent.bundle.index == 1 else answered(seen(1))


def test_a_stateless_stack_goes_on_as_it_is() -> None:
    restarts, heard = played(4, loses)
    assert not restarts and [one.violated(Pair(0, 2, "shuffled", "0")) for one in heard] == [True] * 4
    assert not any(one.late for one in heard) and not heard[0].violated(Pair(0, 2, "other", "0"))


def test_a_stack_that_owes_an_answer_is_started_anew_unless_that_is_not_ours_to_do() -> None:
    restarts, heard = played(3, late)
    assert restarts == ["1", "2"] and all(one.late for one in heard)
    assert not played(3, late, external=True)[0]


def test_a_stack_that_remembers_is_started_anew_for_each_play_but_the_first() -> None:
    assert played(3, loses, stateless=False)[0] == ["1", "2"]


class Read:
    """An episode that counts how often it was opened."""

    def __init__(self) -> None:
        self.opened = 0

    def __call__(self) -> Iterator[Bundle]:
        self.opened += 1
        return iter(DRIVE)


def test_a_tape_reads_a_drive_once_and_no_further_than_its_end() -> None:
    drive = Read()
    tape = CachedEpisode(drive, end=2)
    assert next(iter(tape)) is DRIVE[0], "who looks at the first only has not read the rest"
    assert [list(tape), list(tape()), list(tape)] == [DRIVE[:2]] * 3
    assert drive.opened == 2


def test_what_memory_does_not_allow_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_bench, "_IN_MEMORY_BYTES", -1)
    drive = Read()
    tape = CachedEpisode(drive)
    assert [list(tape), list(tape)] == [DRIVE] * 2 and drive.opened == 2
