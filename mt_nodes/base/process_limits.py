# SPDX-License-Identifier: Apache-2.0
"""What a process and all of its descendants may take of the machine; the supervisor of the process enforces it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from mt_nodes.base.control_group import ControlGroup, delegation
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.limit_watch import TASKS_PER_PROCESS, memory_limit_mb
from mt_nodes.base.params import build, param


@dataclass(frozen=True)
class ProcessLimits:
    """Limits of a command and its descendants together; see :mod:`mt_nodes.base.limit_watch`."""

    processes: int = param(1024, low=1, high=1_000_000, help="processes at a time")
    memory_mb: float = param(0.0, low=0.0, high=4e6, unit="MB", help="memory; 0: nine tenths of the machine's")
    open_files: int = param(65_536, low=16, high=1_000_000, help="files that each process may have open")
    log_mb: float = param(512.0, low=0.001, high=1e6, unit="MB", help="size of its log")
    niceness: int = param(0, low=0, high=19, help="above 0: others get processor time first")
    cpu_weight: int = param(100, low=1, high=10_000, help="share of processor time beside others, theirs being 100")
    policy: str = param(
        "normal", choices=("idle", "normal"), help="idle: it runs only where a core has nothing else to do"
    )

    def as_json(self, group: ControlGroup | None = None) -> str:
        """Return the text by which the supervisor is told; ``group`` is what :meth:`control_group` made."""
        where = {"group": str(group.directory) if group else "", "weighed": bool(group and group.weighed)}
        return json.dumps({**asdict(self), **where})

    def control_group(self) -> ControlGroup | None:
        """Make a control group with these limits, where this process may; None where it may not.

        Raises InfrastructureError: it may, but cannot.
        """
        below, tasks = delegation(), TASKS_PER_PROCESS * self.processes
        if below.directory is None:
            return None
        try:
            memory_mb, idle = memory_limit_mb(self.memory_mb), self.policy == "idle"
            return ControlGroup.create(below, tasks, memory_mb, self.cpu_weight, idle)
        except OSError as error:
            raise InfrastructureError(f"cannot make a control group below {below.directory}: {error}") from error


def read_limits(value: Any, where: str) -> ProcessLimits:
    """Read ``limits`` of a stack file. Raises UsageError: naming the key, what was got and what was expected."""
    return value if isinstance(value, ProcessLimits) else build(ProcessLimits, value, where)
