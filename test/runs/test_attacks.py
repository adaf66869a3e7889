# SPDX-License-Identifier: Apache-2.0
"""The cheap cells of ``scripts/attacks.py``, and a table without holes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import attack_inputs  # noqa: E402
import attack_runs  # noqa: E402
import attacks  # noqa: E402

from mt_nodes.base import plugins  # noqa: E402
from mt_nodes.base.errors import UsageError  # noqa: E402
from mt_nodes.runs.vehicle.box_report import what_can_be_boxed  # noqa: E402


@pytest.fixture(scope="module")
def bags(tmp_path_factory: pytest.TempPathFactory) -> attack_inputs.Bags:
    return attack_inputs.Bags(tmp_path_factory.mktemp("bags"))


def test_every_cell_is_tried_or_says_why_it_does_not_apply_and_none_fails() -> None:
    table: dict[str, Any] = json.loads(attacks.FIGURES.read_text(encoding="utf-8"))["table"]
    assert list(table) == list(attacks.TABLE)
    for name, cells in table.items():
        assert set(cells) == set(attack_runs.KINDS), name
        for kind, cell in cells.items():
            assert cell.get("not_applicable") or (cell["tries"] > 0 and not cell["wrong"]), (name, kind, cell)


def test_a_table_with_a_hole_or_a_failure_is_no_table(tmp_path: Path) -> None:
    """What a cell is: a run that must not end so is found."""
    ended = attack_runs.Ended(0, "all relations PASS", "", tmp_path)
    assert attacks._verdict(ended, honest=False) == "a stack that does not answer passes"
    blamed = attack_runs.Ended(1, "FAIL: noise", "", tmp_path)
    assert attacks._verdict(blamed, honest=True).startswith("an honest stack is blamed")
    assert attacks._verdict(ended, honest=True) == attacks._verdict(blamed, honest=None) == ""


def test_the_key_of_a_model_in_a_file_is_found(tmp_path: Path) -> None:
    runs = attack_runs.Runs(tmp_path, tmp_path / "clock.so")
    (tmp_path / "said.txt").write_text("all is well")
    assert runs._wrong(tmp_path, 0, "all is well") == ""
    (tmp_path / "said.txt").write_text(f"Bearer {attack_runs.KEY}")
    assert "key of a language model stands in said.txt" in runs._wrong(tmp_path, 0, "")
    assert runs._wrong(tmp_path, 77, "") == "exit code 77"
    assert runs._wrong(tmp_path, 4, "Traceback (most recent call last):\nKeyError: 3").startswith("a traceback")


@pytest.mark.parametrize("name", ["shipped name", "raises", "no Python", "no folder", "name with a line break"])
def test_a_folder_of_adversarial_plugins_is_refused(name: str, tmp_path: Path) -> None:
    folder = attack_inputs.plugin_folders(tmp_path / "plugins")[name]
    before = plugins.directories()
    try:
        with pytest.raises(UsageError) as refused:
            plugins.add_directory(folder)
            plugins.catalogue("checks")
        assert "\n" not in str(refused.value)
    finally:
        plugins._directories[:] = before
        plugins.catalogue.cache_clear()


@pytest.mark.parametrize("name", [pytest.param("to and fro", marks=pytest.mark.long), "zero"])
def test_stamps_that_jump_blame_nobody(name: str, bags: attack_inputs.Bags, tmp_path: Path) -> None:
    runs = attack_runs.Runs(tmp_path, tmp_path / "clock.so")
    ended = runs.run("replay in process", attack_runs.Attack(bags.stamps()[name]))
    assert (ended.code, ended.wrong) == (0, "")


@pytest.mark.skipif(not what_can_be_boxed().whole, reason="no whole box here")
@pytest.mark.parametrize("name", ["root of the suite", "device of the machine", "set the clock"])
def test_a_way_out_of_the_box_is_closed(name: str) -> None:
    assert attacks._tried(attacks.ESCAPES[name].replace("OUTER", "1"), in_box=True) == ""
