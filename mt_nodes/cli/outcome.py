# SPDX-License-Identifier: Apache-2.0
"""How a finished run is told on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mt_nodes.cli.printing import table, text

COLUMNS = ("relation", "outcome", "violated", "rate", "95 % interval", "lost", "gained", "control", "sham")


def print_summary(summary: dict[str, Any], out: Path) -> None:
    """Print one row a relation, the totals, why it ended as it did, and where everything is."""
    table(COLUMNS, [_row(name, r) for name, r in summary["relations"].items()], right=COLUMNS[2:])
    totals = ", ".join(f"{count} {outcome}" for outcome, count in summary["outcomes"].items() if count)
    text(f"{summary['offered']} pairs offered: {totals or 'none'}")
    for name, latency in summary["latency_ms"].items():
        text(f"{name}: p50 {latency['p50']:.1f} ms, p99 {latency['p99']:.1f} ms")
    text(f"exit code {summary['exit_code']}: {summary['exit_why']}")
    text(f"results in {out}, report: {out / 'report.html'}")


def _row(name: str, relation: dict[str, Any]) -> tuple[str, ...]:
    ci = relation["ci95"]
    return (
        name,
        relation["outcome"],
        f"{relation['violated']}/{relation['decided']}",
        "-" if relation["rate"] is None else f"{100 * relation['rate']:.1f} %",
        "-" if ci is None else f"{100 * ci[0]:.1f} … {100 * ci[1]:.1f} %",
        str(relation["lost"]),
        str(relation["gained"]),
        *(f"{relation[arm]['violated']}/{relation[arm]['decided']}" for arm in ("control", "sham")),
    )
