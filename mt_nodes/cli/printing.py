# SPDX-License-Identifier: Apache-2.0
"""How the command line looks: tables, headings, plain text; colours only on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

OUTCOME_STYLES = {
    **{"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "yellow", "UNSTABLE": "magenta"},
    "FAIL (waived)": "yellow",
}


def console() -> Console:
    """Return a console on standard output; as wide as needed when it is no terminal."""
    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=200)


def heading(words: str) -> None:
    """Print a line in bold."""
    console().print(f"[bold]{escape(words)}[/bold]")


def text(words: str) -> None:
    """Print text as it is."""
    console().print(words, markup=False, soft_wrap=True)


def made_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> Table:
    """Return a table; columns named in ``right`` are numbers, set to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        made.add_column(name, justify="right" if name in right else "left", no_wrap=name in ("name", "relation"))
    for row in rows:
        made.add_row(*(_styled(str(cell)) for cell in row))
    return made


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print what :func:`made_table` makes."""
    console().print(made_table(columns, rows, right))


def _styled(cell: str) -> str:
    style = OUTCOME_STYLES.get(cell)
    return f"[{style}]{cell}[/{style}]" if style else escape(cell)
