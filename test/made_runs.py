# SPDX-License-Identifier: Apache-2.0
"""Results directories for tests: journals made by hand, and short runs in this process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.journal import Journal, read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.summary.summary import RelationInfo, summarise
from mt_nodes.report.run_files import write_files
from mt_nodes.runs.replay.execute import Run, execute, in_process_arms
from mt_nodes.world.scene.drive import generate_drive
from mt_nodes.world.scene.lidar import hdl_64e

NOISE = RelationInfo("noise", "necessary", 20, "Noise outside must not matter.", ("REQ-7",))
FOG = RelationInfo("fog", "necessary", 20, "Light fog must not hide obstacles.")


def verdict(relation: str, bundle: int, violated: bool, draw: str = "0", stamp_ns: int = 10**17) -> Verdict:
    outcome = Outcome.VIOLATED if violated else Outcome.HOLDS
    return Verdict(
        Pair(0, bundle, relation, draw),
        stamp_ns + bundle,
        Judgement(outcome, margin=-int(violated), lost=int(violated)),
    )


def verdicts(relation: str, violated: Iterable[int] = (), count: int = 30, stamp_ns: int = 10**17) -> list[Verdict]:
    """Verdicts of a relation on ``count`` bundles, control and sham clean."""
    bad = set(violated)
    rows = [verdict(relation, b, b in bad, stamp_ns=stamp_ns) for b in range(count)]
    for background in ("identity", "points_permuted"):
        rows += [verdict(background, b, False, f"0@{relation}", stamp_ns) for b in range(count)]
    return rows


def made_run(path: Path, rows: Iterable[Verdict], *relations: RelationInfo, **trouble: Any) -> Path:
    """Write what a run with these verdicts leaves."""
    path.mkdir(parents=True)
    with Journal(path / "result.jsonl") as journal:
        journal.condition({"seed": 7, "stack": "reference_detector", "bags": ["drive"]})
        for row in rows:
            journal.verdict(row)
    lines = list(read_journal(path / "result.jsonl"))
    write_files(path, summarise(lines, relations, **trouble), lines)
    return path


def sparse_drive(path: Path, bundles: int, seed: int = 1, columns: int = 900) -> Path:
    """Write one of half as many columns as usual, or fewer, which takes as much less time to judge."""
    write_bundles(path, generate_drive(bundles, seed, replace(hdl_64e(), azimuths=columns)))
    return path


@contextmanager
def no_pages() -> Iterator[None]:
    """Let runs of this process make no report.html, which takes longer than judging a few pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mt_nodes.report.run_files.write_report", lambda out, *rest: out / "report.html")
        yield


def in_process(bag: Path, out: Path, *relations: str, **asked: Any) -> Run:
    """Run it in this process."""
    run = Run.create(ReplayRequest((str(bag),), relations, transport="inprocess", **asked), str(out))
    carry_out(run)
    return run


def about_the_stream(directory: Path) -> list[str]:
    """Files of relations about the stream, each of which strikes within four bundles."""
    mutations: dict[str, dict[str, Any]] = {
        "frames_dropped": {"every": 2},
        "frames_frozen": {"every": 4, "burst": 3},
        "frames_reordered": {"every": 4, "burst": 2},
        "stamps_jittered": {},
    }
    for name, given in mutations.items():
        head = {"id": name, "kind": "expected", "because": "x", "check": "obstacles_kept"}
        (directory / f"{name}.yaml").write_text(json.dumps({**head, "mutate": [{name: given}]}))
    return [str(directory / f"{name}.yaml") for name in mutations]


def carry_out(run: Run) -> None:
    execute(run, lambda ending: in_process_arms(run, ending), lambda line: None, lambda verdicts: None)
