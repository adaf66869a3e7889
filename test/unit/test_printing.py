# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers in terminals of any width: nothing is cut off."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from mt_nodes.base.wording import first_sentence
from mt_nodes.cli import terminal
from mt_nodes.cli.terminal import Rows

COLUMNS = ("relation", "outcome", "violated", "95 % interval")
ROWS = [("noise_outside_roi_1000", "FAIL", "28/312", "5.9 … 13.4 %"), ("a[b]", "PASS", "0/312", "0.0 … 14.0 %")]


def printed(width: int, right: tuple[str, ...]) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(Rows(COLUMNS, ROWS, right))
    return out.getvalue()


@pytest.mark.parametrize("width", [30, 50, 60, 80])
def test_every_number_is_there_at_every_width(width: int) -> None:
    words = printed(width, COLUMNS[2:]).split()
    assert all(part in words or f"{part}," in words for row in ROWS for cell in row[1:] for part in cell.split())
    assert all(len(line) <= width for line in printed(width, COLUMNS[2:]).splitlines())


def test_a_table_where_there_is_room_and_text_wraps_in_its_cell() -> None:
    assert "──" in printed(80, COLUMNS[2:])
    assert "──" not in printed(50, COLUMNS[2:])
    assert "relation noise_outside_roi_1000: outcome FAIL," in printed(50, COLUMNS[2:])
    assert "──" in printed(50, ())


COLUMNS_LISTED = ("name", "kind", "what it is")
SECTIONS: list[terminal.Section] = [
    (
        "of point clouds (2)",
        ("name", "kind", "what it is"),
        [("a_name", "expected", ("Brief", "Brief: and the whole of it"))],
    ),
    ("", ("name", "kind", "what it is"), [("a_much_longer_name", "necessary", "x" * 90)]),
]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("width", "with_kind"), [(40, False), (60, True), (200, True)])
def test_a_list_has_a_line_for_each_thing_at_every_width(
    width: int, with_kind: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Terminal()
    monkeypatch.setattr(terminal, "console", lambda: Console(file=out, width=width, height=50, force_terminal=True))
    terminal.paged(SECTIONS)
    lines = [line for line in Console(no_color=True).render_str(out.getvalue()).plain.splitlines() if line.strip()]
    assert len(lines) == 3 and all(name in out.getvalue() for name in ("a_name ", "a_much_longer_name"))
    assert ("expected" in out.getvalue()) == with_kind and "and the whole of it" not in out.getvalue()


def test_a_list_that_is_longer_than_the_screen_goes_to_a_pager(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("pydoc.pager", shown.append)
    long = [("", ("name", "what it is"), [(f"name_{i}", "x") for i in range(30)])]
    for height, pages in ((40, 0), (20, 1)):
        console = Console(file=Terminal(), width=80, height=height, force_terminal=True)
        monkeypatch.setattr(terminal, "console", lambda console=console: console)
        terminal.paged(long)
        assert len(shown) == pages
    assert all(f"name_{i}" in shown[0] for i in range(30))


def test_a_list_in_a_file_is_whole_and_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.paged(SECTIONS)
    assert capsys.readouterr().out.splitlines() == [
        "of point clouds (2)",
        "a_name  expected  Brief: and the whole of it",
        f"a_much_longer_name  necessary  {'x' * 90}",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("One. Two.", "One"),
        (
            "A pair (e.g. this. one) of Z. Q. Zhou et al. is one: two",
            "A pair (e.g. this. one) of Z. Q. Zhou et al. is one",
        ),
        ("no\n end 0.5 m", "no end 0.5 m"),
        ("", ""),
    ],
)
def test_the_first_sentence_of_a_text(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence
