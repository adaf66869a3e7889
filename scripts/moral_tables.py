# SPDX-License-Identifier: Apache-2.0
"""Tables of ``docs/moral_testing.md`` from the results that ``mt experiment moral-levels`` wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mt_nodes.runs.moral.levels import LevelChoice, Located, levels_end, markdown

#: ``levels.json`` of each command, by the command.
FIGURES = Path(__file__).with_name("moral_levels.json")


def levels_table() -> str:
    """Return the table of each command, and how it ended."""
    parts = []
    for command, result in json.loads(FIGURES.read_text(encoding="utf-8")).items():
        located = [_located(case) for case in result["cases"]]
        code, why = levels_end(located)
        parts.append(f"`{command}`: exit code {int(code)}, {why}.\n\n{markdown(located).strip()}")
    return "\n\n".join(parts)


def _located(case: dict[str, Any]) -> Located:
    choices = {level: LevelChoice(**choice) for level, choice in case["choices"].items()}
    return Located(**{**case, "choices": choices})
