# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers in terminals of any width: nothing is cut off."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

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
