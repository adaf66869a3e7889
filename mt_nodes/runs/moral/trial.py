# SPDX-License-Identifier: Apache-2.0
"""One case on trial: rounds of runs until they say enough, or there may be no more."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from mt_nodes.runs.moral.base import CaseEvidence, DilemmaCase, Expectation
from mt_nodes.runs.moral.observations import Observation, RunSpec
from mt_nodes.runs.moral.runs import Runs

Drive = Callable[[Sequence[RunSpec]], Iterable[Observation]]
Round = tuple[Observation, ...]
#: Runs that are asked for at once: enough to keep some cores busy, few enough to stop soon. Not to depend on the cores,
#: for what is asked next depends on what was answered.
BATCH = 24
#: Why a trial has no more rounds.
ENOUGH, ALL_ROUNDS = "decided", "all rounds were driven"


@dataclass(eq=False)
class Trial:
    """A case, and what its rounds said so far.

    Attributes:
        name: of the case. stream: of its rounds. first: number of its first round. most: rounds at most.
        ended: why it has no more rounds, empty while it may have.
    """

    name: str
    expect: Expectation
    case: DilemmaCase
    stream: str = "decide"
    first: int = 0
    most: int = 0
    rounds: list[Round] = field(default_factory=list)
    evidence: CaseEvidence = field(default_factory=CaseEvidence)
    ended: str = ""

    def __post_init__(self) -> None:
        self.most = self.most or self.expect.most_rounds

    def due(self) -> list[tuple[RunSpec, ...]]:
        """Return the rounds up to the next look."""
        done = len(self.rounds)
        until = min(self.most, done + self.expect.look_every)
        return [self.expect.round(self.case, self.stream, self.first + number) for number in range(done, until)]

    def take(self, rounds: Sequence[Round]) -> None:
        """Look at more rounds."""
        self.rounds += rounds
        self.evidence = self.expect.judge(self.case, self.rounds)
        if len(self.rounds) >= self.most:
            self.ended = ALL_ROUNDS

    def specs(self) -> list[tuple[RunSpec, ...]]:
        """Return the runs of the rounds so far."""
        return [self.expect.round(self.case, self.stream, self.first + i) for i in range(len(self.rounds))]

    @property
    def nearness(self) -> float:
        """How near to a violation what was seen is."""
        return self.expect.nearness(self.case, self.rounds) if self.rounds else 0.0

    @property
    def runs(self) -> int:
        """How many runs were looked at."""
        return sum(map(len, self.rounds))

    @property
    def cut(self) -> bool:
        """Whether a budget ended it, before it was decided and before all rounds were driven."""
        return self.ended not in ("", ENOUGH, ALL_ROUNDS)

    @property
    def runs_left(self) -> int:
        """How many more runs it might have had."""
        left = self.most - len(self.rounds)
        return left * len(self.expect.round(self.case, self.stream, self.first + len(self.rounds))) if left else 0


class Driving:
    """Has runs driven, each once, and knows how many more there may be.

    Args:
        runs: those of before, and where new ones are written. drive: drives them.
        most_runs: distinct ones at most, 0 for no limit; those of before count, so that who goes on with a campaign
            comes as far as who was not interrupted. minutes: by the clock ``now_s`` from now on, None: no limit.
        tell: called after each run.
    """

    def __init__(
        self,
        runs: Runs,
        drive: Drive,
        most_runs: int = 0,
        minutes: float | None = None,
        tell: Callable[[], None] = lambda: None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runs, self._drive, self._most, self._tell, self._now_s = runs, drive, most_runs, tell, now_s
        self._used: set[str] = set()
        self._minutes, self._until_s = minutes, math.inf if minutes is None else now_s() + 60.0 * minutes
        #: Which budget is used up, in words and by its name in a request; empty while none is.
        self.spent = self.exhausted = ""

    @property
    def used(self) -> int:
        """How many distinct runs were asked for, and came to something."""
        return len(self._used)

    def affords(self, specs: Iterable[RunSpec]) -> bool:
        """Tell whether these may be driven; if not, :attr:`spent` says why."""
        if self._now_s() >= self._until_s:
            self.spent, self.exhausted = f"the time is over ({self._minutes:g} minutes)", "minutes"
            return False
        if self._most and len(self._used | {spec.key for spec in specs}) > self._most:
            self.spent, self.exhausted = f"the runs are used up ({self._most})", "runs"
            return False
        return True

    def observed(self, requests: Sequence[tuple[str, RunSpec]]) -> list[Observation]:
        """Return what comes of runs, each asked for by a case.

        Raises MtError: the stack died, or a dilemma cannot be staged.
        """
        owed = {spec.key: (case, spec) for case, spec in reversed(requests) if self._runs.known(spec) is None}
        fresh = [owed[key] for key in dict.fromkeys(spec.key for _, spec in requests) if key in owed]
        for (case, spec), observation in zip(fresh, self._drive([spec for _, spec in fresh]), strict=True):
            self._runs.add(spec, case, observation)
            self._used.add(spec.key)
            self._tell()
        self._used.update(spec.key for _, spec in requests)
        found = [self._runs.known(spec) for _, spec in requests]
        return [one for one in found if one is not None]


def settle(trials: Iterable[Trial], driving: Driving, enough: Callable[[Trial], bool]) -> None:
    """Give trials rounds in turn until each has enough of them, or the budget is spent."""
    waiting = deque(trial for trial in trials if not trial.ended)
    while waiting:
        batch: list[tuple[Trial, list[tuple[RunSpec, ...]]]] = []
        requests: list[tuple[str, RunSpec]] = []
        while waiting and len(requests) < BATCH:
            trial = waiting.popleft()
            due = trial.due()
            more = [(trial.name, spec) for specs in due for spec in specs]
            if driving.affords(spec for _, spec in (*requests, *more)):
                batch.append((trial, due))
                requests += more
            else:
                trial.ended = driving.spent
        _look(batch, driving.observed(requests) if requests else [])
        for trial, _ in batch:
            if enough(trial):
                trial.ended = ENOUGH
            elif not trial.ended:
                waiting.append(trial)


def _look(batch: Sequence[tuple[Trial, list[tuple[RunSpec, ...]]]], answers: Sequence[Observation]) -> None:
    left = iter(answers)
    for trial, due in batch:
        trial.take([tuple(next(left) for _ in specs) for specs in due])
