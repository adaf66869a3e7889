# SPDX-License-Identifier: Apache-2.0
"""What the adapters of commands have in common."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from mt_nodes.nodes.adapters.base import Adapter
from mt_nodes.nodes.messages import stamp_of


class StampedCommand(Adapter):
    """A command whose message bears a stamp, in its header or beside it."""

    role: ClassVar[str] = "control"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the message."""
        return stamp_of(message)


def or_nought(value: float) -> float:
    """Return a value for a field that must hold one: 0 where the command holds none (NaN)."""
    return 0.0 if math.isnan(value) else float(value)
