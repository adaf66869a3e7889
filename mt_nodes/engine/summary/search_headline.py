# SPDX-License-Identifier: Apache-2.0
"""What `mt search` came to, in one plain sentence: the smallest change that violates a relation, or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.wording import capitalised, counted
from mt_nodes.engine.summary.headline import CALLED, FAIL, INCONCLUSIVE, PASS, Headline


def search_headline(summary: Mapping[str, Any]) -> Headline:
    """Return the result of a search in plain words, from its ``summary.json``."""
    code, found = ExitCode(summary["exit_code"]), summary["found"]
    verdict = CALLED.get(code) or {ExitCode.FAIL: FAIL, ExitCode.PASS: PASS}.get(code, INCONCLUSIVE)
    trials = f"{counted(summary['trials'], 'trial')}: " + ", ".join(f"{n} {o}" for o, n in summary["outcomes"].items())
    notes = [trials, summary["note"], _spent(summary)]
    if found is None:
        return Headline(verdict, f"{capitalised(summary['exit_why'])}.", _sentences(notes), summary["relation"])
    ends = " and ".join(axis_words(axis, found["values"][axis["name"]]) for axis in summary["axes"])
    confirmed = [
        f"confirmed in {one['violated']} of {counted(one['plays'], 'replay')} of the same input, without the change in "
        f"{one['control']}"
        for one in summary["confirmations"]
        if one["trial"] == found["number"]
    ]
    rest = _sentences([found["reason"], *confirmed, *notes])
    sentence = f"{summary['relation']} is violated with {ends}."
    return Headline(verdict, sentence, rest, summary["relation"], found["pair"])


def axis_words(axis: Mapping[str, Any], value: float) -> str:
    """Return a value of a searched parameter with what was searched: ``129 points (searched from 1 to 1,000)``."""
    unit = f" {axis['unit']}" if axis["unit"] else ""
    name = axis["parameter"].replace("_", " ")
    text = f"{name} {_number(value)}{unit}" if unit else f"{_number(value)} {name}"
    return f"{text} (searched from {_number(axis['weak'])} to {_number(axis['strong'])}{unit})"


def _spent(summary: Mapping[str, Any]) -> str:
    return "the search used up its trials before it ended" if summary["trials_spent"] else ""


def _sentences(parts: list[str]) -> str:
    return " ".join(f"{capitalised(part)}." for part in parts if part)


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
