# SPDX-License-Identifier: Apache-2.0
"""One ``mt replay``, or another command, with everything that it starts, for the long checks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from mt_nodes.base.environment import ros_environment


@dataclass(frozen=True)
class Mt:
    """One run of ``mt``; its processes are known by a variable of their environment."""

    process: subprocess.Popen[bytes]
    mark: str

    @classmethod
    def start(cls, place: Path, *words: str, command: str = "replay", env: Mapping[str, str] | None = None) -> Mt:
        """Start it in a directory, with more variables."""
        mark = f"MT_KILLS_{uuid4().hex}"
        argv = [sys.executable, "-m", "mt_nodes.cli.main", command, *words]
        whole = {**ros_environment({**os.environ, **(env or {})}), mark: "1"}
        with (place / "said.txt").open("ab") as said:
            process = subprocess.Popen(argv, cwd=place, env=whole, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        return cls(process, mark)

    def processes(self) -> dict[int, str]:
        """Its processes: id and command line."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
        return found
