# SPDX-License-Identifier: Apache-2.0
"""Judges readings of a rule by three yes/no questions to language models (arXiv 2510.19438, section III-A2).

The score of a candidate c over S samples of Q = 3 questions is ``H(c) = (1 / (S Q)) sum_s sum_q x[s, q]``, x = 1 for
"no": the share of "no". The lowest wins. Anything but exactly "yes" is a "no", so an unreadable answer scores 1, never
0. Of equal scores the reading of most models wins, then that of the first model. The agreement is ``1 - H(c)``: a
reading with less of it than a threshold is rejected. The paper keeps the best one whatever its score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.rules.answer_statements import BadAnswer, json_in
from mt_nodes.rules.model_queries import Asker, whole
from mt_nodes.rules.prompts import Prompts
from mt_nodes.rules.service import NoAnswer
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.store_entry import sentence

QUESTIONS = ("mentioned", "agrees", "fits")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {question: {"type": "string", "enum": ["yes", "no"]} for question in QUESTIONS},
    "required": list(QUESTIONS),
    "additionalProperties": False,
}


#: Default of the least agreement: most votes are "yes". Assumed; the paper has no threshold.
LEAST_AGREEMENT = 0.5


@dataclass(frozen=True)
class Score:
    """Share of "no" (0 best, 1 worst); ``complete``: every sample was answered, readable or not."""

    value: float
    complete: bool = True

    @property
    def agreement(self) -> float:
        """Share of "yes"."""
        return 1.0 - self.value


@dataclass(frozen=True)
class SelfCheck:
    """Asks each of the ``judges`` ``samples`` times; rejects what has less than ``least_agreement``."""

    judges: Sequence[Asker]
    prompts: Prompts
    samples: int = 3
    least_agreement: float = LEAST_AGREEMENT

    def rejects(self, score: Score) -> bool:
        """Whether a reading is rejected; not while questions are unanswered: another run asks them again."""
        return score.complete and score.agreement < self.least_agreement

    def score(self, text: str, statements: Sequence[Statement]) -> Score:
        """Return the score of a reading of a rule.

        Raises InfrastructureError, UsageError: as for :meth:`mt_nodes.rules.model_queries.Asker.ask`.
        """
        messages = self.prompts.self_check(text, map(sentence, statements))
        nos, complete = 0, True
        for judge in self.judges:
            for sample in range(self.samples):
                try:
                    nos += _nos(judge, messages, sample)
                except NoAnswer:
                    nos, complete = nos + len(QUESTIONS), False
        return Score(nos / (len(self.judges) * self.samples * len(QUESTIONS)), complete)


def _nos(judge: Asker, messages: Any, sample: int) -> int:
    answer = judge.ask(messages, SCHEMA, sample)
    try:
        data = json_in(whole(answer.reply))
    except BadAnswer:
        return len(QUESTIONS)
    return sum(data.get(question) != "yes" for question in QUESTIONS)
