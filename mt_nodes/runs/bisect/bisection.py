# SPDX-License-Identifier: Apache-2.0
"""The bisection itself: which case tells good from bad, how often it fails, and which versions are tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from mt_nodes.base.errors import ExitCode, MtError, UsageError
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.stats.sequential import RateTest, least_rate, step_error
from mt_nodes.base.wording import counted
from mt_nodes.data.verdict import Outcome
from mt_nodes.runs.bisect.version_search import VersionGraph, VersionSearch, VersionState

#: Plays of each case in the bad version, in rounds: the first round in which one fails is the last.
SCREENS = (4, 16, 64)
#: Violations after which the rate of the bad version is known well enough.
CALIBRATION = 10
#: A good version is taken to fail at most so much less often than a bad one, if nothing else is said.
GOOD_TO_BAD = 0.1
#: So many plays of a version that decide nothing, and no other, are enough.
_MOST_UNDECIDED = 3


class CannotTest(MtError):
    """A version cannot be tested: it does not build or start, or dies; that skips the version."""


class EndsAlike(MtError):
    """No case tells the good version from the bad one: there is nothing to bisect."""

    exit_code = ExitCode.UNDECIDED


@dataclass(frozen=True)
class Tally(PlainData):
    """How plays of a case ended. ``why``: of the last one that decided nothing."""

    held: int = 0
    violated: int = 0
    undecided: int = 0
    why: str = ""

    @property
    def decided(self) -> int:
        """Plays that held or were violated."""
        return self.held + self.violated

    @property
    def plays(self) -> int:
        """All plays."""
        return self.decided + self.undecided

    def plus(self, outcome: Outcome, why: str = "") -> Tally:
        """Return it with one more play; only HOLDS counts as held."""
        if outcome is Outcome.HOLDS:
            return replace(self, held=self.held + 1)
        if outcome is Outcome.VIOLATED:
            return replace(self, violated=self.violated + 1)
        return replace(self, undecided=self.undecided + 1, why=f"{outcome.value}: {why}" if why else outcome.value)

    def __str__(self) -> str:
        return f"violated in {self.violated} of {counted(self.plays, 'play')}"


@dataclass(frozen=True)
class StopRule(PlainData):
    """When a case was played often enough in a version.

    ``most``: plays. ``violations``: that are enough, 0: whatever there are. ``good_rate``, ``bad_rate``, ``error``: of
    a :class:`RateTest` that decides; error 0: none does.
    """

    most: int
    violations: int = 0
    good_rate: float = 0.0
    bad_rate: float = 0.0
    error: float = 0.0

    def decision(self, tally: Tally) -> bool | None:
        """Return True if the version is bad, False if it is good, None if nothing is decided."""
        return RateTest(self.good_rate, self.bad_rate, self.error).decision(tally.held, tally.violated)

    def verdict(self, version: str, tally: Tally) -> VersionTest:
        """Return what a version is after these plays; one that is not decided is skipped, never good."""
        test = RateTest(self.good_rate, self.bad_rate, self.error)
        bad, ratio = self.decision(tally), test.log_ratio(tally.held, tally.violated)
        state = VersionState.SKIP if bad is None else VersionState.BAD if bad else VersionState.GOOD
        why = f"not decided: {tally}{'; ' * bool(tally.why)}{tally.why}" if bad is None else ""
        return VersionTest(version, state.value, tally, ratio, self.error, why)

    def done(self, tally: Tally) -> bool:
        """Whether no more plays are needed."""
        if tally.plays >= self.most or (not tally.decided and tally.undecided >= _MOST_UNDECIDED):
            return True
        if self.violations and tally.violated >= self.violations:
            return True
        return bool(self.error) and self.decision(tally) is not None


class Bench(Protocol):
    """Plays a case in a version."""

    def tally(self, phase: str, version: str, pair: str, rule: StopRule) -> Tally:
        """Play until the rule is satisfied; plays of the same phase, version and pair go on.

        Raises CannotTest: the version does not build or start, or its stack died.
        """


@dataclass(frozen=True)
class VersionTest(PlainData):
    """What the test of a version came to; ``error``: with which probability it may be wrong."""

    version: str
    state: str
    tally: Tally = field(default_factory=Tally)
    log_ratio: float = 0.0
    error: float = 0.0
    why: str = ""


@dataclass
class Finding:
    """What a bisection came to, as far as it went.

    ``calibration``: plays of the bad version, by which ``rule`` was made. ``search``: None until the ends are verified.
    """

    pair: str = ""
    screened: dict[str, Tally] = field(default_factory=dict)
    calibration: Tally | None = None
    rule: StopRule | None = None
    tests: list[VersionTest] = field(default_factory=list)
    search: VersionSearch | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def found(self) -> bool:
        """Whether exactly one version may be the first bad one."""
        return self.search is not None and len(self.search.candidates) == 1


@dataclass(frozen=True)
class Certainty(PlainData):
    """How sure the answer is to be.

    Attributes:
        error: probability that the answer is wrong, of all steps together.
        good_rate, bad_rate: shares of plays that fail in a good and in a bad version; 0: taken from plays of the ends.
        plays: most plays of a version; where they decide nothing the version is skipped.
    """

    error: float = 0.01
    good_rate: float = 0.0
    bad_rate: float = 0.0
    plays: int = 500

    def checked(self) -> Certainty:
        """Return it. Raises UsageError: the numbers do not fit."""
        if not 0.0 < self.error < 0.5:
            raise UsageError(f"--error: got {self.error:g}, expected more than 0 and less than 0.5")
        for name, rate in (("--good-rate", self.good_rate), ("--bad-rate", self.bad_rate)):
            if not 0.0 <= rate < 1.0:
                raise UsageError(f"{name}: got {rate:g}, expected more than 0 and less than 1")
        if self.bad_rate and self.good_rate >= self.bad_rate:
            raise UsageError(f"--good-rate: got {self.good_rate:g}, expected less than --bad-rate {self.bad_rate:g}")
        return self

    def rule(self, bad_rate: float, error: float) -> StopRule:
        """Return the test of a version. Raises UsageError: a good version may fail as often as a bad one does."""
        good_rate = self.good_rate or GOOD_TO_BAD * bad_rate
        if good_rate >= bad_rate:
            raise UsageError(
                f"--good-rate: got {good_rate:g}, but the bad version fails in {bad_rate:.3g} of its plays"
            )
        return StopRule(self.plays, 0, good_rate, bad_rate, error)


class Bisection:
    """Verifies both ends, and tests versions between them until the first bad one is found.

    Args:
        graph: versions after the good one, the bad one last. good: which one that is.
        pairs: cases that failed in the bad version, the most promising first. bench: plays them.
        certainty: how sure the answer is to be. tell: called before each version, with words and steps still to come.
    """

    def __init__(
        self,
        graph: VersionGraph,
        good: str,
        pairs: Sequence[str],
        bench: Bench,
        certainty: Certainty,
        tell: Callable[[str, int], None] = lambda words, steps: None,
    ) -> None:
        self._graph, self._good, self._bad, self._pairs = graph, good, graph.versions[-1], pairs
        self._bench, self._certainty, self._tell = bench, certainty, tell
        self.finding = Finding()
        self._decisions = 0

    def run(self) -> Finding:
        """Return what it came to; ``finding`` holds it, too, when this raises.

        Raises EndsAlike: no case holds in the good version and fails in the bad one. CannotTest: an end cannot be
        tested. UsageError: the rates do not fit what the ends do.
        """
        finding, search = self.finding, VersionSearch(self._graph)
        self._steps = search.steps_to_come
        finding.pair = self._case()
        self._verify_ends()
        finding.search = search
        while (version := search.next()) is not None:
            self._tell(version, search.steps_to_come)
            test = self._test(version)
            finding.tests.append(test)
            search.mark(version, VersionState(test.state))
        return finding

    def _case(self) -> str:
        """Return the case that holds in the good version and fails most often in the bad one."""
        self._tell(self._bad, self._steps)
        refuted: list[str] = []
        for plays in sorted({min(plays, self._certainty.plays) for plays in SCREENS}):
            for pair in self._pairs:
                bad = self.finding.screened[pair] = self._bench.tally("screen", self._bad, pair, StopRule(plays))
                if bad.violated == plays and self._holds(pair, refuted):
                    return pair
            failing = [pair for pair in self._pairs if self.finding.screened[pair].violated and pair not in refuted]
            for pair in sorted(failing, key=lambda pair: -self.finding.screened[pair].violated):
                if self._holds(pair, refuted):
                    return pair
            if refuted:
                break
        raise EndsAlike(self._why_alike(refuted))

    def _holds(self, pair: str, refuted: list[str]) -> bool:
        """Whether a case fails less than half as often in the good version, by a few plays; else it is ``refuted``."""
        bad = self.finding.screened[pair]
        good = self._bench.tally("screen", self._good, pair, StopRule(SCREENS[0]))
        if not good.held or 2 * good.violated * bad.decided >= bad.violated * good.decided:
            refuted.append(pair)
            self.finding.notes.append(f"pair '{pair}' in the good version: {good}{'; ' * bool(good.why)}{good.why}")
            return False
        return True

    def _why_alike(self, refuted: Sequence[str]) -> str:
        if refuted:
            return f"the good version {self._good} fails, too, or decides nothing: {'; '.join(self.finding.notes)}"
        tallies = "; ".join(f"'{pair}' {tally} {tally.why}".rstrip() for pair, tally in self.finding.screened.items())
        return f"the bad version {self._bad} does not fail in any of {counted(len(self._pairs), 'case')}: {tallies}"

    def _verify_ends(self) -> None:
        """Measure how often the case fails in the bad version, and have the test find both ends what they are."""
        pair, asked = self.finding.pair, self._certainty
        rate, error = asked.bad_rate, asked.error
        if not rate:
            error /= 2
            rule = StopRule(asked.plays, CALIBRATION)
            tally = self.finding.calibration = self._bench.tally("calibrate", self._bad, pair, rule)
            rate = least_rate(tally.violated, tally.decided, error)
            if not rate:
                raise EndsAlike(f"the bad version {self._bad} does not fail any more: {tally}")
        self.finding.rule = asked.rule(rate, error)
        ends = {self._good: VersionState.GOOD} | ({self._bad: VersionState.BAD} if asked.bad_rate else {})
        for version, state in ends.items():
            self._tell(version, self._steps)
            test = self._test(version)
            self.finding.tests.append(test)
            if test.state != state.value:
                raise EndsAlike(
                    f"the {state.value} version {version} is not found {state.value}: {test.tally}; "
                    f"{test.why or test.state}"
                )
            if state is VersionState.GOOD:
                self._refuse_rate(test.tally, self.finding.rule)

    def _refuse_rate(self, good: Tally, rule: StopRule) -> None:
        """Refuse a good version that fails more often than good versions are taken to."""
        if least_rate(good.violated, good.decided, 0.01) > rule.good_rate:
            raise EndsAlike(
                f"the good version {self._good} was {good}, more than the {rule.good_rate:.2g} that good versions are "
                "taken to fail at most; say how often they do with --good-rate"
            )

    def _test(self, version: str) -> VersionTest:
        rule = self.finding.rule
        assert rule is not None, "the ends were verified"
        expected = 1 + self._steps + bool(self._certainty.bad_rate)
        error = step_error(self._decisions + 1, expected, rule.error)
        rule = replace(rule, error=error)
        try:
            tally = self._bench.tally("test", version, self.finding.pair, rule)
        except CannotTest as why:
            return VersionTest(version, VersionState.SKIP.value, why=str(why))
        self._decisions += 1
        return rule.verdict(version, tally)

    def as_plain(self) -> dict[str, Any]:
        """Return what it came to as JSON holds it."""
        finding, rule = self.finding, self.finding.rule
        search = finding.search
        return {
            "pair": finding.pair,
            "rates": None if rule is None else {"good": rule.good_rate, "bad": rule.bad_rate},
            "calibration": finding.calibration and finding.calibration.as_plain(),
            "screened": {pair: tally.as_plain() for pair, tally in finding.screened.items()},
            "tests": [test.as_plain() for test in finding.tests],
            "found": finding.found,
            "first_bad": [] if search is None else list(search.candidates),
            "last_good": (search and search.last_good) or self._good,
            "notes": finding.notes,
        }
