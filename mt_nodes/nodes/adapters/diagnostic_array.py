# SPDX-License-Identifier: Apache-2.0
"""Health of a stack's nodes as ``diagnostic_msgs/DiagnosticArray``."""

from __future__ import annotations

from typing import Any, ClassVar

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus

from mt_nodes.data.outputs import Diagnostics
from mt_nodes.nodes.adapters.base import Adapter, Said


class DiagnosticArrayErrors(Adapter):
    """Statuses at level ERROR, by name, each with its text; those at OK, WARN and STALE are no errors.

    They answer no input: what was told since the last answer goes with the next one.
    """

    type: ClassVar[str] = "diagnostic_msgs/msg/DiagnosticArray"
    role: ClassVar[str] = "diagnostics"
    stamped: ClassVar[bool] = False

    def stamp_ns(self, message: Any) -> None:
        """The stamp of the array is that of its telling, not that of an input."""

    def decode(self, message: Any) -> Diagnostics:
        """Read the errors."""
        return Diagnostics({s.name: s.message for s in message.status if _level(s.level) == _level(_ERROR)})

    def encode(self, said: Said) -> DiagnosticArray:
        """Write one status an error."""
        assert isinstance(said, Diagnostics)
        return DiagnosticArray(
            status=[DiagnosticStatus(level=_ERROR, name=name, message=text) for name, text in said.errors.items()]
        )


_ERROR = DiagnosticStatus.ERROR


def _level(value: Any) -> int:
    """Levels are bytes to rclpy and numbers to others."""
    return value[0] if isinstance(value, bytes) else int(value)
