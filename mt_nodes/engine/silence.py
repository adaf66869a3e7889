# SPDX-License-Identifier: Apache-2.0
"""Finds a stack that hangs: its process runs, and nothing comes of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.base.errors import StackError
from mt_nodes.engine.arm import Arm
from mt_nodes.engine.judging import Answer, AnswerStatus

HANGS_AFTER = 3
"""So many inputs in a row without an answer, and a stack that says so when it sees nothing counts as hung."""


@dataclass
class Silence:
    """Counts inputs in a row that an arm did not answer."""

    counts: dict[str, int] = field(default_factory=dict)

    def note(self, arm: Arm, answer: Answer) -> None:
        """Take an answer in. Raises StackError: the arm has been silent for too long to be alive."""
        count = self.counts.get(arm.name, 0) + 1 if answer.status is AnswerStatus.SILENT else 0
        self.counts[arm.name] = count
        if count >= HANGS_AFTER:
            raise StackError(
                f"the stack in the {arm.name} arm runs but has not answered {count} inputs in a row ({answer.reason}); "
                "raise deadline_s, or say publishes_when_empty: false in the stack file"
            )
