# SPDX-License-Identifier: Apache-2.0
"""One replay from request to summary, whatever carries the messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import cannot_write, of_the_disk
from mt_nodes.base.errors import InfrastructureError, IsolationError, StackError, UsageError
from mt_nodes.base.processes import sigterm_interrupts
from mt_nodes.data.verdict import Outcome, Verdict
from mt_nodes.engine import callable_arm
from mt_nodes.engine.arm import Arm, await_ready, launch, restart
from mt_nodes.engine.finish import Tables
from mt_nodes.engine.first_pairs import FirstPairs
from mt_nodes.engine.followups import FollowupMaker, RecordedFollowups
from mt_nodes.engine.judging import Engine
from mt_nodes.engine.lockstep import Lockstep
from mt_nodes.engine.realtime import Realtime
from mt_nodes.engine.recorder import ExecutedPair, JournalRun, Progress, Recorder
from mt_nodes.engine.reduction.reduction import reducing
from mt_nodes.engine.summary.summary import RelationInfo
from mt_nodes.runs.replay.commands_file import CommandsFile
from mt_nodes.runs.replay.exploration import Exploration
from mt_nodes.runs.replay.explored_frames import ExploredFrames
from mt_nodes.runs.replay.replay_run import Run

Arms = tuple[Arm, Arm]
Show = Callable[[Sequence[Verdict], ExecutedPair], None]


def execute(
    run: Run,
    open_arms: Callable[[ExitStack], Arms],
    listen: Callable[[str], None],
    progress: Progress,
    show: Show = lambda verdicts, case: None,
) -> dict[str, Any]:
    """Run it, and return the summary; whatever ends it early is in the summary and in its exit code.

    Bundles that cannot be read end as ERROR, each with its reason, and the run goes on; damage of a bag is told after
    all that could be read of it was judged, and so was every other bag.
    Raises UsageError: the stack cannot be started as its file says; nothing was offered. InfrastructureError: the
    results cannot be written.

    Args:
        open_arms: makes the arms (the same one twice unless the mode is ``twin``) and puts their end on the stack.
        listen: called with each journal and ledger line, as it was written.
        progress: called with each group of verdicts.
        show: called with the verdicts of a pair and what they were judged by.
    """
    play = partial(_played, run, open_arms, progress)
    return record_run(run, play, listen, show, report=run.request.report)


def record_run(
    run: JournalRun,
    play: Callable[[Recorder], dict[str, Any]],
    listen: Callable[[str], None],
    show: Show,
    *,
    report: bool = True,
) -> dict[str, Any]:
    """Keep what is played, and return the summary; ``play`` returns what ended it early, see :func:`play_to_end`.

    Without a ``report`` the summary is all that is made at the end.
    Raises InfrastructureError: the results cannot be written.
    """
    try:
        with Recorder(run, listen, show) as recorder:
            return recorder.finish(_report_tables if report else None, **play(recorder))
    except OSError as error:
        if of_the_disk(error):
            raise cannot_write(run.out, error) from error
        raise


def _report_tables(out: Path, relations: Sequence[RelationInfo]) -> Tables:
    from mt_nodes.report.run_files import ReportTables  # the plotting library is heavy

    return ReportTables(out, relations)


def play_to_end(
    out: Path, begin: Callable[[ExitStack], Callable[[], None]], died: Callable[[StackError], None]
) -> dict[str, Any]:
    """Get ready with ``begin``, go on with what that returns, and return what ended it early.

    Raises UsageError: it could not even get ready.
    ``out``: results directory. ``begin``: gets ready; what it puts on the stack is done at the end. ``died``: called
    when the stack died; it keeps that, so that no resumed run ends as if nothing had been.
    """
    trouble: dict[str, Any] = {}
    ready = False
    try:
        with sigterm_interrupts(), ExitStack() as ending:
            play = begin(ending)
            ready = True
            play()
    except KeyboardInterrupt:
        trouble["interrupted"] = True
    except IsolationError as error:
        trouble["isolation"] = str(error)
    except InfrastructureError as error:
        if isinstance(error, StackError):
            died(error)
        trouble["infrastructure"] = str(error)
    except UsageError as error:
        if not ready:
            raise
        trouble["usage"] = str(error)
    except OSError as error:
        if not of_the_disk(error):
            raise
        trouble["infrastructure"] = str(cannot_write(out, error))
    return trouble


def _played(run: Run, open_arms: Callable[[ExitStack], Arms], progress: Progress, recorder: Recorder) -> dict[str, Any]:
    """Play every episode; return what ended the run early, and what of the bags is damaged."""

    def begin(ending: ExitStack) -> Callable[[], None]:
        source, followup = open_arms(ending)
        launch(source, followup)
        driver = _driver(run, recorder, progress, ending)  # while the stacks start
        await_ready(source, followup)

        def play() -> None:
            if run.request.first_pairs:
                _first_pairs(run, recorder, progress).run(run.episodes, source, followup)
                if run.request.only_first:
                    return
                if not run.stack.external:  # whatever still comes of these would be taken for answers of the whole run
                    restart(source, followup)
            driver.run(run.episodes, source, followup)

        return play

    trouble = play_to_end(run.out, begin, recorder.death)
    _tell_unreadable(run, recorder, progress)
    if run.damage.bags:
        trouble.setdefault("infrastructure", "; ".join(map(str, run.damage.bags.values())))
    return trouble


def _first_pairs(run: Run, recorder: Recorder, progress: Progress) -> Lockstep:
    """Return what plays the pairs that come before all others; the whole run then finds them judged."""
    first = FirstPairs.of(run.request, remembers=not run.stack.stateless)
    maker = FollowupMaker(run.suite, run.request.seed)
    settings = replace(run.settings, schedule=first, source_of_followups=maker, cpu=recorder.cpu)
    return Lockstep(settings, recorder, progress)


def _tell_unreadable(run: Run, recorder: Recorder, progress: Progress) -> None:
    engine = Engine(run.stack.publishes_when_empty)
    for found in run.damage.bundles.values():
        for offer in (offer for offer in run.offers if run.schedule.wants(offer, found.bundle)):
            verdicts = engine.without_followup(offer, found.bundle, Outcome.ERROR, str(found.error), sequences=True)
            progress(recorder.verdicts(verdicts, None))


def in_process_arms(run: Run, ending: ExitStack) -> Arms:
    """Return arms that call the stack's callable without topics, and put their end on the stack."""
    return callable_arm.in_process_arms(run.stack, run.inputs, run.request.mode, run.out, ending)


def _driver(run: Run, recorder: Recorder, progress: Progress, ending: ExitStack) -> Lockstep | Realtime | Exploration:
    request, settings = run.request, replace(run.settings, cpu=recorder.cpu)
    if isinstance(run.schedule, ExploredFrames):
        return Exploration(run, recorder, progress)
    if request.pace == "realtime":
        return Realtime(settings, recorder, progress)
    if run.only is not None:
        recorded = RecordedFollowups(run.offers[0].relation, Path(request.recorded), reducing(request))
        settings = replace(settings, source_of_followups=recorded)
    if run.plan is None:
        return Lockstep(settings, recorder, progress)
    return Lockstep(settings, recorder, progress, _tells_commands(run, ending))


def _tells_commands(run: Run, ending: ExitStack) -> Callable[[ExecutedPair], None]:
    """Return what keeps the commands of both arms in every frame of a case."""
    commands = CommandsFile(run.out)
    ending.callback(commands.close)

    def tell(case: ExecutedPair) -> None:
        names, answers = run.schedule.names(case.offer, case.source), (case.source_answer, case.followup_answer)
        commands.add(case.offer.followup_pair(case.source), names, *(answer.output for answer in answers))

    return tell
