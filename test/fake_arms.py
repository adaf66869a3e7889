# SPDX-License-Identifier: Apache-2.0
"""Arms without a stack, and suites of tiny relations, for the tests of the run loops."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from mutations_for_tests import Shuffle
from recordings import bundles

from mt_nodes.base.errors import StackError
from mt_nodes.base.process_clock import process_time_s
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections, Diagnostics, Output
from mt_nodes.data.verdict import Judgement, Outcome, Pair, Verdict
from mt_nodes.engine.judging import Answer, AnswerStatus, Offer
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.play_settings import PlaySettings
from mt_nodes.engine.recorder import ExecutedPair
from mt_nodes.engine.series import SeriesVerdict
from mt_nodes.relations.checks.base import Check
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.mutations.lidar.points_permuted import PointsPermuted
from mt_nodes.relations.mutations.stream.identity import Identity
from mt_nodes.relations.pipeline import DerivedFollowup
from mt_nodes.relations.relation import Relation, Suite


@dataclass(frozen=True)
class NotFewer(Check):
    """As many obstacles as before, wherever they are."""

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        assert source.detections is not None and followup.detections is not None
        margin = len(followup.detections) - len(source.detections)
        outcome = Outcome.HOLDS if margin >= 0 else Outcome.VIOLATED
        return Judgement(outcome, measured=len(followup.detections), bound=len(source.detections), margin=margin)


def relation(name: str, *mutations: Mutation, check: Check | None = None, **rest: Any) -> Relation:
    return Relation(
        name, "necessary", "for tests", mutations or (Shuffle(every_third=False),), check or NotFewer(), **rest
    )


def suite(*relations: Relation) -> Suite:
    return Suite(relations, relation("identity", Identity()), relation("points_permuted", PointsPermuted()))


def seen(count: int, stamp_ns: int = 0) -> Output:
    return Output(detections=Detections.make("base_link", stamp_ns, np.zeros((count, 3))))


def answered(output: Output) -> Answer:
    return Answer(AnswerStatus.ANSWERED, output)


def silent(why: str = "no /obstacles within 1 s") -> Answer:
    return Answer.nothing(AnswerStatus.SILENT, why)


@dataclass(eq=False)
class Sent:
    """One input of an arm: what went out, as the how-many-th since the last restart, and when."""

    bundle: Bundle
    changed: frozenset[str]
    nth: int
    at_s: float
    delay_ns: int = 0


Behaviour = Callable[[Sent], "Answer | Exception"]


@dataclass(eq=False)
class FakeArm:
    """Answers as ``behave`` says, ``delay_s`` after sending; keeps what happened to it in ``events``."""

    name: str
    behave: Behaviour = lambda sent: answered(seen(len(sent.bundle.cloud())))
    delay_s: float = 0.0
    events: list[tuple[str, Any]] = field(default_factory=list)
    sent: list[Sent] = field(default_factory=list)
    passed: list[Sent] = field(default_factory=list)
    nth: int = 0
    #: Of each pass what it tells of errors after its last answer.
    tells_last: list[Diagnostics] = field(default_factory=list)

    def start(self) -> None:
        self.events.append(("start", None))

    def ready(self) -> None:
        self.events.append(("ready", None))

    def restart(self) -> None:
        self.events.append(("restart", None))
        self.nth = 0

    def begin_episode(self) -> None:
        self.events.append(("begin_episode", None))

    def final_diagnostics(self) -> Diagnostics | None:
        return self.tells_last.pop(0) if self.tells_last else None

    def pass_time(self, stamp_ns: int) -> None:
        self.events.append(("time", stamp_ns))

    def stop(self) -> None:
        self.events.append(("stop", None))

    def send(
        self,
        bundle: Bundle,
        changed: frozenset[str],
        source_ns: int | None = None,
        delay_ns: int = 0,
        late: Sequence[Bundle] = (),
    ) -> Sent:
        sent = Sent(bundle, changed, self.nth, process_time_s(), delay_ns)
        self.events.append(("send", (bundle.index, changed)))
        self.sent.append(sent)
        self.nth += 1
        return sent

    def publish_only(
        self,
        bundle: Bundle,
        changed: frozenset[str] = frozenset(),
        source_ns: int | None = None,
        delay_ns: int = 0,
    ) -> None:
        self.events.append(("pass", bundle.index))
        self.passed.append(Sent(bundle, changed, self.nth, process_time_s(), delay_ns))

    def wait(self, ticket: Sent, until_s: float | None = None) -> Answer | None:
        due_s = ticket.at_s + self.delay_s
        if until_s is not None and until_s < due_s:
            time.sleep(max(0.0, until_s - process_time_s()))
            return None
        time.sleep(max(0.0, due_s - process_time_s()))
        said = self.behave(ticket)
        if isinstance(said, Exception):
            raise said
        self.events.append(("answer", ticket.bundle.index))
        return said

    def count(self, event: str) -> int:
        return sum(name == event for name, _ in self.events)


class FakeRecorder:
    """Keeps verdicts and follow-ups; a pair that ends twice is an error at once, unless it is in ``before``."""

    def __init__(self, before: Iterable[str] = ()) -> None:
        self._before = set(before)
        self.fresh = not self._before
        self.lines: dict[str, Verdict] = {}
        self.followups: list[tuple[str, DerivedFollowup]] = []
        self.cases: list[ExecutedPair | None] = []
        self.judged: list[SeriesVerdict] = []
        self.deaths: list[StackError] = []
        self._from = (0, 0)

    def followup(self, offer: Offer, bundle: Bundle, derived: DerivedFollowup, made_ms: float) -> None:
        self.followups.append((str(offer.followup_pair(bundle)), derived))

    def done(self, pair: Pair) -> bool:
        return str(pair) in self._before or str(pair) in self.lines

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> list[Verdict]:
        self.cases.append(case)
        forgotten = [v.pair for v in verdicts if (v.pair.episode, v.pair.bundle or 0) < self._from]
        assert not forgotten, f"ended after they were to be forgotten: {forgotten}"
        return self._keep(verdicts)

    def _keep(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        fresh = [v for v in verdicts if str(v.pair) not in self._before]
        for verdict in fresh:
            assert str(verdict.pair) not in self.lines, f"{verdict.pair} ended twice"
            self.lines[str(verdict.pair)] = verdict
        return fresh

    def series(self, judged: Sequence[SeriesVerdict]) -> list[Verdict]:
        self.judged.extend(judged)
        return self._keep([verdict for verdict, _ in judged if str(verdict.pair) not in self.lines])

    def death(self, error: StackError) -> None:
        self.deaths.append(error)

    def forget_before(self, episode: int, bundle: int) -> None:
        self._from = (episode, bundle)

    @property
    def outcomes(self) -> dict[str, str]:
        return {pair: verdict.outcome.value for pair, verdict in self.lines.items()}

    def count(self) -> Counter[str]:
        return Counter(self.outcomes.values())


def pairs_owed(relations: Iterable[str], bundles: int, episode: int = 0) -> set[str]:
    """Every pair that a run over one episode owes."""
    names = list(relations)
    return {f"{episode}/{b}/{r}/0" for b in range(bundles) for r in names} | {
        f"{episode}/{b}/{role}/0@{r}" for b in range(bundles) for r in names for role in ("identity", "points_permuted")
    }


BUNDLES = bundles(4)


def run(
    suite_: Suite,
    source: FakeArm,
    followup: FakeArm | None = None,
    *,
    mode: str = "twin",
    stateless: bool = True,
    publishes_when_empty: bool = False,
    episodes: Sequence[Sequence[Bundle]] = (BUNDLES,),
    recorder: FakeRecorder | None = None,
    draws: int = 1,
) -> FakeRecorder:
    kept = recorder or FakeRecorder()
    loop = Lockstep(
        PlaySettings(
            suite_,
            7,
            mode=mode,
            stateless=stateless,
            publishes_when_empty=publishes_when_empty,
            draws=draws,
        ),
        kept,  # type: ignore[arg-type]
    )
    loop.run([lambda e=e: iter(e) for e in episodes], source, source if followup is None else followup)
    return kept
