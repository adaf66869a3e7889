# SPDX-License-Identifier: Apache-2.0
"""What a campaign may take, and what its budget cut: told in ``summary.json``, on the terminal and in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mt_nodes.base.wording import counted
from mt_nodes.runs.moral.moral_request import MoralRequest
from mt_nodes.runs.moral.trial import Driving, Trial


def budget_of(request: MoralRequest, driving: Driving, trials: Iterable[Trial]) -> dict[str, Any]:
    """Return the budget of a campaign and what it cut.

    ``cut_by`` is ``runs`` or ``minutes``, None where nothing was cut; ``cases_cut`` were left undecided by it, and
    ``runs_cut`` is how many more runs they might have had, at most.
    """
    cut = [trial for trial in trials if trial.cut]
    return {
        "runs": request.runs or None,
        "minutes": request.minutes,
        "cut_by": driving.exhausted or None,
        "cases_cut": len(cut),
        "runs_cut": sum(trial.runs_left for trial in cut),
    }


def cut_in_words(summary: Mapping[str, Any]) -> str:
    """Return what the budget of a campaign cut; empty where it cut nothing."""
    budget = summary.get("budget") or {}
    if not (name := budget.get("cut_by")):
        return ""
    cases, runs = counted(budget["cases_cut"], "case"), counted(budget["runs_cut"], "run")
    cut = f"it left {cases} undecided, and up to {runs} of theirs were not driven"
    words = f"--{name} {budget[name]:g} was spent: {cut}"
    return words + ("; how far a limit of time reaches depends on the load of the machine" if name == "minutes" else "")
