# SPDX-License-Identifier: Apache-2.0
"""One shrinking from request to results, whatever carries the messages."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.arms import start
from mt_nodes.directories import new_directory, unused, write_whole
from mt_nodes.errors import ExitCode, UsageError
from mt_nodes.finished import Finished
from mt_nodes.jsonl import jsonable
from mt_nodes.plan import Request
from mt_nodes.relations import Relation
from mt_nodes.replay import Arms, recorded, troubles
from mt_nodes.reproduce import prove
from mt_nodes.results import Recorder
from mt_nodes.runs import Run
from mt_nodes.shrinking.confirming import Confirm
from mt_nodes.shrinking.playing import Candidate, Played, Player
from mt_nodes.shrinking.reduction import FILE as REDUCTION
from mt_nodes.shrinking.shrinking import Budget, Shrinker, Shrunk
from mt_nodes.verdict import Outcome, Verdict

#: What was asked, what came of it, and the relation with the weakest change that still fails.
ASKED, TOLD, RELATION = "shrink.json", "shrunk.json", "relation.yaml"
Progress = Callable[[Sequence[Verdict]], None]


@dataclass(frozen=True)
class ShrinkRequest(Request):
    """What was asked of ``mt shrink``.

    Attributes:
        directory: results of the run. pair: which one.
        transport, bag: see :meth:`mt_nodes.finished.Finished.request`.
        confirm: ``K/N``, empty for what the first plays advise.
        plays, minutes: budget.
    """

    directory: str
    pair: str
    transport: str = ""
    bag: str = ""
    confirm: str = ""
    plays: int = 500
    minutes: float = 60.0


@dataclass(frozen=True, eq=False)
class ShrinkRun:
    """A shrinking, checked: what cannot be made small was refused while making it."""

    asked: ShrinkRequest
    finished: Finished
    run: Run

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
        finished = Finished.find(Path(asked.directory), asked.pair)
        refuse(finished)
        checked = cls._made(asked, finished, Path(asked.directory))
        if not (proof := prove(checked.run, finished)).same:
            why = "; ".join(proof.why) or "it came to another SHA-256"
            raise UsageError(
                f"{asked.directory}: the follow-up of pair '{asked.pair}' cannot be made again bit for bit: {why}; "
                "`mt reproduce` tells more"
            )
        name = asked.pair.replace("/", "_")
        place = new_directory(str(out or unused(finished.directory / "shrunk" / name)))
        made = dataclasses.replace(checked, run=dataclasses.replace(checked.run, out=place))
        made.run.save()
        write_whole(place / ASKED, json.dumps(asked.as_plain(), indent=2) + "\n")
        return made

    @classmethod
    def load(cls, out: Path) -> ShrinkRun:
        """Make the one that :meth:`create` noted in a directory."""
        asked = ShrinkRequest.from_plain(json.loads((out / ASKED).read_text(encoding="utf-8")))
        return cls._made(asked, Finished.find(Path(asked.directory), asked.pair), out)

    @classmethod
    def _made(cls, asked: ShrinkRequest, finished: Finished, out: Path) -> ShrinkRun:
        return cls(asked, finished, Run.make(finished.request(asked.transport, asked.bag), out))

    @property
    def confirm(self) -> Confirm | None:
        """How often a smaller form must fail, None: what the first plays advise."""
        return Confirm.parse(self.asked.confirm) if self.asked.confirm else None


def refuse(finished: Finished) -> None:
    """Refuse a pair that cannot be made small, and say what to use instead.

    Raises:
        UsageError: it was not violated, or is no pair of a replay.
    """
    what = f"{finished.directory}: pair '{finished.pair}'"
    if finished.driven:
        raise UsageError(
            f"{what} is a pair of drives; what changes there is in the scenario: take actors or weather out of its "
            "file, and drive it with `mt scenario FILE`"
        )
    if finished.live:
        raise UsageError(
            f"{what} is of a run of `mt live`, whose stack and input are gone; record the topics (`ros2 bag record`), "
            "`mt replay` the bag, and shrink that run's pair"
        )
    if (outcome := finished.verdict.outcome) is not Outcome.VIOLATED:
        raise UsageError(f"{what} ended as {outcome.value}, expected a VIOLATED one; pairs.csv lists them")


def carry_out(
    shrinking: ShrinkRun,
    open_arms: Callable[[ExitStack], Arms],
    listen: Callable[[str], None],
    progress: Progress,
    tell: Callable[[int, str], None],
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
    asked, run, told = shrinking.asked, shrinking.run, Shrunk()

    def begin(ending: ExitStack) -> Callable[[], None]:
        nonlocal told
        arms = open_arms(ending)
        start(*arms)
        player = Player(run, arms, progress)
        budget = Budget(asked.plays, asked.minutes)
        shrinker = Shrinker(player, budget, shrinking.confirm, lambda words: tell(player.plays + 1, words))
        told = shrinker.told
        return shrinker.shrink

    trouble = troubles(run.out, begin)
    summary = _kept(shrinking, told, trouble, listen)
    plain = {
        **{"schema": 1, "pair": asked.pair, "of": str(shrinking.finished.directory.resolve())},
        **jsonable(told.as_plain()),
        **({"trouble": trouble} if trouble else {}),
        "results": str(run.out.resolve()),
        "exit_code": _exit_code(told, summary, trouble),
    }
    write_whole(run.out / TOLD, json.dumps(plain, indent=2) + "\n")
    return plain


def _exit_code(told: Shrunk, summary: dict[str, Any], trouble: dict[str, Any]) -> int:
    if trouble:
        return int(summary["exit_code"])
    return int(ExitCode.PASS if told.best is not None else ExitCode.UNDECIDED)


def _kept(shrinking: ShrinkRun, told: Shrunk, trouble: dict[str, Any], listen: Callable[[str], None]) -> dict[str, Any]:
    """Write the results directory of the smallest form."""
    run, best = shrinking.run, told.best
    if told.played is not None and not told.played.whole:
        told.notes.append("the window is long: of its follow-ups only the last are recorded")
    if best is not None:
        run = _final(run, best)
        run.save()

    def play(recorder: Recorder) -> dict[str, Any]:
        (told.played or Played()).record(recorder)
        return trouble

    return recorded(run, play, listen, lambda verdicts, case: None)


def _final(run: Run, best: Candidate) -> Run:
    """Return the run of the smallest form, with its relation and what is left of its input in files."""
    out, request = run.out.resolve(), run.request
    names = request.relations
    if best.relation.role == "relation":
        write_relation(out / RELATION, best.relation)
        names = (str(out / RELATION),)
    best.left.save(out / REDUCTION)
    final = dataclasses.replace(request, relations=names, shrunk=str(out / REDUCTION), recorded=str(out))
    return Run.make(final, run.out)


def write_relation(path: Path, relation: Relation) -> None:
    """Write a relation as a file that :func:`mt_nodes.relations.load_relation` reads."""
    plain = {key: value for key, value in relation.as_plain().items() if value is not None}
    write_whole(path, yaml.safe_dump(jsonable(plain), sort_keys=False, allow_unicode=True, width=120))
