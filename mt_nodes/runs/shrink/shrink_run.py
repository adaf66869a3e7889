# SPDX-License-Identifier: Apache-2.0
"""One shrinking from request to results, whatever carries the messages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import unused
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.jsonl import jsonable, read_result, write_result
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.stats.repeats import Confirm
from mt_nodes.engine.arm import start
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.recorder import Progress, Recorder
from mt_nodes.engine.summary.shrunk_headline import FILE
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay.execute import Arms, play_to_end, record_run
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.run_directory import RunDirectory
from mt_nodes.runs.shrink.shrinker import Budget, Shrunk
from mt_nodes.runs.shrink.subjects import ShrinkSession, ShrinkSettings, Subject, Tell, subject_of

#: What was asked, and what came of it.
REQUEST_FILE, RESULT_FILE = "shrink.json", FILE


@dataclass(frozen=True)
class ShrinkRequest(PlainData):
    """What was asked of ``mt shrink``.

    Attributes:
        directory: results of the run. pair: which one.
        transport, bag: see :meth:`mt_nodes.engine.recorded_pair.RecordedPair.request`.
        confirm: ``K/N``, empty for what the first plays advise.
    """

    directory: str
    pair: str
    transport: str = ""
    bag: str = ""
    confirm: str = ""
    plays: int = 500
    minutes: float | None = None


@dataclass(frozen=True, eq=False)
class ShrinkRun(RunDirectory[ShrinkRequest]):
    """A shrinking, checked: what cannot be made small was refused while making it.

    ``finished``: the pair. ``subject``: what is made small of it; the directory holds the run that plays it, too.
    """

    COMMAND, KEY, REQUEST = "mt shrink", "directory", ShrinkRequest

    finished: RecordedPair
    subject: Subject

    @classmethod
    def make(cls, request: ShrinkRequest, out: Path) -> ShrinkRun:
        """Find the pair, and make the run that plays it again.

        Raises MtError: the run, its bag or its stack is not what it was.
        """
        finished = RecordedPair.find(Path(request.directory), request.pair)
        finished.refuse_unless_violated()
        return cls(request, out, finished, subject_of(finished, request.transport, request.bag, out))

    @classmethod
    def create(cls, request: ShrinkRequest, out: str | None) -> ShrinkRun:
        """Check what is asked, make the results directory (a new one below that of the run) and note it there.

        Raises UsageError: the pair cannot be made small; says what to use instead. MtError: the run, its bag or its
        stack is not what it was.
        """
        name = request.pair.replace("/", "_")
        return super().create(request, out or str(unused(Path(request.directory) / "shrunk" / name)))

    @classmethod
    def load(cls, out: Path) -> ShrinkRun:
        """Make the one that :meth:`save` noted in a directory; ``run.json`` is that of the run that plays the pair."""
        return cls.make(cls.read_request(read_result(out / REQUEST_FILE), out), out)

    def at(self, out: Path) -> ShrinkRun:
        """Return it with another results directory."""
        return dataclasses.replace(self, out=out, subject=self.subject.at(out))

    def refuse_impossible(self) -> None:
        """Refuse a pair whose follow-up is not what it was."""
        if why := self.subject.refused(self.finished):
            raise UsageError(
                f"{self.request.directory}: the follow-up of pair '{self.request.pair}' cannot be made again bit for "
                f"bit: {why}; `mt reproduce` tells more"
            )

    def save(self) -> None:
        """Write what the directory of the run holds, and what was asked."""
        self.run.save()
        write_result(self.out / REQUEST_FILE, self.request.as_plain())

    @property
    def run(self) -> Run | ScenarioRun:
        """The run that plays the one pair again."""
        return self.subject.run

    @property
    def confirm(self) -> Confirm | None:
        """How often a smaller form must fail, None: what the first plays advise."""
        return Confirm.parse(self.request.confirm) if self.request.confirm else None


def carry_out(
    shrinking: ShrinkRun,
    open_arms: Callable[[ExitStack], Arms],
    listen: Callable[[str], None],
    progress: Progress,
    tell: Tell,
) -> dict[str, Any]:
    """Shrink, keep what came of it, and return what ``shrunk.json`` holds.

    Whatever ends it early (an interruption, a stack that died) is in it, and the smallest form so far is kept.
    Raises UsageError: the stack cannot be started as its file says. InfrastructureError: the results cannot be written.

    Args:
        open_arms: makes the arms and puts their end on the stack.
        listen: called with each journal and ledger line, as it was written.
        progress: called with each group of verdicts of a play.
        tell: called before each play, with its number and what is tried.
    """
    request, run = shrinking.request, shrinking.run
    sessions: list[ShrinkSession] = []

    def begin(ending: ExitStack) -> Callable[[], None]:
        arms = open_arms(ending)
        start(*arms)
        how = ShrinkSettings(Budget(request.plays, request.minutes), shrinking.confirm, tell)
        sessions.append(shrinking.subject.begin(arms, how, progress))
        return sessions[0].shrink

    # A shrinking is never resumed: its summary tells of a death.
    trouble = play_to_end(run.out, begin, lambda error: None)
    begun = sessions[0] if sessions else None
    result: Shrunk[Any, Any] = begun.result if begun else Shrunk()
    plain = {
        **{"schema": 1, "pair": request.pair, "of": str(shrinking.finished.directory.resolve())},
        **jsonable(result.as_plain()),
        **({"trouble": trouble} if trouble else {}),
        "results": str(run.out.resolve()),
    }
    if not trouble:  # before the report, which begins with it
        _write(run.out, {**plain, "exit_code": _exit_code(result)})
    summary = _record_smallest(run, begun, trouble, listen)
    plain["exit_code"] = int(summary["exit_code"]) if trouble else _exit_code(result)
    _write(run.out, plain)
    return plain


def _write(out: Path, plain: Mapping[str, Any]) -> None:
    write_result(out / RESULT_FILE, plain)


def _exit_code(result: Shrunk[Any, Any]) -> int:
    return int(ExitCode.PASS if result.best is not None else ExitCode.UNDECIDED)


def _record_smallest(
    run: Run | ScenarioRun, begun: ShrinkSession | None, trouble: dict[str, Any], listen: Callable[[str], None]
) -> dict[str, Any]:
    """Write the results directory of the smallest form, if there is one."""
    if begun is not None and begun.result.best is not None:
        run = begun.smallest()
        run.save()

    def play(recorder: Recorder) -> dict[str, Any]:
        if begun is not None:
            begun.record(recorder)
        return trouble

    return record_run(run, play, listen, lambda verdicts, case: None)
