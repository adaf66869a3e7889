# SPDX-License-Identifier: Apache-2.0
"""Makes docs/papers.md: every part of the three papers, the command that does it here, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

Table = Callable[[Sequence[str], Iterable[Sequence[str]]], str]
FILE = Path("scripts") / "papers.yaml"
_INTRO = """# The three papers, part by part

This page lists the components, tables, figures, questions and metrics of the three papers that this package implements,
with the command that does each and what was seen. A part that is missing, in whole or in part, says *open*. Use it to
repeat a result of a paper, or to see what you cannot repeat yet. It is made from `scripts/papers.yaml`; a test parses
every command."""


def papers_of(root: Path) -> list[dict[str, Any]]:
    """Return the papers with their rows."""
    data = yaml.safe_load((root / FILE).read_text(encoding="utf-8"))
    return list(data["papers"])


def papers_page(root: Path, table: Table) -> str:
    """Return the page."""
    parts = [_INTRO]
    for paper in papers_of(root):
        parts.append(f"## {paper['name']}\n\n{paper['paper']}.")
        parts.append(table(("part", "what", "command", "seen"), map(_row, paper["rows"])))
    return "\n\n".join(parts) + "\n"


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    command = f"`{row['command']}`" if "command" in row else "*open*"
    missing = f"*open*: {row['open']}" if "open" in row else ""
    return row["part"], row["name"], command, "; ".join(filter(None, [row.get("seen", ""), missing]))
