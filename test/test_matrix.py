# SPDX-License-Identifier: Apache-2.0
"""Relation x fault: every planted fault is found, every honest stack passes, control and sham are clean.

New relations, faults and reference stacks are in it by themselves.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mt_nodes import plugins, resources
from mt_nodes.bags import write_bundles
from mt_nodes.directories import new_directory
from mt_nodes.plan import ReplayRequest
from mt_nodes.relations import shipped_relations
from mt_nodes.replay import Run, execute, in_process_arms
from mt_nodes.scene.drive import generate_drive

BUNDLES = 6
RELATIONS = tuple(r.id for r in shipped_relations() if r.role == "relation")
FAULTS = tuple(plugins.catalogue("faults"))
HONEST = tuple(resources.shipped("stacks"))


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matrix") / "drive"
    write_bundles(path, generate_drive(BUNDLES, seed=1))
    return path


def judged(drive: Path, out: Path, stack: str, faults: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    request = ReplayRequest((str(drive),), RELATIONS, stack, transport="inprocess", faults=faults)
    run = Run.make(request, new_directory(str(out)))
    run.save()
    summary = execute(run, lambda ending: in_process_arms(run), lambda line: None, lambda verdicts: None)
    assert sum(summary["outcomes"].values()) == summary["offered"] == run.pairs_to_come
    relations: dict[str, dict[str, Any]] = summary["relations"]
    return relations


def clean(relation: dict[str, Any]) -> bool:
    return bool(relation["control"]["violated"] == relation["sham"]["violated"] == 0 < relation["control"]["decided"])


@pytest.mark.parametrize("stack", HONEST)
def test_an_honest_stack_holds_every_relation(drive: Path, tmp_path: Path, stack: str) -> None:
    relations = judged(drive, tmp_path / "run", stack, ())
    assert set(relations) == set(RELATIONS)
    for name, relation in relations.items():
        assert relation["decided"] > 0, name
        assert relation["violated"] == 0, name
        assert clean(relation), name


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(drive: Path, tmp_path: Path, fault: str) -> None:
    relations = judged(drive, tmp_path / "run", "reference_detector", (fault,))
    assert all(clean(r) for r in relations.values())
    found = [name for name, r in relations.items() if r["outcome"] == "FAIL"]
    assert found, f"no relation finds {fault}"


def test_there_is_something_to_find() -> None:
    assert len(FAULTS) >= 6 and len(RELATIONS) >= 5 and len(HONEST) >= 3
