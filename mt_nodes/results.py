# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on disk: journal, ledger, evidence while it goes on; summary and tables at its end."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mt_nodes import __version__
from mt_nodes.background import Background
from mt_nodes.effects import Effects
from mt_nodes.engine import Answer, Offer
from mt_nodes.errors import InfrastructureError, UsageError
from mt_nodes.evidence import evidence_name, write_evidence
from mt_nodes.frames import Bundle
from mt_nodes.journal import Journal, read_journal
from mt_nodes.ledger import Ledger
from mt_nodes.markers import wires_of
from mt_nodes.pictures import write_view
from mt_nodes.pipeline import Derived
from mt_nodes.report.view import evidence_file
from mt_nodes.summary import RelationInfo, summarise
from mt_nodes.verdict import Outcome, Verdict
from mt_nodes.waivers import load_waivers, marked

if TYPE_CHECKING:
    from mt_nodes.replay import Run

DEFAULT_ROOT = Path("mt_results")
VERSIONS_OF = ("numpy", "scipy", "shapely", "open3d-cpu", "open3d", "rosbags", "ros-rclpy", "ros-rmw-fastrtps-cpp")


@dataclass(frozen=True, eq=False)
class Case:
    """One pair as it was: both inputs, what was done, both answers; what evidence is made of."""

    offer: Offer
    source: Bundle
    followup: Bundle
    effects: Effects
    source_answer: Answer
    followup_answer: Answer


def new_directory(out: str | None, now: datetime.datetime | None = None) -> Path:
    """Make the directory of a new run, and the link ``latest`` beside it where the place is the default one.

    Raises:
        UsageError: it holds the results of another run.
        InfrastructureError: it cannot be made.
    """
    stamp = (now or datetime.datetime.now()).strftime("%Y%m%d_%H%M%S")
    path = Path(out) if out else unused(DEFAULT_ROOT / stamp)
    if (path / "result.jsonl").exists():
        raise UsageError(f"--out {path}: holds the results of a run already; choose another directory")
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / "evidence").mkdir(exist_ok=True)
        if not out:
            _link_latest(path)
    except OSError as error:
        raise InfrastructureError(f"cannot write results to {path}: {error.strerror}; choose another --out") from error
    return path


def describe_run(run: Run) -> dict[str, Any]:
    """Return ``run.json``: what was asked, what it came to, with which versions, on which machine."""
    return {
        "schema": 1,
        "started": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": sys.argv,
        "directory": str(Path.cwd()),
        "request": run.request.as_plain(),
        "relations": [r.as_plain() for r in run.suite.all],
        "stack": run.stack.name,
        "topics": {source.reader.path.name: source.roles for source in run.sources},
        "versions": versions(),
        "machine": {
            "system": platform.platform(),
            "cpu": platform.machine(),
            "cores": os.cpu_count(),
            "host": platform.node(),
        },
    }


class Recorder:
    """Takes in what happens in a run and keeps it; a context manager."""

    def __init__(
        self,
        run: Run,
        listen: Callable[[str], None],
        show: Callable[[Sequence[Verdict], Case], None] = lambda verdicts, case: None,
    ) -> None:
        self._run = run
        self._listen, self._show = listen, show
        self._journal = Journal(run.out / "result.jsonl")
        self._ledger = Ledger(run.out)
        self._evidence = Background()
        self._made_ms: list[float] = []
        self._answered_ms: list[float] = []
        self._journal.condition(_condition(run))

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
        self._ledger.close()
        self._evidence.close()

    def followup(self, offer: Offer, bundle: Bundle, derived: Derived, made_ms: float) -> None:
        """Record a follow-up that goes out."""
        pair = offer.followup_pair(bundle)
        line = self._ledger.followup(pair, offer.relation.mutate, derived.draws, derived.followup)
        self._made_ms.append(made_ms)
        if line is not None:
            self._listen(line)

    def verdicts(self, verdicts: Sequence[Verdict], case: Case | None) -> None:
        """Journal verdicts; keep the evidence of the first violated one (they share the follow-up)."""
        for verdict in verdicts:
            self._listen(self._journal.verdict(verdict))
        if case is None:
            return
        self._show(verdicts, case)
        if case.followup_answer.output.answer_ms is not None:
            self._answered_ms.append(case.followup_answer.output.answer_ms)
        for verdict in verdicts:
            if verdict.pair == self._run.only or (verdict.outcome is Outcome.VIOLATED and self._run.only is None):
                self._evidence.do(self._keep_evidence, verdict, case)

    def finish(self, **trouble: Any) -> dict[str, Any]:
        """Write summary, tables and report, and return the summary; ``trouble`` is what ended the run early."""
        from mt_nodes.report.files import write_files  # the plotting library is heavy

        self._evidence.wait()
        out = self._run.out
        infos = [RelationInfo(r.id, r.kind, r.min_decided, r.because, r.requirement) for r in self._run.suite.relations]
        latency = {"mutator": _quantiles(self._made_ms), "stack": _quantiles(self._answered_ms)}
        lines = list(read_journal(out / "result.jsonl"))
        summary = summarise(lines, infos, latency_ms={k: v for k, v in latency.items() if v}, **trouble)
        if waivers := self._run.request.waivers:
            summary = marked(summary, lines, load_waivers(Path(waivers)))
        write_files(out, summary, lines)
        return summary

    def _keep_evidence(self, verdict: Verdict, case: Case) -> None:
        answers = (("source", case.source_answer), ("followup", case.followup_answer))
        said = {a: answer.wires or wires_of(answer.output, self._run.stack, verdict.stamp_ns) for a, answer in answers}
        path = self._run.out / "evidence" / evidence_name(verdict.pair)
        write_evidence(path, verdict.pair, case.source, case.followup, said)
        judge = next(r for r in case.offer.judges if r.id == verdict.pair.judged_for)
        outputs = (case.source_answer.output, case.followup_answer.output)
        write_view(
            evidence_file(self._run.out, verdict.pair),
            *(case.source, case.followup),
            outputs=outputs,
            effects=case.effects,
            check=judge.check,
            detail=verdict.judgement.detail,
        )


def _condition(run: Run) -> dict[str, Any]:
    request = run.request
    return {
        "seed": request.seed,
        "mode": request.mode,
        "pace": request.pace,
        "transport": request.transport,
        "bags": list(request.bags),
        "limit": request.limit,
        "stack": run.stack.name,
        "faults": list(request.faults),
        "relations": [r.id for r in run.suite.relations],
        "control": run.suite.control.id,
        "sham": run.suite.sham.id,
    }


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    if not values:
        return {}
    p50, p95, p99 = np.percentile(values, [50, 95, 99])
    named: Mapping[str, float] = {"p50": p50, "p95": p95, "p99": p99, "max": max(values)}
    return {name: round(float(value), 3) for name, value in named.items()}


def versions() -> dict[str, str]:
    """Return the versions of everything that a result may depend on."""
    found = {"mt_nodes": __version__, "python": platform.python_version()}
    for name in VERSIONS_OF:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def unused(path: Path) -> Path:
    """Return the path, or if it exists the first of ``<path>_2``, ``<path>_3``… that does not."""
    candidates = (path, *(path.with_name(f"{path.name}_{i}") for i in range(2, 1000)))
    return next(c for c in candidates if not c.exists())


def _link_latest(path: Path) -> None:
    link = path.parent / "latest"
    fresh = path.parent / f".latest-{os.getpid()}"
    fresh.symlink_to(path.name)
    fresh.replace(link)
