# SPDX-License-Identifier: Apache-2.0
"""The ego turns to the right at a place."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.relations.checks.turns_there import TurnThereCheck


@dataclass(frozen=True)
class TurnsRightThere(TurnThereCheck):
    """Before or at what was changed the ego drives farther to the right than the source: ``turn_right``."""

    @property
    def side(self) -> float:
        """To the right."""
        return -1.0
