# SPDX-License-Identifier: Apache-2.0
"""What the adapters of commands have in common."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any, ClassVar

from mt_nodes.base.errors import UsageError
from mt_nodes.data.outputs import Control
from mt_nodes.nodes.adapters.base import Adapter
from mt_nodes.nodes.message_classes import stamp_of

#: Either tells where to go: a type that carries one of those that are said loses nothing.
_TURN = frozenset({"steering_rad", "yaw_rate_radps"})


class StampedCommand(Adapter):
    """A command whose message bears a stamp, in its header or beside it."""

    role: ClassVar[str] = "control"

    def stamp_ns(self, message: Any) -> int | None:
        """Stamp of the message."""
        return stamp_of(message)


def or_nought(value: float) -> float:
    """Return a value for a field that must hold one: 0 where the command holds none (NaN)."""
    return 0.0 if math.isnan(value) else float(value)


def refuse_lost(adapter: Adapter, said: Control, message: Any) -> None:
    """Refuse to publish a command as a message that does not hold all that was said.

    Raises:
        UsageError: what would be lost, and what the type carries.
    """
    told, kept = _held(said), _held(adapter.decode(message))
    lost = told - kept - (_TURN if _TURN & told & kept else frozenset())
    if lost:
        raise UsageError(
            f"{adapter.type} carries {', '.join(sorted(kept))}; the callable says {', '.join(sorted(lost))}, which "
            "would be lost: say what it carries, or choose another type (`mt list adapters`)"
        )


def _held(command: Any) -> frozenset[str]:
    values = asdict(command)
    return frozenset(name for name, value in values.items() if name != "stamp_ns" and not math.isnan(value))
