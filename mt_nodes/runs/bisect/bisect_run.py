# SPDX-License-Identifier: Apache-2.0
"""One bisection from request to result; it can be resumed after every play."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import ExitCode, MtError, UsageError
from mt_nodes.base.jsonl import LineFile, read_lines, write_result
from mt_nodes.base.processes import sigterm_interrupts
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.run_record import read_record, write_request
from mt_nodes.engine.summary.bisect_headline import FILE, bisect_headline
from mt_nodes.report.bisect_page import write_bisect_page
from mt_nodes.runs.bisect.bisect_request import BisectRequest, CaseOptions
from mt_nodes.runs.bisect.bisection import Bisection, CannotTest, StopRule, Tally, VersionTest
from mt_nodes.runs.bisect.case_run import CaseRequest, in_version, pair_request, play_case
from mt_nodes.runs.bisect.stack_versions import GitVersions, StackVersions, ValueVersions
from mt_nodes.runs.bisect.version_search import VersionState
from mt_nodes.runs.run_directory import RunDirectory

JOURNAL = "bisect.jsonl"
#: Called with what is tested, about how many steps are still to come, and how its plays ended so far.
Show = Callable[[str, int, Tally], None]


@dataclass(frozen=True, eq=False)
class BisectRun(RunDirectory[BisectRequest]):
    """A bisection, checked. ``pairs``: cases that it may play, the most promising first."""

    COMMAND, KEY, REQUEST = "mt bisect", "failures", BisectRequest

    versions: StackVersions
    pairs: tuple[str, ...]

    @classmethod
    def make(cls, request: BisectRequest, out: Path) -> BisectRun:
        """Find versions and violated pairs. Raises UsageError: saying what to type instead."""
        plugins.add_directories(map(Path, request.plugins))
        request.certainty  # noqa: B018 - refuses what does not fit
        if not 0.0 < request.build_minutes < math.inf:
            raise UsageError(f"--build-minutes: got {request.build_minutes:g}, expected more than 0")
        pairs = (request.pair,) if request.pair else failing_pairs(Path(request.failures), request.cases)
        pair = pair_request(request, pairs[0])
        given = (pair.stack, getattr(pair, "stack_settings", {}))
        versions: StackVersions
        if request.values:
            versions = ValueVersions(request.values, request.good, request.bad, *given)
        else:
            repo, ends = Path(request.repo), (request.good, request.bad)
            versions = GitVersions(repo, *ends, *given, out.resolve())
            versions.build, versions.build_minutes = request.build, request.build_minutes
            versions.first_parent = request.first_parent
        versions.graph  # noqa: B018 - refuses where there is no version
        return cls(request, out, versions, pairs)

    @classmethod
    def create(cls, request: BisectRequest, out: str | None) -> BisectRun:
        """Check what is asked, and make the results directory. Raises UsageError: it cannot be bisected."""
        return super().create(request.located(), out)

    def at(self, out: Path) -> BisectRun:
        """Return it with another results directory."""
        return self.make(self.request, out)

    def save(self) -> None:
        """Write ``run.json``."""
        write_request(self.out, self.request, {"relations": []})


def failing_pairs(directory: Path, most: int) -> tuple[str, ...]:
    """Return violated pairs of a finished run: of relations that fail first, then those with the worst margins.

    Raises UsageError: it has none.
    """
    record, summary = read_record(directory), read_summary(directory).get("relations", {})
    judged = {row["id"] for row in record["relations"] if row.get("check") is not None}
    rows = []
    for line in read_journal(directory / "result.jsonl"):
        if line.get("type") == "verdict" and line["outcome"] == Outcome.VIOLATED.value and line["relation"] in judged:
            passes = summary.get(line["relation"], {}).get("outcome") != "FAIL"
            margin = -math.inf if line.get("margin") is None else line["margin"]
            if "@" not in Pair.parse(line["pair"]).draw:
                rows.append((passes, margin, line["pair"]))
    if not rows:
        raise UsageError(f"{directory}: has no violated pair; expected the results of a run that failed")
    return tuple(pair for *_, pair in sorted(rows)[:most])


class _JournalledBench:
    """Plays cases in versions, and keeps every outcome, so that nothing is played twice."""

    def __init__(self, run: BisectRun, journal: LineFile, show: Callable[[Tally], None]) -> None:
        self._run, self._journal, self._show = run, journal, show
        self._tallies: dict[tuple[str, str, str], Tally] = {}
        self._skipped: dict[tuple[str, str, str], str] = {}
        self.seconds: dict[str, float] = {}
        for line in read_lines(journal.path):
            self._take(line)

    def _take(self, line: Mapping[str, Any]) -> None:
        key = (line["phase"], line["version"], line["pair"])
        if line["type"] == "skip":
            self._skipped[key] = line["why"]
            return
        before = self._tallies.get(key, Tally())
        self._tallies[key] = before.plus(Outcome(line["outcome"]), line["why"])
        self.seconds[line["version"]] = self.seconds.get(line["version"], 0.0) + line["s"]

    @property
    def plays(self) -> int:
        """All plays so far."""
        return sum(tally.plays for tally in self._tallies.values())

    def tally(self, phase: str, version: str, pair: str, rule: StopRule) -> Tally:
        """Play until the rule is satisfied. Raises CannotTest: the version does not build or start, or died."""
        key = (phase, version, pair)
        if key in self._skipped:
            raise CannotTest(self._skipped[key])
        tally = self._tallies.get(key, Tally())
        if rule.done(tally):
            return tally
        about = {"phase": phase, "version": version, "pair": pair}
        try:
            return self._play(about, rule, tally)
        except CannotTest as why:
            if phase != "test":  # an end that cannot be tested ends the bisection, and may be mended before it goes on
                raise CannotTest(f"version {_short(version)} cannot be tested: {why}") from why
            self._keep({"type": "skip", **about, "why": str(why)})
            raise

    def _play(self, about: Mapping[str, str], rule: StopRule, tally: Tally) -> Tally:
        request = self._run.request
        place = self._run.versions.opened(about["version"])
        case = in_version(pair_request(request, about["pair"]), place.stack, place.settings)
        out = (
            self._run.out.resolve() / "plays" / f"{len(self._tallies):03d}_{about['phase']}_{_short(about['version'])}"
        )
        last = time.monotonic()

        def tell(outcome: Outcome, why: str) -> None:
            nonlocal last
            now = time.monotonic()
            line = {"type": "play", **about, "outcome": outcome.value, "why": why, "s": round(now - last, 3)}
            last = now
            self._keep(line)
            self._show(self._tallies[about["phase"], about["version"], about["pair"]])

        with place.entered():
            return play_case(case, CaseRequest(rule, tally, request.warm), out, tell)

    def _keep(self, line: Mapping[str, Any]) -> None:
        self._journal.append(line)
        self._take(line)


#: A bad version is taken to fail at least so often by ``mt bisect step``, which cannot measure it.
BAD_RATE = 0.5


def test_here(options: CaseOptions, out: Path, show: Callable[[Tally], None]) -> VersionTest:
    """Test the stack as it is, from the working directory: one step of ``git bisect run``.

    ``out``: directory for logs. ``show``: called after each play.
    Raises MtError: of the run, not of the version.
    """
    options = options.located()
    plugins.add_directories(map(Path, options.plugins))
    pair = options.pair or failing_pairs(Path(options.failures), 1)[0]
    rule, tally = options.certainty.rule(options.bad_rate or BAD_RATE, options.error), Tally()
    case = pair_request(options, pair)

    def tell(outcome: Outcome, why: str) -> None:
        nonlocal tally
        tally = tally.plus(outcome, why)
        show(tally)

    try:
        return rule.verdict(pair, play_case(case, CaseRequest(rule, Tally(), options.warm), out.resolve(), tell))
    except CannotTest as error:
        return VersionTest(pair, VersionState.SKIP.value, tally, why=str(error))


def _short(version: str) -> str:
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in version)[-40:]


def carry_out(run: BisectRun, show: Show) -> dict[str, Any]:
    """Bisect, keep what came of it, and return what ``bisect.json`` holds; whatever ends it early is in it."""
    state: dict[str, Any] = {"words": "", "steps": 0}
    journal = LineFile(run.out / JOURNAL)
    bench = _JournalledBench(run, journal, lambda tally: show(state["words"], state["steps"], tally))

    def tell(version: str, steps: int) -> None:
        state.update(words=_short(run.versions.about(version)["title"]), steps=steps)
        show(version, steps, Tally())

    bisection = Bisection(run.versions.graph, run.versions.good, run.pairs, bench, run.request.certainty, tell)
    code, why = ExitCode.PASS, ""
    try:
        with sigterm_interrupts():
            bisection.run()
    except KeyboardInterrupt:
        code, why = ExitCode.INTERRUPTED, f"interrupted; `mt bisect --resume {run.out}` goes on"
    except MtError as error:
        code, why = error.exit_code, str(error)
    finally:
        journal.close()
        run.versions.close()
    if code is ExitCode.PASS and not bisection.finding.found:
        code = ExitCode.UNDECIDED
    return _result(run, bisection, bench, code, why)


def _result(run: BisectRun, bisection: Bisection, bench: _JournalledBench, code: ExitCode, why: str) -> dict[str, Any]:
    found, graph = bisection.as_plain(), run.versions.graph
    named = {run.versions.good, graph.versions[-1], found["last_good"], *found["first_bad"]}
    named |= {test["version"] for test in found["tests"]}
    result = {
        "schema": 1,
        "of": run.request.failures,
        "kind": "values" if run.request.values else "commits",
        "good": run.versions.good,
        "bad": graph.versions[-1],
        "between": len(graph.versions) - 1,
        "error": run.request.error,
        **found,
        "places": {
            version: graph.place(version) + 1 if version != run.versions.good else 0 for version in sorted(named)
        },
        "about": {version: run.versions.about(version) for version in sorted(named)},
        "plays": bench.plays,
        "seconds": {version: round(s, 1) for version, s in bench.seconds.items()},
        "why": why,
        "results": str(run.out.resolve()),
        "exit_code": int(code),
    }
    result["headline"] = bisect_headline(result)
    write_result(run.out / FILE, result)
    write_result(run.out / "summary.json", {"schema": 1, "exit_code": int(code)})
    write_bisect_page(run.out)
    return result
