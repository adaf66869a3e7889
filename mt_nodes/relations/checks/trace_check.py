# SPDX-License-Identifier: Apache-2.0
"""What every check of the closed loop is: a judgement over two drives through worlds that obeyed."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import Check

if TYPE_CHECKING:
    from mt_nodes.relations.world_changes.base import WorldEffects
    from mt_nodes.world.drive.driven import ScenarioTrace


class TraceCheck(Check):
    """A relation of two episodes. Subclasses are frozen dataclasses whose fields are their parameters.

    One verdict is given of a whole episode (pair ``<episode>/-/…``), by what the ego did and not by what was commanded.
    """

    needs: ClassVar[tuple[str, ...]] = ("control",)

    @abstractmethod
    def judge_drives(self, source: ScenarioTrace, followup: ScenarioTrace, effects: WorldEffects) -> Judgement:
        """Judge two episodes, each of at least one row, that both ran to an end of their own."""

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Say that one instant is no drive."""
        return Judgement(Outcome.NOT_APPLICABLE, reason="one instant is no drive")
