# SPDX-License-Identifier: Apache-2.0
"""Decides pairs where nobody waits: only what both arms remember alike is judged."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine.followups import FollowupPlan
from mt_nodes.engine.judging import Answer, AnswerStatus, Engine
from mt_nodes.engine.recorder import ExecutedPair

#: Answers of so many former inputs must be alike in both arms before a stack that remembers is judged.
MEMORY = 5
DIFFERENT = f"the arms have not both answered each of the last {MEMORY} inputs, so they may remember differently"


class MemoryGuard:
    """Turns a follow-up that was sent, and what both arms said, into verdicts, in the order of the inputs.

    Args:
        engine: what judges.
        stateless: whether former inputs are of no matter to the stack.
    """

    def __init__(self, engine: Engine, stateless: bool) -> None:
        self._engine, self._stateless = engine, stateless
        self._recent: deque[bool] = deque(maxlen=MEMORY)

    def forget(self) -> None:
        """Begin anew: the arms have, too."""
        self._recent.clear()

    def heard(self, source: Answer, followups: Sequence[Answer | None]) -> bool:
        """Take in an input and say whether both arms answered all of it."""
        answered = all(a is not None and a.heard is AnswerStatus.ANSWERED for a in (source, *followups))
        self._recent.append(answered)
        return answered

    def missed(self) -> None:
        """Note that one arm had an input that the other had not."""
        self._recent.append(False)

    @property
    def same_memory(self) -> bool:
        """Whether the arms have heard and answered the same lately."""
        return self._stateless or all(self._recent)

    def decide(
        self, prepared: FollowupPlan, bundle: Bundle, source: Answer, followups: Sequence[Answer | None]
    ) -> tuple[list[Verdict], ExecutedPair | None]:
        """Return the verdicts of a follow-up that is not yet taken in, and what they were judged by."""
        followup = next(iter(followups), None)
        if prepared.outcome is not None or prepared.derived is None or followup is None:
            outcome = prepared.outcome or Outcome.ERROR
            return self._engine.without_followup(prepared.offer, bundle, outcome, prepared.reason), None
        if not self.same_memory:
            return self._engine.without_followup(prepared.offer, bundle, Outcome.SETTLING, DIFFERENT), None
        effects, sent = prepared.derived.effects, prepared.derived.followup.bundles
        case = ExecutedPair(prepared.offer, bundle, sent[0][1], effects, source, followup, prepared.baseline, sent)
        return self._engine.judge(prepared.offer, bundle, (source, followup), effects), case
