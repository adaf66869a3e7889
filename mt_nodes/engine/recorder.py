# SPDX-License-Identifier: Apache-2.0
"""What a run leaves on disk: journal, ledger, evidence while it goes on; summary and tables at its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mt_nodes.base.background import Background
from mt_nodes.base.errors import StackError
from mt_nodes.data.cdr.output_wires import wires_of
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.verdict import Outcome, Pair, Verdict
from mt_nodes.engine.evidence import evidence_path, write_evidence
from mt_nodes.engine.evidence_limit import EvidenceLimit
from mt_nodes.engine.finish import Summary, Tables, finish
from mt_nodes.engine.journal import Journal, read_journal
from mt_nodes.engine.judging import Answer, Offer
from mt_nodes.engine.ledger import Ledger
from mt_nodes.engine.pair_pictures import write_view
from mt_nodes.engine.pair_view import evidence_file
from mt_nodes.engine.processor_time import ProcessorTime
from mt_nodes.engine.schedule import EVERYTHING, Schedule
from mt_nodes.engine.score_file import ScoreFile
from mt_nodes.engine.series import SeriesVerdict
from mt_nodes.engine.series_tables import series_file, write_stretches
from mt_nodes.engine.stage_times import StageTimes
from mt_nodes.engine.summary.claim_sums import ClaimVerdict
from mt_nodes.engine.summary.score_range import score_line
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.engine.used_intensities import UsedIntensities
from mt_nodes.engine.worst import WorstSoFar
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.pipeline import DerivedFollowup
from mt_nodes.relations.relation import CONTROL, Suite
from mt_nodes.stacks.stack import Stack

#: Returns what is made of the journal of a results directory and its relations beside the summary.
MakeTables = Callable[[Path, Sequence[RelationInfo]], Tables]
#: Called with each group of verdicts.
Progress = Callable[[Sequence[Verdict]], None]


def no_progress(verdicts: Sequence[Verdict]) -> None:
    """Show nobody what was judged."""


@dataclass(frozen=True, eq=False)
class ExecutedPair:
    """One pair as it was: both inputs, what was done, both answers; what evidence is made of.

    ``baseline`` is what the source arm was given in place of the source, None where that was the source itself.
    ``sent`` is all that went to the follow-up arm, with delays in ns; ``followup`` is the first of it, which is judged.
    """

    offer: Offer
    source: Bundle
    followup: Bundle
    effects: Effects
    source_answer: Answer
    followup_answer: Answer
    baseline: Bundle | None = None
    sent: tuple[tuple[int, Bundle], ...] = ()

    @property
    def given(self) -> Bundle:
        """What the source arm was given."""
        return self.source if self.baseline is None else self.baseline


class JournalRun(Protocol):
    """What must be known of a run to keep it."""

    @property
    def out(self) -> Path:
        """Results directory."""

    @property
    def suite(self) -> Suite:
        """What is offered."""

    @property
    def stack(self) -> Stack:
        """What is under test."""

    @property
    def only(self) -> Pair | None:
        """The one pair that is judged, None: all."""

    @property
    def waivers(self) -> str:
        """File of violations that are accepted, empty when there is none."""

    @property
    def condition(self) -> dict[str, Any]:
        """What the journal begins with."""

    @property
    def most_evidence(self) -> int | None:
        """Of how many violated pairs of each relation evidence is kept, None: of all."""


class ResultSink(Protocol):
    """What takes in what happens in a run: on disk (:class:`Recorder`), or in memory for one trial of many."""

    @property
    def fresh(self) -> bool:
        """Whether nothing was judged before: the run is no resumed one."""

    def followup(self, offer: Offer, bundle: Bundle, derived: DerivedFollowup, made_ms: float) -> None:
        """Take a follow-up that goes out."""

    def done(self, pair: Pair) -> bool:
        """Tell whether nothing more is owed for a pair."""

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> list[Verdict]:
        """Take verdicts, and return those that are new."""

    def series(self, series_verdicts: Sequence[SeriesVerdict]) -> list[Verdict]:
        """Take verdicts over sequences, and return those that are new."""

    def death(self, error: StackError) -> None:
        """Take that the stack died, or raised an exception at some pairs."""


class Recorder:
    """Takes in what happens in a run and keeps it; a context manager."""

    def __init__(
        self,
        run: JournalRun,
        listen: Callable[[str], None],
        show: Callable[[Sequence[Verdict], ExecutedPair], None] = lambda verdicts, case: None,
    ) -> None:
        self._run, self._listen, self._show = run, listen, show
        self._journal = Journal(run.out / "result.jsonl")
        self._ledger, self._scores = Ledger(run.out), ScoreFile(run.out)
        self._evidence = Background()
        self._limit = EvidenceLimit(run.most_evidence, self._pairs_with_evidence())
        self._worst = WorstSoFar()
        self._times = StageTimes()
        #: Of a loop that measures it.
        self.cpu = ProcessorTime()
        self._intensities = UsedIntensities(run.out)
        #: Whether nothing was judged before: the run is no resumed one.
        self.fresh = not len(self._journal)
        self._journal.condition(run.condition)

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self._journal.close()
        self._ledger.close()
        self._scores.close()
        self._evidence.close()

    def followup(self, offer: Offer, bundle: Bundle, derived: DerivedFollowup, made_ms: float) -> None:
        """Record a follow-up that goes out."""
        pair = offer.followup_pair(bundle)
        milder = derived.baseline
        baseline = None if milder is None else (offer.relation.baseline, milder.draws, milder.followup)
        line = self._ledger.followup(pair, offer.relation.mutate, derived.draws, derived.followup, baseline)
        self._times.made(offer.relation.id, made_ms)
        self._intensities.note(bundle)
        if line is not None:
            self._listen(line)

    def done(self, pair: Pair) -> bool:
        """Tell whether a run that is resumed owes nothing more for a pair: verdict and, if violated, evidence."""
        outcome = self._journal.outcome(pair)
        if outcome is not Outcome.VIOLATED:
            return outcome is not None
        return self._has_evidence(pair) or not self._limit.has_room(pair)

    def verdicts(self, verdicts: Sequence[Verdict], case: ExecutedPair | None) -> list[Verdict]:
        """Journal verdicts; keep the evidence of violated ones, and what a picture takes of the worst so far.

        Returns those that the journal did not have: a resumed run judges some pairs again, but never journals them.
        """
        owed = [v for v in verdicts if not self.done(v.pair)]
        fresh = [v for v in owed if v.pair not in self._journal]
        if case is not None and fresh and case.offer.relation.id == CONTROL and case.offer.draw == 0:
            self._note_scores(case)
        for verdict in fresh:
            self._listen(self._journal.verdict(verdict))
        if case is not None:
            self._keep(owed, case)
        return fresh

    def claim(self, verdict: ClaimVerdict) -> None:
        """Journal what a claim comes to on a drive, unless that is there already."""
        if (line := self._journal.claim(verdict)) is not None:
            self._listen(line)

    def _note_scores(self, case: ExecutedPair) -> None:
        """Keep the scores of a source answer: once a bundle, as every bundle is offered the control."""
        bundle = case.source
        line = score_line((bundle.episode, bundle.index), case.source_answer.output, self._run.stack.scores)
        if line is not None and (text := self._scores.append(line)) is not None:
            self._listen(text)

    def series(self, series_verdicts: Sequence[SeriesVerdict]) -> list[Verdict]:
        """Journal verdicts over sequences; keep what violated ones were judged by. Returns those that are new."""
        for verdict, stretches in series_verdicts:
            if not self.done(verdict.pair) and self._takes_evidence(verdict):
                self.later(write_stretches, series_file(self._run.out, verdict.pair), stretches)
        return self.verdicts([verdict for verdict, _ in series_verdicts], None)

    def episode(self, pair: Pair, draws: Sequence[Draw], sha256: str, about: Mapping[str, Any]) -> None:
        """Record what a follow-up of the closed loop drove; see :meth:`mt_nodes.engine.ledger.Ledger.episode`."""
        if (line := self._ledger.episode(pair, draws, sha256, about)) is not None:
            self._listen(line)

    def forget_before(self, episode: int, bundle: int) -> None:
        """Forget pairs before a bundle of an episode, so that memory does not grow with a run that is never resumed."""
        self._journal.forget_before(episode, bundle)
        self._ledger.forget_before(episode, bundle)

    def death(self, error: StackError) -> None:
        """Keep that the stack died."""
        self._listen(self._journal.death(error))

    def later(self, job: Callable[..., None], *args: Any) -> None:
        """Have something written that the run need not wait for."""
        self._evidence.do(job, *args)

    def drives(
        self, verdicts: Sequence[Verdict], answer_ms: Sequence[float], write: Callable[[Path, Pair], None]
    ) -> list[Verdict]:
        """Journal verdicts over drives, and have the evidence of violated ones written. Returns those that are new."""
        self._times.answered_all(answer_ms)
        for verdict in verdicts:
            if not self.done(verdict.pair) and self._takes_evidence(verdict):
                self._evidence.do(write, evidence_path(self._run.out, verdict.pair), verdict.pair)
        return self.verdicts(verdicts, None)

    def _takes_evidence(self, verdict: Verdict) -> bool:
        """Return whether a pair's evidence is kept, and count it."""
        return self._wants_evidence(verdict) and self._limit.take(verdict.pair)

    def _wants_evidence(self, verdict: Verdict) -> bool:
        return verdict.pair == self._run.only or (verdict.outcome is Outcome.VIOLATED and self._run.only is None)

    def _has_evidence(self, pair: Pair) -> bool:
        return any(path.exists() for path in (evidence_path(self._run.out, pair), series_file(self._run.out, pair)))

    def _pairs_with_evidence(self) -> Iterator[Pair]:
        """Yield the violated pairs of the journal whose evidence is kept already."""
        for line in read_journal(self._run.out / "result.jsonl"):
            if line.get("outcome") == Outcome.VIOLATED.value and self._has_evidence(pair := Pair.parse(line["pair"])):
                yield pair

    def _keep(self, verdicts: Sequence[Verdict], case: ExecutedPair) -> None:
        self._show(verdicts, case)
        if (answer_ms := case.followup_answer.output.answer_ms) is not None:
            self._times.answered(case.offer.relation.id, answer_ms)
        for verdict in verdicts:
            if not self._wants_evidence(verdict):
                continue
            # The view first: to a resumed run, a pair with evidence is complete.
            if self._worst.takes(verdict.as_plain()):
                self._evidence.do(self._keep_view, verdict, case)
            if self._takes_evidence(verdict):
                self._evidence.do(self._keep_evidence, verdict, case)

    def finish(self, make_tables: MakeTables | None = None, **trouble: Any) -> Summary:
        """Sum up, and return the summary.

        ``make_tables``: returns what else is made of the journal, of a results directory and its relations.
        ``trouble``: what ended the run early.
        """
        self._evidence.wait()
        infos = [RelationInfo.of(r.as_plain()) for r in self._run.suite.relations]
        return finish(
            self._run.out,
            infos,
            tables=make_tables and make_tables(self._run.out, infos),
            waivers=Path(self._run.waivers) if self._run.waivers else None,
            latency_ms=self._times.latency_ms,
            work_s=self._times.work_s,
            cpu_s=self.cpu.by_relation_s,
            ego_motion=sorted(self._ledger.ego_motion),
            **trouble,
        )

    def _keep_evidence(self, verdict: Verdict, case: ExecutedPair) -> None:
        answers = (("source", case.source_answer), ("followup", case.followup_answer))
        topics = self._run.stack.output_topics
        wires = {a: answer.wires or wires_of(answer.output, topics, verdict.stamp_ns) for a, answer in answers}
        path = evidence_path(self._run.out, verdict.pair)
        write_evidence(path, verdict.pair, case.source, case.followup, wires, case.baseline, case.sent)

    def _keep_view(self, verdict: Verdict, case: ExecutedPair) -> None:
        judge = next(r for r in case.offer.judges if r.id == verdict.pair.judged_for)
        outputs = (case.source_answer.output, case.followup_answer.output)
        write_view(
            evidence_file(self._run.out, verdict.pair),
            *(case.given, case.followup),
            outputs=outputs,
            effects=case.effects,
            check=judge.check,
            detail=verdict.judgement.detail,
        )


def owed(recorder: ResultSink, offer: Offer, episode: Episode, schedule: Schedule = EVERYTHING) -> bool:
    """Tell whether a run owes anything for an offer over an episode; unless it is a resumed one it owes all."""
    if recorder.fresh:
        return True
    bundles = (bundle for bundle in schedule.until_end(offer, episode) if schedule.wants(offer, bundle))
    return any(not recorder.done(pair) for bundle in bundles for pair in offer.owed(bundle))
