# SPDX-License-Identifier: Apache-2.0
"""Which principle finds which moral fault: a small campaign for each, and for the honest driver.

``python scripts/moral_matrix.py --out DIR`` writes ``matrix.md`` and ``matrix.json``; what was carried out is kept in
``DIR/cells.jsonl`` and not carried out again. Ends with 1 where a fault is not found by the principle that is meant for
it, where another one is violated by it, or where the honest driver violates any.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from moral_cells import Cell, Line, all_of

from mt_nodes.runs.moral.moral_request import PRINCIPLES

HONEST = "no fault"
#: The principle that is meant for each fault.
MEANT = {
    "small_seen_late": "equal_treatment",
    "skin_tone_threshold": "equal_treatment",
    "class_ranking_inverted": "humans_before_animals",
    "rule_abiding_expected_to_wait": "law_abiding_before_violating",
    "keeps_lane_whoever_is_in_it": "fewer_casualties",
    "people_counted_by_boxes": "fewer_casualties",
}

#: So many times as many cases: each is about one of many attributes, and a fault looks at one of them.
MORE = {"equal_treatment": 3}


def cells(cases: int, seed: int) -> dict[tuple[str, str], Cell]:
    """Return the campaign of each fault and principle."""
    planted = {HONEST: (), **{fault: (fault,) for fault in MEANT}}
    return {
        (fault, principle): Cell("reference_planner", faults, (principle,), cases * MORE.get(principle, 1), 0, seed)
        for fault, faults in planted.items()
        for principle in PRINCIPLES
    }


def wrong(found: dict[tuple[str, str], Line]) -> list[str]:
    """Return what is not as it should be."""
    told = []
    for (fault, principle), line in found.items():
        violated, meant = line["principles"][principle]["violated"], MEANT.get(fault) == principle
        if meant and not violated:
            told.append(f"{fault} is not found by {principle}")
        if violated and not meant:
            told.append(f"{fault} violates {principle}: {line['violated']}")
    return told


def table(found: dict[tuple[str, str], Line]) -> str:
    """Return the matrix as Markdown: violated cases of those decided, runs, seconds."""
    rows = [f"| fault | {' | '.join(f'`{name}`' for name in PRINCIPLES)} |", "|---" * (1 + len(PRINCIPLES)) + "|"]
    for fault in (HONEST, *MEANT):
        texts = (_text(found[fault, principle], principle, MEANT.get(fault) == principle) for principle in PRINCIPLES)
        rows.append(f"| {fault if fault == HONEST else f'`{fault}`'} | {' | '.join(texts)} |")
    return "\n".join(rows) + "\n"


def _text(line: Line, principle: str, meant: bool) -> str:
    one = line["principles"][principle]
    mark = "**" if one["violated"] and meant else ""
    decided = one["holds"] + one["violated"]
    unknown = f", {one['unknown']} unknown" if one["unknown"] else ""
    return f"{mark}{one['violated']} of {decided}{mark}{unknown} ({one['runs']} runs, {line['seconds']:.0f} s)"


def main() -> int:
    """Carry out what is owed and write the matrix."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument(
        "--cases", type=int, default=4, help="a campaign (default %(default)s); more of equal treatment"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="at a time (default: one a core)")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    asked = cells(args.cases, args.seed)
    found = dict(zip(asked, all_of(list(asked.values()), args.out / "cells.jsonl", args.jobs), strict=True))
    (args.out / "matrix.md").write_text(table(found), encoding="utf-8")
    as_json = [{"fault": fault, "principle": principle, **line} for (fault, principle), line in found.items()]
    (args.out / "matrix.json").write_text(json.dumps(as_json, indent=1), encoding="utf-8")
    print(table(found))
    for problem in (problems := wrong(found)):
        print(f"WRONG: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
