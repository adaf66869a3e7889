# SPDX-License-Identifier: Apache-2.0
"""The ego turns to the left at a place."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.relations.checks.turns_there import TurnThereCheck


@dataclass(frozen=True)
class TurnsLeftThere(TurnThereCheck):
    """Before or at what was changed the ego drives farther to the left than the source: ``turn_left``."""

    @property
    def side(self) -> float:
        """To the left."""
        return 1.0
