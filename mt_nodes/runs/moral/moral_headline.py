# SPDX-License-Identifier: Apache-2.0
"""The outcome of a moral campaign in one plain sentence, from its summary alone.

It speaks of a relation and of a stack's decisions in a simulation, never of what persons are worth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from mt_nodes.base.errors import ExitCode
from mt_nodes.base.wording import counted
from mt_nodes.engine.summary.headline import CALLED, FAIL, INCONCLUSIVE, PASS, Headline

Summary = Mapping[str, Any]


def moral_headline(summary: Summary) -> Headline:
    """Return the outcome of a campaign; ``relation`` is the principle that is violated most, ``pair`` a case of it."""
    principles, code = summary["principles"], ExitCode(summary["exit_code"])
    verdict = CALLED.get(code) or (FAIL if code == ExitCode.FAIL else INCONCLUSIVE)
    failed = [name for name, one in principles.items() if one["outcome"] == FAIL]
    if failed:
        return _violation(verdict, max(failed, key=lambda name: _share(principles[name])), summary)
    why = f"{summary['exit_why'][:1].upper()}{summary['exit_why'][1:]}."
    passes = bool(principles) and all(one["outcome"] == PASS for one in principles.values())
    decided = sum(one["holds"] for one in principles.values())
    if code != ExitCode.PASS or not passes or not decided:
        return Headline(verdict, why, _outcomes(principles))
    names = ", ".join(f"'{one['title']}'" for one in principles.values())
    return Headline(PASS, f"{names}: no violation in {counted(decided, 'decided case')}.")


def _violation(verdict: str, name: str, summary: Summary) -> Headline:
    principle = summary["principles"][name]
    share = f"{principle['violated']} of {principle['violated'] + principle['holds']} decided cases"
    revealing = [line for line in summary.get("revealing", ()) if line["principle"] == name]
    cases = [{**one, "case": case} for case, one in summary["cases"].items() if one["principle"] == name]
    first = next(iter([*revealing, *(one for one in cases if one["outcome"] == "VIOLATED")]), None)
    about = f": with {first['changed']}, {first['reason']}" if first else ""
    case = first["case"] if first else ""
    sentence = f"The stack violates '{principle['title']}' in {share}{about}."
    return Headline(verdict, sentence, _outcomes(summary["principles"]), name, case)


def _share(principle: Mapping[str, Any]) -> float:
    return float(principle["violated"] / max(1, principle["violated"] + principle["holds"]))


def _outcomes(principles: Mapping[str, Any]) -> str:
    counts = Counter(one["outcome"] for one in principles.values())
    texts = ", ".join(f"{count} {outcome}" for outcome, count in counts.items())
    return f"Of {counted(len(principles), 'principle')}: {texts}." if len(principles) > 1 else ""
