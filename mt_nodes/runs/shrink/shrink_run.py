# SPDX-License-Identifier: Apache-2.0
"""One shrinking from request to results, whatever carries the messages."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base.directories import new_directory, unused, write_whole
from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.jsonl import jsonable
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.stats.repeats import Confirm
from mt_nodes.data.verdict import Outcome
from mt_nodes.engine.arm import start
from mt_nodes.engine.recorded_pair import RecordedPair
from mt_nodes.engine.recorder import Progress, Recorder
from mt_nodes.runs.loop.scenario_run import ScenarioRun
from mt_nodes.runs.replay.execute import Arms, recorded, troubles
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.shrink.shrinker import Budget, Shrunk
from mt_nodes.runs.shrink.subjects import ShrinkSession, ShrinkSettings, Subject, Tell, subject_of

#: What was asked, and what came of it.
ASKED, TOLD = "shrink.json", "shrunk.json"


@dataclass(frozen=True)
class ShrinkRequest(PlainData):
    """What was asked of ``mt shrink``.

    Attributes:
        directory: results of the run. pair: which one.
        transport, bag: see :meth:`mt_nodes.engine.recorded_pair.RecordedPair.request`.
        confirm: ``K/N``, empty for what the first plays advise.
        plays, minutes: budget.
    """

    directory: str
    pair: str
    transport: str = ""
    bag: str = ""
    confirm: str = ""
    plays: int = 500
    minutes: float | None = None


@dataclass(frozen=True, eq=False)
class ShrinkRun:
    """A shrinking, checked: what cannot be made small was refused while making it."""

    asked: ShrinkRequest
    finished: RecordedPair
    subject: Subject

    @property
    def run(self) -> Run | ScenarioRun:
        """The run that plays the one pair again."""
        return self.subject.run

    @property
    def out(self) -> Path:
        """Results directory."""
        return self.run.out

    @classmethod
    def create(cls, asked: ShrinkRequest, out: Path | None) -> ShrinkRun:
        """Check what is asked, make the results directory (a new one below that of the run) and note it there.

        Raises:
            UsageError: the pair cannot be made small; says what to use instead.
            MtError: the run, its bag or its stack is not what it was.
        """
        finished = RecordedPair.find(Path(asked.directory), asked.pair)
        refuse(finished)
        checked = cls._made(asked, finished, Path(asked.directory))
        if why := checked.subject.refused(finished):
            raise UsageError(
                f"{asked.directory}: the follow-up of pair '{asked.pair}' cannot be made again bit for bit: {why}; "
                "`mt reproduce` tells more"
            )
        name = asked.pair.replace("/", "_")
        place = new_directory(str(out or unused(finished.directory / "shrunk" / name)))
        made = dataclasses.replace(checked, subject=checked.subject.at(place))
        made.run.save()
        write_whole(place / ASKED, json.dumps(asked.as_plain(), indent=2) + "\n")
        return made

    @classmethod
    def load(cls, out: Path) -> ShrinkRun:
        """Make the one that :meth:`create` noted in a directory."""
        asked = ShrinkRequest.from_plain(json.loads((out / ASKED).read_text(encoding="utf-8")))
        return cls._made(asked, RecordedPair.find(Path(asked.directory), asked.pair), out)

    @classmethod
    def _made(cls, asked: ShrinkRequest, finished: RecordedPair, out: Path) -> ShrinkRun:
        return cls(asked, finished, subject_of(finished, asked.transport, asked.bag, out))

    @property
    def confirm(self) -> Confirm | None:
        """How often a smaller form must fail, None: what the first plays advise."""
        return Confirm.parse(self.asked.confirm) if self.asked.confirm else None


def refuse(finished: RecordedPair) -> None:
    """Refuse a pair that there is nothing to make small of.

    Raises:
        UsageError: it was not violated.
    """
    what = f"{finished.directory}: pair '{finished.pair}'"
    if (outcome := finished.verdict.outcome) is not Outcome.VIOLATED:
        raise UsageError(f"{what} ended as {outcome.value}, expected a VIOLATED one; pairs.csv lists them")


def carry_out(
    shrinking: ShrinkRun,
    open_arms: Callable[[ExitStack], Arms],
    listen: Callable[[str], None],
    progress: Progress,
    tell: Tell,
) -> dict[str, Any]:
    """Shrink, keep what came of it, and return what ``shrunk.json`` holds.

    Whatever ends it early (an interruption, a stack that died) is in it, and the smallest form so far is kept.

    Args:
        shrinking: what to do.
        open_arms: makes the arms and puts their end on the stack.
        listen: called with each journal and ledger line, as it was written.
        progress: called with each group of verdicts of a play.
        tell: called before each play, with its number and what is tried.

    Raises:
        UsageError: the stack cannot be started as its file says.
        InfrastructureError: the results cannot be written.
    """
    asked, run = shrinking.asked, shrinking.run
    kept: list[ShrinkSession] = []

    def begin(ending: ExitStack) -> Callable[[], None]:
        arms = open_arms(ending)
        start(*arms)
        how = ShrinkSettings(Budget(asked.plays, asked.minutes), shrinking.confirm, tell)
        kept.append(shrinking.subject.begin(arms, how, progress))
        return kept[0].go_on

    # A shrinking is never resumed: its summary tells of a death.
    trouble = troubles(run.out, begin, lambda error: None)
    begun = kept[0] if kept else None
    told: Shrunk[Any, Any] = begun.told if begun else Shrunk()
    summary = _kept(run, begun, trouble, listen)
    plain = {
        **{"schema": 1, "pair": asked.pair, "of": str(shrinking.finished.directory.resolve())},
        **jsonable(told.as_plain()),
        **({"trouble": trouble} if trouble else {}),
        "results": str(run.out.resolve()),
        "exit_code": _exit_code(told, summary, trouble),
    }
    write_whole(run.out / TOLD, json.dumps(plain, indent=2) + "\n")
    return plain


def _exit_code(told: Shrunk[Any, Any], summary: dict[str, Any], trouble: dict[str, Any]) -> int:
    if trouble:
        return int(summary["exit_code"])
    return int(ExitCode.PASS if told.best is not None else ExitCode.UNDECIDED)


def _kept(
    run: Run | ScenarioRun, begun: ShrinkSession | None, trouble: dict[str, Any], listen: Callable[[str], None]
) -> dict[str, Any]:
    """Write the results directory of the smallest form, if there is one."""
    if begun is not None and begun.told.best is not None:
        run = begun.smallest()
        run.save()

    def play(recorder: Recorder) -> dict[str, Any]:
        if begun is not None:
            begun.record(recorder)
        return trouble

    return recorded(run, play, listen, lambda verdicts, case: None)
