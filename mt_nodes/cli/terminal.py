# SPDX-License-Identifier: Apache-2.0
"""Tables, headings, text and progress bars on the terminal; colours only there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.progress import Progress

OUTCOME_STYLES = {
    **{"PASS": "green", "FAIL": "bold red", "INCONCLUSIVE": "yellow", "UNSTABLE": "magenta"},
    "FAIL (waived)": "yellow",
}


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise instead of exiting: the command chooses the exit code."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console on standard output, 200 columns wide where that is no terminal."""
    terminal = _Console(highlight=False)
    return terminal if terminal.is_terminal else _Console(highlight=False, width=200)


def heading(words: str) -> None:
    """Print a line in bold."""
    console().print(f"[bold]{escape(words)}[/bold]")


def text(words: str) -> None:
    """Print text as it is."""
    console().print(words, markup=False, soft_wrap=True)


def paragraph(words: str) -> None:
    """Print text that ends its lines between words on a terminal, and is one line elsewhere."""
    console().print(words, markup=False, soft_wrap=not console().is_terminal)


def clipped(line: str) -> None:
    """Print a line, on a terminal only what of it fits."""
    out = console()
    words = Text(line)
    if out.is_terminal:
        words.truncate(out.width, overflow="ellipsis")
    out.print(words, soft_wrap=True)


def fits(line: str) -> bool:
    """Return whether a line is no wider than the terminal; any line is elsewhere."""
    out = console()
    return not out.is_terminal or len(line) <= out.width


class Rows:
    """A table; one with numbers that is wider than the terminal becomes a line of text for each row.

    Columns named in ``right`` hold numbers and are aligned to the right.
    """

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
        self._columns, self._rows, self._right = columns, rows, right

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = self._table()
        width = console.measure(table, options=options.update(max_width=10_000)).maximum
        if self._right and width > options.max_width:
            yield from (Padding(self._line(row), (0, 0, 0, 2)) for row in self._rows)
        else:
            yield table

    def _table(self) -> Table:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in self._columns:
            alignment: Literal["left", "right"] = "right" if name in self._right else "left"
            table.add_column(name, justify=alignment, no_wrap=name in ("name", "relation"))
        for row in self._rows:
            table.add_row(*(_styled(str(cell)) for cell in row))
        return table

    def _line(self, row: Sequence[str]) -> Text:
        first, *others = zip(self._columns, row, strict=True)
        cells = ", ".join(f"{escape(name)} {_styled(str(cell))}" for name, cell in others)
        return Text.from_markup(f"{escape(first[0])} [bold]{escape(str(first[1]))}[/bold]: {cells}")


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Print :class:`Rows`."""
    console().print(Rows(columns, rows, right))


#: Title (or empty), columns, and rows of cells; the last cell of a row may be a pair of its brief and its whole text.
Section = tuple[str, Sequence[str], Sequence[Sequence[Any]]]


def paged(sections: Iterable[Section]) -> None:
    """Print sections a screen at a time on a terminal, a line for each row; elsewhere with the whole texts."""
    out, found = console(), list(sections)
    if not out.is_terminal:
        for line in _plain_lines(found):
            print(line)
        return
    _print_paged(out, _Sections(found))


def paged_text(words: str) -> None:
    """Print text as it is, on a terminal a screen at a time."""
    out = console()
    if out.is_terminal:
        _print_paged(out, Text(words))
    else:
        text(words)


def _print_paged(out: Console, shown: _Sections | Text) -> None:
    if len(out.render_lines(shown, pad=False)) <= out.height:
        out.print(shown)
        return
    os.environ.setdefault("LESS", "-FRX")  # colours as they are, nothing cleared at the end
    with out.pager(styles=True):
        out.print(shown)


#: Columns between name and text are left out, the last one first, where they leave the text no room for so much.
_TEXT = 24


class _Sections:
    """Sections whose names are aligned over all of them; texts are cut where the terminal ends."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._sections = sections

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [[*map(str, row[:-1]), _brief(row[-1])] for *_, rows in self._sections for row in rows]
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]) - 1)] if rows else []
        while len(widths) > 1 and sum(width + 2 for width in widths) + _TEXT > options.max_width:
            widths.pop()
        left = iter(rows)
        for title, _, own in self._sections:
            if title:
                yield Text(title, style="bold")
            for _ in own:
                yield self._line(next(left), widths, options.max_width)

    def _line(self, row: Sequence[str], widths: Sequence[int], most: int) -> Text:
        line = Text("  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1])))
        line.truncate(most, overflow="ellipsis")
        return line


def _brief(cell: Any) -> str:
    return str(cell[0] if isinstance(cell, tuple) else cell)


def _plain_lines(sections: Sequence[Section]) -> Iterator[str]:
    for title, _, rows in sections:
        if title:
            yield title
        texts = [[*map(str, row[:-1]), str(row[-1][1] if isinstance(row[-1], tuple) else row[-1])] for row in rows]
        widths = [max(len(row[at]) for row in texts) for at in range(len(texts[0]) - 1)] if texts else []
        for row in texts:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            yield "  ".join((*cells, " ".join(row[-1].split())))


def progress_bar(count: str, *, hidden: bool = False, remaining: bool = True, label: str = "") -> Progress:
    """Return a bar that vanishes at its end; none where standard output is no terminal.

    ``count``: format of the text behind the bar. ``hidden``: show none: standard output is for something else.
    ``remaining``: show the remaining time, else the elapsed time. ``label``: text before the bar; default: the task's.
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    time = TimeRemainingColumn() if remaining else TimeElapsedColumn()
    columns = (TextColumn(label or "{task.description}", markup=False), BarColumn(), TextColumn(count, markup=False))
    return Progress(*columns, time, transient=True, disable=hidden or not sys.stdout.isatty())


def _styled(cell: str) -> str:
    style = OUTCOME_STYLES.get(cell)
    return f"[{style}]{cell}[/{style}]" if style else escape(cell)
