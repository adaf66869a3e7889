# SPDX-License-Identifier: Apache-2.0
"""The commands of the examples that need topics: a ROS 2 program, and an adapter of a plugin."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_runs import sparse_drive
from page_commands import ROOT, copy_of, follow


@pytest.mark.parametrize("folder", ["plugin", "stacks"])
@pytest.mark.long  # in process: test_examples.py
def test_the_replay_over_topics_of_an_example(folder: str, tmp_path: Path) -> None:
    here = copy_of(folder, tmp_path)
    page = here / "README.md"
    # The network has nothing to do with topics.
    page.write_text("\n".join(line for line in page.read_text().splitlines() if "network" not in line) + "\n")
    (ran,) = follow(page, here, by_topics=True)
    assert ran.code == 3, ran.said
    assert " HOLDS" in ran.said and " ERROR" not in ran.said and " VIOLATED" not in ran.said


def test_the_adapter_of_the_tutorial(tmp_path: Path) -> None:
    sparse_drive(tmp_path / "demo" / "drive", 3)
    *_, ran = follow(ROOT / "docs" / "plugins.md", tmp_path, by_topics=True)
    assert "points_stack.yaml" in ran.command and ran.code == 3, ran.said
    assert " HOLDS" in ran.said and " ERROR" not in ran.said
