# SPDX-License-Identifier: Apache-2.0
"""The stack turns to the right."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.relations.checks.turns import TurnCheck


@dataclass(frozen=True)
class TurnsRight(TurnCheck):
    """The follow-up steers further to the right than the source, or than straight on: AutoMT's ``turn_right``."""

    @property
    def side(self) -> float:
        """To the right."""
        return -1.0
