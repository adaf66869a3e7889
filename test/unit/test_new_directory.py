# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from mt_nodes.base.directories import _HELD, new_directory
from mt_nodes.base.errors import UsageError
from mt_nodes.cli.show_results import _KINDS


@pytest.mark.parametrize("file", _HELD)
def test_results_of_another_run_are_not_written_over(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text("{}")
    with pytest.raises(UsageError, match=f"holds the results of {_HELD[file]} already; choose another directory"):
        new_directory(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == [file]


def test_every_kind_of_run_that_is_shown_is_known() -> None:
    assert {mark for mark, _, _ in _KINDS} == set(_HELD)


def test_any_other_directory_is_taken(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert new_directory(str(tmp_path)) == tmp_path
