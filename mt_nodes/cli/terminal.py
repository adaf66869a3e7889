# SPDX-License-Identifier: Apache-2.0
"""How the command line looks: tables, headings, plain text; colours only on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

OUTCOME_STYLES = {
    **{"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "yellow", "UNSTABLE": "magenta"},
    "FAIL (waived)": "yellow",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command, whose exit code is not this library's matter."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console on standard output; as wide as needed when it is no terminal."""
    made = _Console(highlight=False)
    return made if made.is_terminal else _Console(highlight=False, width=200)


def heading(words: str) -> None:
    """Print a line in bold."""
    console().print(f"[bold]{escape(words)}[/bold]")


def text(words: str) -> None:
    """Print text as it is."""
    console().print(words, markup=False, soft_wrap=True)


class Rows:
    """A table; where one with numbers is too wide, each row as text: a number that is cut off says nothing.

    Columns named in ``right`` are numbers, set to the right.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
        self._columns, self._rows, self._right = columns, rows, right

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        made = self._table()
        wanted = console.measure(made, options=options.update(max_width=10_000)).maximum
        if self._right and wanted > options.max_width:
            yield from (Padding(self._record(row), (0, 0, 0, 2)) for row in self._rows)
        else:
            yield made

    def _table(self) -> Table:
        made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in self._columns:
            kept = name in ("name", "relation")
            made.add_column(name, justify="right" if name in self._right else "left", no_wrap=kept)
        for row in self._rows:
            made.add_row(*(_styled(str(cell)) for cell in row))
        return made

    def _record(self, row: Sequence[str]) -> Text:
        first, *others = zip(self._columns, row, strict=True)
        told = ", ".join(f"{escape(name)} {_styled(str(cell))}" for name, cell in others)
        return Text.from_markup(f"{escape(first[0])} [bold]{escape(str(first[1]))}[/bold]: {told}")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print :class:`Rows`."""
    console().print(Rows(columns, rows, right))


def _styled(cell: str) -> str:
    style = OUTCOME_STYLES.get(cell)
    return f"[{style}]{cell}[/{style}]" if style else escape(cell)
