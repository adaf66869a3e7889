# SPDX-License-Identifier: Apache-2.0
"""One search from its trials to a confirmed violation and the ordinary results of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from typing import Any, NoReturn

from mt_nodes.base.errors import ExitCode, InfrastructureError, StackError
from mt_nodes.base.jsonl import LineFile, jsonable, read_lines, write_result
from mt_nodes.base.stats.repeats import Confirm, counted_out
from mt_nodes.data.messages import Bundle, Episode
from mt_nodes.data.verdict import SCHEMA, Pair, Verdict
from mt_nodes.engine.arm import start
from mt_nodes.engine.journal import refuse_other_condition
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.recorder import Progress, no_progress
from mt_nodes.engine.schedule import Schedule
from mt_nodes.engine.summary.deaths import Deaths, death_line
from mt_nodes.relations.relation import Relation, Suite
from mt_nodes.report.search_page import write_search_page
from mt_nodes.runs.campaign.search.search_run import CONFIRMED, SUMMARY, TRIALS, SearchRun
from mt_nodes.runs.campaign.search.search_strategy import SearchResult, seek
from mt_nodes.runs.campaign.search.search_summary import summed
from mt_nodes.runs.campaign.search.trial import Confirmation, Trial
from mt_nodes.runs.campaign.search.trial_journal import PlayRelation, TrialJournal
from mt_nodes.runs.replay.execute import Arms, execute, play_to_end
from mt_nodes.runs.replay.replay_bench import CachedEpisode, PlayResult, ReplayBench
from mt_nodes.runs.replay.replay_run import Run


class Player:
    """Plays relations on the bundles of a run, judged as in a replay; each play is given all bundles.

    ``run``: whose bags, stack, seed and mode they are. ``tapes``: the run's episodes. ``progress``: called with each
    group of verdicts, as they come.
    """

    def __init__(self, run: Run, tapes: Sequence[CachedEpisode], arms: Arms, progress: Progress = no_progress) -> None:
        self._run, self._tapes, self._bench = run, tapes, ReplayBench(run.stack, arms, progress)

    def play(self, relation: Relation, draws: int = 1) -> list[Verdict]:
        """Return the verdicts of a relation on every bundle, ``draws`` follow-ups each."""
        offered = tuple(Offer(relation, (relation,), draw) for draw in range(draws))
        return self._played(self._suite(relation), offered, self._tapes).collected

    def violates(self, relation: Relation, pair: Pair) -> bool:
        """Play one pair, of the relation or of the control that is judged by its check, and tell if it is violated."""
        suite = self._suite(relation)
        return self._played(suite, offers(suite, only=pair), self._before(relation, pair)).violated(pair)

    def control(self, pair: Pair) -> Pair:
        """Return the pair of the control on the input of a pair."""
        return Pair(pair.episode, pair.bundle, self._run.suite.control.id, f"0@{pair.relation}")

    def _suite(self, relation: Relation) -> Suite:
        return replace(self._run.suite, relations=(relation,))

    def _before(self, relation: Relation, pair: Pair) -> list[Episode]:
        """The bundles that a pair depends on, and its own."""
        back = max((m.needs_history for m in (*relation.mutate, *relation.baseline)), default=0)
        looks_back = "camera" in self._run.stack.topics and any(m.draw_history for m in relation.mutate)
        first = (pair.bundle or 0) - back if self._run.stack.stateless and not looks_back else 0
        episodes = [[b for b in tape if b.episode == pair.episode] for tape in self._tapes]
        if pair.bundle is not None:
            episodes = [[b for b in bundles if first <= b.index <= (pair.bundle or 0)] for bundles in episodes]
        return [_episode(bundles) for bundles in episodes if bundles]

    def _played(self, suite: Suite, offered: tuple[Offer, ...], episodes: Sequence[Episode]) -> PlayResult:
        settings = replace(self._run.settings, suite=suite, schedule=_Offered(offered))
        return self._bench.play(PlayResult(), settings, episodes)


def _episode(bundles: Iterable[Bundle]) -> Episode:
    def episode() -> Iterator[Bundle]:
        return iter(bundles)

    return episode


class _Offered(Schedule):
    """Offers nothing but these, on every bundle."""

    def __init__(self, offered: tuple[Offer, ...]) -> None:
        super().__init__()
        self._offered = offered

    def offers(self, suite: Suite, draws: int = 1, only: Pair | None = None) -> tuple[Offer, ...]:
        return self._offered


#: Opens the arms of a replay, and puts their end on the stack.
OpenArms = Callable[[Run, ExitStack], Arms]
#: Of the trials that violate so many are tried to confirm, the weakest first.
CANDIDATES = 5


class _Journal:
    """``search.jsonl``: condition, trials, confirmations."""

    def __init__(self, run: SearchRun) -> None:
        self._file = LineFile(run.out / TRIALS)
        lines = list(read_lines(self._file.path))
        condition = jsonable({"schema": SCHEMA, "type": "condition", **run.condition})
        if lines:
            refuse_other_condition(self._file.path, lines[0], condition)
        else:
            self._file.append(condition)
        self.trials = [line for line in lines if line["type"] == "trial"]
        self._confirmed = {line["trial"]: line for line in lines if line["type"] == "confirmation"}
        self.deaths = Deaths()
        for line in lines:
            self.deaths.take(line)

    def trial(self, trial: Trial) -> None:
        """Append a trial."""
        self._file.append(trial.as_plain())

    def confirmation(self, number: int, make: Callable[[], Confirmation]) -> Confirmation:
        """Return the confirmation of a trial, made now unless it is there."""
        if line := self._confirmed.get(number):
            return Confirmation(**{k: v for k, v in line.items() if k not in ("schema", "type")})
        confirmation = make()
        self._file.append({"schema": SCHEMA, "type": "confirmation", **asdict(confirmation)})
        return confirmation

    def death(self, error: StackError) -> None:
        """Append that the stack died."""
        self._file.append(line := death_line(error))
        self.deaths.take(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _StackNeeded(Exception):
    """The journal does not hold all that is to be played."""


class _Search:
    """The state of one search: what was played, and what of it was confirmed."""

    def __init__(self, run: SearchRun, show: Callable[[Trial], None], progress: Callable[[Any], None]) -> None:
        self._run, self._show, self._progress = run, show, progress
        self.sought: SearchResult | None = None
        self.confirmations: list[Confirmation] = []
        self.played: TrialJournal | None = None
        self.deaths = Deaths()

    def begin(self, open_arms: OpenArms, ending: ExitStack) -> Callable[[], None]:
        """Start the arms, unless the journal holds all that is to be played; return what is left to do."""
        replay, journal = self._run.run, _Journal(self._run)
        ending.callback(journal.close)
        self.deaths = journal.deaths
        tapes = [CachedEpisode(episode) for episode in replay.episodes]
        # Read to their ends, so that what cannot be read is told of a search that plays nothing any more, too.
        if not sum(1 for tape in tapes for _ in tape):
            raise InfrastructureError(f"{', '.join(replay.request.bags)}: no bundle could be read")
        try:
            self._go(journal, _needs_stack, _needs_stack, _needs_stack)
            return lambda: None
        except _StackNeeded:
            arms = open_arms(replay, ending)
        start(*arms)
        return partial(self._with, Player(replay, tapes, arms, self._progress), journal)

    def _with(self, player: Player, journal: _Journal) -> None:
        request = self._run.request

        def tell(trial: Trial) -> None:
            journal.trial(trial)
            self._show(trial)

        def play(relation: Relation) -> list[list[Verdict]]:
            return [player.play(relation, request.replay.draws) for _ in range(request.repeats)]

        self._go(journal, play, tell, partial(_confirmed, player, ask=Confirm.parse(request.confirm)))

    def _go(
        self,
        journal: _Journal,
        play: PlayRelation,
        tell: Callable[[Trial], None],
        confirm: Callable[[Relation, Trial], Confirmation],
    ) -> None:
        run, self.confirmations = self._run, []
        self.played = TrialJournal(run.relation, run.axes, play, run.request.trials, journal.trials, tell)
        self.sought = seek(self.played, run.axes, run.places, run.run.request.seed, run.request.tolerance)
        for trial in self.played.violated[:CANDIDATES]:
            make = partial(confirm, self.played.relation(trial), trial)
            self.confirmations.append(journal.confirmation(trial.number, make))
            if self.confirmations[-1].confirmed:
                return

    def died(self, error: StackError) -> None:
        """Keep that the stack died."""
        journal = _Journal(self._run)
        journal.death(error)
        journal.close()
        self.deaths = journal.deaths

    @property
    def found(self) -> Trial | None:
        """The weakest violation that was confirmed."""
        confirmed = next((c.trial for c in self.confirmations if c.confirmed), None)
        return None if confirmed is None or self.played is None else self.played.trials[confirmed]


def search(
    run: SearchRun,
    open_arms: OpenArms,
    show: Callable[[Trial], None] = lambda trial: None,
    progress: Callable[[Any], None] = lambda verdicts: None,
) -> dict[str, Any]:
    """Search, and return the summary; whatever ends it early is in the summary and in its exit code.

    Raises UsageError: the stack cannot be started as its file says, or the journal is of another search.
    InfrastructureError: the results cannot be written.

    Args:
        run: what to do; of one that was interrupted, the trials that it has are not played again.
        open_arms: opens the arms, once for all trials and once for the replay of what was found.
        show: called with each trial that was played.
        progress: called with each group of verdicts.
    """
    state = _Search(run, show, progress)
    trouble = play_to_end(run.out, lambda ending: state.begin(open_arms, ending), state.died)
    if unread := _unread(run.run):
        trouble.setdefault("infrastructure", unread)
    replayed: Mapping[str, Any] | None = None
    if state.found is not None and state.played is not None and not trouble:
        replayed = _replayed(run, state.played.relation(state.found), open_arms, progress)
    if deaths := state.deaths.plain:
        trouble["deaths"] = deaths
    trials = () if state.played is None else tuple(state.played.trials)
    summary = summed(run, trials, state.sought, state.confirmations, state.found, replayed, **trouble)
    write_result(run.out / SUMMARY, jsonable(summary))
    write_search_page(run.out)
    return summary


def _needs_stack(*_: object) -> NoReturn:
    raise _StackNeeded


def _confirmed(player: Player, relation: Relation, trial: Trial, ask: Confirm) -> Confirmation:
    """Play the pair of a trial again, and the control on its input."""
    pair = Pair.parse(trial.pair)
    violated, control = (
        counted_out(partial(player.violates, relation, one), ask.plays).failed for one in (pair, player.control(pair))
    )
    return Confirmation(trial.number, violated, ask.plays, control, ask.fails)


def _replayed(
    run: SearchRun, relation: Relation, open_arms: OpenArms, progress: Callable[[Any], None]
) -> Mapping[str, Any]:
    """Return the summary of the ordinary replay of what was found; one that came to its end is not made again."""
    from mt_nodes.engine.finish import read_summary

    if (run.out / CONFIRMED / SUMMARY).exists():
        summary: Mapping[str, Any] = read_summary(run.out / CONFIRMED)
        if summary["exit_code"] in (ExitCode.PASS, ExitCode.FAIL, ExitCode.UNDECIDED):
            return summary
    replay = run.replayed(run.write_relation(relation))
    return execute(replay, partial(open_arms, replay), lambda line: None, progress)


def _unread(run: Run) -> str:
    """What of the bags could not be read; empty: nothing."""
    bags = [str(error) for error in run.damage.bags.values()]
    bundles = [str(found.error) for found in run.damage.bundles.values()]
    return "; ".join((*bags, *bundles[:3], *([f"and {len(bundles) - 3} bundles more"] if len(bundles) > 3 else ())))
