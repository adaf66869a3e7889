# SPDX-License-Identifier: Apache-2.0
"""The examples in Python do what they say: the notebook, and the tests with pytest."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import mt_nodes as mt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NOTEBOOK = EXAMPLES / "notebook" / "metamorphic_test.ipynb"


def said(cells: list[Any]) -> list[str]:
    """What the cells with code print or show, as text; pictures, tables and addresses in memory left out."""
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return ["".join(o.get("text", "")) or "".join(o["data"].get("text/html", "")).split("<img")[0] for o in outputs]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook, executed in an empty directory."""
    book = nbformat.read(NOTEBOOK, as_version=4)
    for cell in book.cells:
        cell.pop("outputs", None) if cell.cell_type == "markdown" else cell.update(outputs=[], execution_count=None)
    place = tmp_path_factory.mktemp("notebook")
    NotebookClient(book, timeout=240, kernel_name="python3", resources={"metadata": {"path": str(place)}}).execute()
    assert (place / "results" / "cut_off" / "report.html").is_file()
    return book


def test_the_notebook_finds_the_fault_and_mends_it(executed: Any) -> None:
    texts = said(executed.cells)
    assert "VIOLATED: lost" in texts[2] and ">FAIL</b>" in texts[3] and ">PASS</b>" in texts[5], texts
    assert "data:image/svg+xml;base64," in str(executed.cells[9].outputs), "the picture of the worst pair"


def test_the_stored_outputs_are_those_of_the_code(executed: Any) -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert NOTEBOOK.stat().st_size < 300_000 and "/tmp" not in NOTEBOOK.read_text(encoding="utf-8")
    assert len(said(stored.cells)) == len(said(executed.cells)) == 6
    assert said(stored.cells)[:2] == said(executed.cells)[:2]  # numbers of violations depend on the type of CPU
    assert [cell.execution_count for cell in stored.cells if cell.cell_type == "code"] == list(range(1, 8))


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mt.demo_drive(tmp_path_factory.mktemp("recorded") / "drive", frames=21)


def run_example(place: Path, bag: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:dash", "-p", "no:cacheprovider", "--mt-bag", str(bag), *words]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)


@pytest.mark.long  # a detector that passes: test_the_notebook_finds_the_fault_and_mends_it
def test_the_tests_of_the_detector_pass(bag: Path) -> None:
    done = run_example(EXAMPLES / "pytest", bag)
    assert done.returncode == 0 and "3 passed" in done.stdout, done.stdout


def test_the_tests_of_the_detector_find_a_fault(tmp_path: Path, bag: Path) -> None:
    place = shutil.copytree(EXAMPLES / "pytest", tmp_path / "example")
    source = place / "detector.py"
    head, body = source.read_text().split('base_link."""\n')
    source.write_text(f'{head}base_link."""\n    points = points[:107_000]\n{body}')  # as the README says
    done = run_example(place, bag, "-k", "noise_outside_roi_1000")
    assert done.returncode == 1 and "AssertionError: FAIL (exit code 1)" in done.stdout, done.stdout
    assert "worst pair: frame " in done.stdout and "reproduce: mt reproduce " in done.stdout
