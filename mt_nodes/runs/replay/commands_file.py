# SPDX-License-Identifier: Apache-2.0
"""What both arms commanded in every frame of a case (``commands.jsonl``), for those who judge cases as a whole."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.data.outputs import Control, Output
from mt_nodes.data.verdict import Pair
from mt_nodes.relations.checks.controls import steering_rad
from mt_nodes.relations.conditions.source_conditions import WHEELBASE_M

FILE = "commands.jsonl"


@dataclass(frozen=True)
class ArmCommand:
    """What one arm commanded: speed in m/s, angle of the road wheels in rad, positive to the left; None: not told."""

    speed_mps: float | None = None
    steering_rad: float | None = None

    @classmethod
    def of(cls, output: Output) -> ArmCommand:
        """Read an answer; where yaw rate is told in place of steering it is that of the single-track model."""
        control = output.control or Control(None)
        numbers = (control.speed_mps, steering_rad(control, WHEELBASE_M))
        return cls(*(float(number) if math.isfinite(number) else None for number in numbers))


@dataclass(frozen=True)
class CommandPair:
    """A line: what a follow-up was, in which case, and what source and follow-up arm commanded."""

    pair: Pair
    case: str
    source: ArmCommand
    followup: ArmCommand


class CommandsFile:
    """Appends to ``commands.jsonl`` of a results directory; opening an existing one goes on with it.

    After a resumed run a pair may be there twice: the last counts.
    """

    def __init__(self, directory: Path) -> None:
        self._file = LineFile(directory / FILE)

    def add(self, pair: Pair, cases: Iterable[str], source: Output, followup: Output) -> None:
        """Write what both arms said, a line for each case that the frame is of."""
        commands = {"source": vars(ArmCommand.of(source)), "followup": vars(ArmCommand.of(followup))}
        for case in cases:
            self._file.append({"pair": str(pair.followup), "case": case, **commands})

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_commands(directory: Path) -> list[CommandPair]:
    """Return what was commanded in a run of cases, in the order in which it was played, each pair of a case once.

    Raises UsageError: there is no such file. InfrastructureError: a line is damaged.
    """
    path = directory / FILE
    if not path.is_file():
        raise UsageError(f"no {path}; expected the results directory of `mt replay --cases`")
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for line in read_lines(path):
        rows.pop((line["pair"], line["case"]), None)
        rows[line["pair"], line["case"]] = line
    return [
        CommandPair(Pair.parse(pair), case, ArmCommand(**line["source"]), ArmCommand(**line["followup"]))
        for (pair, case), line in rows.items()
    ]
