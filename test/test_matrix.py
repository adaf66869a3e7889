# SPDX-License-Identifier: Apache-2.0
"""Relation x fault: every planted fault is found, every honest stack passes, control and sham are clean.

New relations, faults and reference stacks are in it by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mt_nodes import plugins, resources
from mt_nodes.bags import write_bundles
from mt_nodes.directories import new_directory
from mt_nodes.plan import ReplayRequest
from mt_nodes.relations import Relation, shipped_relations
from mt_nodes.replay import Run, execute, in_process_arms
from mt_nodes.runs import unfit
from mt_nodes.scene.drive import generate_drive
from mt_nodes.stacks import load_stack

BUNDLES = 6
RELATIONS = tuple(r for r in shipped_relations() if r.role == "relation")
NECESSARY = tuple(r for r in RELATIONS if r.kind == "necessary")
EXPECTED = tuple(r for r in RELATIONS if r.kind == "expected")
FAULTS = tuple(plugins.catalogue("faults"))
HONEST = tuple(resources.shipped("stacks"))
#: Faults that let the whole cloud decide: what no correct stack may do, so a necessary relation must blame them.
BLAMED = {
    "grid_index_wrap",
    "intensity_by_cloud_max",
    "order_dependence_over_budget",
    "point_buffer_cap",
    "threshold_scaled_by_cloud",
    "z_range_from_cloud",
}
#: What faults are planted in: first the stack that looks ahead, then the one that looks all around.
HOSTS = ("reference_detector", "reference_whole_cloud")


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("matrix") / "drive"
    write_bundles(path, generate_drive(BUNDLES, seed=1))
    return path


def judged(
    drive: Path, out: Path, stack: str, relations: Sequence[Relation], faults: tuple[str, ...] = ()
) -> dict[str, dict[str, Any]]:
    """Judge a stack by those of the relations that it can be judged by."""
    fitting = tuple(r.id for r in relations if unfit(r, load_stack(stack)) is None)
    request = ReplayRequest((str(drive),), fitting, stack, transport="inprocess", faults=faults)
    run = Run.make(request, new_directory(str(out)))
    run.save()
    summary = execute(run, lambda ending: in_process_arms(run), lambda line: None, lambda verdicts: None)
    assert sum(summary["outcomes"].values()) == summary["offered"] == run.pairs_to_come
    assert set(summary["relations"]) == set(fitting)
    outcomes: dict[str, dict[str, Any]] = summary["relations"]
    return outcomes


def clean(outcomes: dict[str, dict[str, Any]]) -> bool:
    """Whether control and sham hold, and had something to hold."""
    return all(
        r["control"]["violated"] == r["sham"]["violated"] == 0 < r["control"]["decided"] for r in outcomes.values()
    )


@pytest.mark.parametrize("stack", HONEST)
def test_an_honest_stack_holds_every_relation(drive: Path, tmp_path: Path, stack: str) -> None:
    relations = judged(drive, tmp_path / "run", stack, RELATIONS)
    for name, relation in relations.items():
        assert relation["decided"] > 0, name
        assert relation["violated"] == 0, name
    assert clean(relations)


def test_every_relation_fits_an_honest_stack() -> None:
    stacks = [load_stack(name) for name in HONEST]
    assert [r.id for r in RELATIONS if all(unfit(r, stack) for stack in stacks)] == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(drive: Path, tmp_path: Path, fault: str) -> None:
    # Honest stacks violate nothing on this drive, so one violation of an expected relation is the fault's, too.
    found: list[str] = []
    for stack, relations in (*((s, NECESSARY) for s in HOSTS), *((s, EXPECTED) for s in HOSTS)):
        outcomes = judged(drive, tmp_path / f"{stack}-{relations[0].kind}", stack, relations, (fault,))
        assert clean(outcomes)
        found = [
            n for n, r in outcomes.items() if r["outcome"] == "FAIL" or (r["kind"] == "expected" and r["violated"])
        ]
        if found:
            break
    assert found, f"no relation finds {fault}"
    if fault in BLAMED:
        assert stack == HOSTS[0] and "FAIL" in {outcomes[name]["outcome"] for name in found}


def test_there_is_something_to_find() -> None:
    assert len(FAULTS) >= 12 and len(RELATIONS) >= 5 and len(HONEST) >= 3
