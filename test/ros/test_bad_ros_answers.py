# SPDX-License-Identifier: Apache-2.0
"""The same over real topics: what a stack says wrongly comes to an outcome, and the next input is answered as ever."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_arms import relation
from recordings import PERIOD_NS
from ros_support import puppet_bundle, until
from test_ros_arm import puppet_arm
from test_ros_external_arm import NOTHING, OwnStack, external_arm

from mt_nodes.data.effects import Effects
from mt_nodes.data.message_headers import stamp_of
from mt_nodes.data.outputs import Detections
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine, Offer
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles

BOX = np.array([[12.0, 3.0, 0.0]])
Answers = Callable[[int], list[Detections]]


def boxes(stamp_ns: int, center_m: Any = BOX, **columns: Any) -> Detections:
    return Detections.make("lidar", stamp_ns, center_m, **columns)


def wrong(answers: Answers) -> Callable[[Any, Any], None]:
    """Answers the first cloud wrongly, and every other with one box."""
    count = [0]

    def answer(message: Any, publisher: Any) -> None:
        count[0] += 1
        stamp_ns = stamp_of(message)
        for said in answers(stamp_ns) if count[0] == 1 else [boxes(stamp_ns)]:
            publisher.publish(MarkerArrayObstacles().encode(said))

    return answer


#: What a stack says to the first cloud, and what that pair comes to when the other arm said one box.
WRONG: dict[str, tuple[Answers, Outcome]] = {
    "twice": (lambda t: [boxes(t), boxes(t, BOX[:0])], Outcome.HOLDS),
    "of the next instant": (lambda t: [boxes(t + 7)], Outcome.UNPAIRED_SOURCE),
    "of the last instant": (lambda t: [boxes(t - PERIOD_NS)], Outcome.UNPAIRED_SOURCE),
    "not at all": (lambda t: [], Outcome.UNPAIRED_SOURCE),
    "NaN": (lambda t: [boxes(t, BOX * np.nan)], Outcome.ERROR),
    "infinite": (lambda t: [boxes(t, BOX * np.inf)], Outcome.ERROR),
    "no class": (lambda t: [boxes(t, label=[""])], Outcome.HOLDS),
    "nothing seen": (lambda t: [boxes(t, BOX[:0])], Outcome.HOLDS),
    "5,000 boxes": (lambda t: [boxes(t, np.tile(BOX, (5000, 1)))], Outcome.VIOLATED),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_that_is_wrong_comes_to_an_outcome(ending: ExitStack, domains: Any, name: str) -> None:
    answers, outcome = WRONG[name]
    OwnStack(ending, domains[2], wrong(answers))
    arm = external_arm(ending, domains[2], deadline_s=20.0 if "boxes" in name else 1.0)
    arm.start()
    arm.ready()
    bundle = puppet_bundle(0)
    heard = arm.wait(arm.send(bundle, NOTHING))
    assert heard is not None
    offer = Offer(relation("r"), (relation("r"),))
    one = Answer(AnswerStatus.ANSWERED, type(heard.output)(detections=boxes(bundle.stamp_ns)))
    [verdict] = Engine(True).judge(offer, bundle, (heard, one), Effects())
    assert verdict.outcome is outcome
    assert verdict.judgement.reason or outcome.decided, "what is not decided says why"
    if name == "twice":
        until(lambda: arm.status()["strays_repeated"] + arm.status()["strays_unknown"] == 1)
    again = arm.wait(arm.send(puppet_bundle(1), NOTHING))
    assert again is not None and again.output.detections is not None and len(again.output.detections) == 1


#: In a process of its own: made in this one, so many would keep the arm's clock from being looked at.
MANY = "def detect(points):\n    return [[12.0, 3.0, 0.0, 4.0, 2.0, 1.5, 0.0]] * 100_000\n"


def test_100_000_boxes_neither_hang_nor_end_the_arm(ending: ExitStack, domains: Any, tmp_path: Path) -> None:
    arm = puppet_arm(ending, tmp_path, domains[2], MANY, deadline_s=0.5)
    arm.start()
    arm.ready()
    began = time.monotonic()
    heard = arm.wait(arm.send(puppet_bundle(0), NOTHING))
    assert heard is not None and heard.status is AnswerStatus.SILENT, "that many are not said within half a second"
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("stamps", [(0, 0, 0), (5, 3, 1), (0, 2000, 2001)])
def test_stamps_that_repeat_go_back_or_jump_are_answered_each(
    ending: ExitStack, domains: Any, stamps: tuple[int, ...]
) -> None:
    OwnStack(ending, domains[2], wrong(lambda t: [boxes(t)]))
    arm = external_arm(ending, domains[2])
    arm.start()
    arm.ready()
    for i in stamps:
        answer = arm.wait(arm.send(puppet_bundle(i), NOTHING))
        assert answer is not None and answer.status is AnswerStatus.ANSWERED
