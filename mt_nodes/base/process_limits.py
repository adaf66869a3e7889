# SPDX-License-Identifier: Apache-2.0
"""What a process and all of its descendants may take of the machine; the supervisor of the process enforces it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from mt_nodes.base.params import build, param


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of a command and its descendants together; see :mod:`mt_nodes.base.subreaper`."""

    processes: int = param(1024, low=1, high=1_000_000, help="processes at a time")
    memory_mb: float = param(0.0, low=0.0, high=4e6, unit="MB", help="memory; 0: nine tenths of the machine's")
    open_files: int = param(65_536, low=16, high=1_000_000, help="files that each process may have open")
    log_mb: float = param(512.0, low=0.001, high=1e6, unit="MB", help="size of its log")
    niceness: int = param(0, low=0, high=19, help="above 0: others get processor time first")

    def as_json(self) -> str:
        """Return the text by which the supervisor is told."""
        return json.dumps(asdict(self))


def read_limits(value: Any, where: str) -> ProcessLimits:
    """Read ``limits`` of a stack file.

    Raises:
        UsageError: naming the key, what was got and what was expected.
    """
    return value if isinstance(value, ProcessLimits) else build(ProcessLimits, value, where)
