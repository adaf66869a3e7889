# SPDX-License-Identifier: Apache-2.0
"""Tables of ``docs/moral_testing.md`` from the results of ``mt experiment moral-levels`` and ``moral-search``.

.venv/bin/python scripts/moral_tables.py DIR    # stores the study in DIR for the next `make docs`
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mt_nodes.base.jsonl import read_lines
from mt_nodes.runs.moral import study_tables
from mt_nodes.runs.moral.levels import LevelChoice, Located, levels_end, markdown
from mt_nodes.runs.moral.search_study import FILE

#: ``levels.json`` of each command, by the command; and the searches of each study.
FIGURES = Path(__file__).with_name("moral_levels.json")
STUDIES = Path(__file__).with_name("moral_study.json")


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


def study_table() -> str:
    """Return the tables of each study by its command, and how it ended."""
    parts = []
    for command, lines in _studies().items():
        _, why = study_tables.study_end(lines)
        parts.append(f"`{command}`: {why}.\n\n{study_tables.markdown(study_tables.rows_of(lines)).strip()}")
    return "\n\n".join(parts)


def _studies() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(STUDIES.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Store the searches of a study by the command that began it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, metavar="DIR", help="results of a finished `mt experiment moral-search`")
    out: Path = parser.parse_args().study
    words = json.loads((out / "run.json").read_text(encoding="utf-8"))["command"][1:]
    if not (out / "study.json").exists():
        raise SystemExit(f"{out}: the study is not finished; `mt experiment moral-search --resume {out}` goes on")
    given = [word for i, word in enumerate(words) if "--out" not in words[max(0, i - 1) : i + 1]]
    studies = _studies() if STUDIES.exists() else {}
    studies["mt " + " ".join(given)] = list(read_lines(out / FILE))
    STUDIES.write_text(json.dumps(studies, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
