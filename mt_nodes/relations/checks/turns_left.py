# SPDX-License-Identifier: Apache-2.0
"""The stack turns to the left."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.relations.checks.turns import TurnCheck


@dataclass(frozen=True)
class TurnsLeft(TurnCheck):
    """The follow-up steers further to the left than the source, or than straight on: AutoMT's ``turn_left``."""

    @property
    def side(self) -> float:
        """To the left."""
        return 1.0
