# SPDX-License-Identifier: Apache-2.0
"""``mt suggest BAG``: which relations suit a stack and a bag."""

from __future__ import annotations

import argparse
import dataclasses
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.wording import counted, first_sentence
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import add_fields, at_least_one, put_out, request_of, settings
from mt_nodes.data.datasets.dataset_name import RECORDING_HELP
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations.default_relations import RELATION_WORDS

if TYPE_CHECKING:
    from mt_nodes.runs.replay.replay_run import Run
    from mt_nodes.runs.suggestion import Suggestion

#: Frames on which relations are tried by default: a stack that remembers needs the first ones to settle.
FRAMES = 6
#: A suggestion has so many relations at most by default, and so many at most at all.
MOST, LIMIT = 12, 15
#: Names of what was left out for one reason that are printed; --out and --json have all.
NAMES = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt suggest my_bag --stack my_stack.yaml --out suite.yaml"
    request = ReplayRequest(bags=())
    add = parser.add_argument
    add("bag", metavar="BAG", help=RECORDING_HELP)
    add_fields(parser, request, "stack", "stack_settings")
    choose_from = f"choose from these: {RELATION_WORDS} (default all)"
    add_fields(parser, request, "relations", relations={"default": ("all",), "help": choose_from})
    add(
        "--frames",
        type=at_least_one,
        default=FRAMES,
        metavar="N",
        help="try on the first N frames (default %(default)s)",
    )
    add(
        "--most", type=at_least_one, default=MOST, metavar="N", help="suggest N relations at most (default %(default)s)"
    )
    add_fields(parser, request, "seed", "topics", "transforms", "qos")
    about = "write the suite, for --relations FILE of mt replay and others"
    add("--out", type=Path, metavar="FILE", help=about)
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Try relations on some frames and print a suite; return 3 if none decides anything."""
    from mt_nodes.runs.suggestion import HEADER_START, SuiteSearch
    from mt_nodes.stacks.stack import load_stack

    if args.out and args.out.suffix not in (".yaml", ".yml"):
        raise UsageError(f"--out {args.out}: expected a file that ends in .yaml")
    if args.out and args.out.exists() and not args.out.read_text(encoding="utf-8").startswith(HEADER_START):
        raise UsageError(f"--out {args.out}: is there already, and not from `mt suggest`; choose another name")
    if args.most > LIMIT:
        raise UsageError(
            f"--most: got {args.most}, expected 1 to {LIMIT}; `mt replay --relations all` runs all that fit"
        )
    stack = load_stack(args.stack, settings(args.stack_settings))
    search = SuiteSearch(stack, args.relations, args.most)
    with tempfile.TemporaryDirectory(prefix="mt_suggest_") as place:
        trials = _Trials(args, "inprocess" if stack.callable else "ros", Path(place))
        suggestion = search.run(trials.play)
    if notes := trials.notes(suggestion):
        suggestion = dataclasses.replace(suggestion, notes=(*suggestion.notes, *notes))
    if args.out and suggestion.relations:
        command = shlex.join(("mt", "suggest", args.bag, "--stack", args.stack))
        args.out.write_text(suggestion.as_yaml(command), encoding="utf-8")
    put_out(args.json, suggestion.as_plain(), lambda: _print(suggestion, trials.about, args))
    return int(ExitCode.PASS if suggestion.relations else ExitCode.UNDECIDED)


class _Trials:
    """Replays the first frames of the bag with some relations, again and again."""

    def __init__(self, args: argparse.Namespace, transport: str, place: Path) -> None:
        self._args, self._transport, self._place = args, transport, place
        self._runs: list[Run] = []
        self._warned: set[str] = set()

    def play(self, relations: Sequence[str]) -> dict[str, Any]:
        """Replay the first frames with these relations, and return the summary."""
        from mt_nodes.api.replays import carry_out
        from mt_nodes.base.environment import keep_freed_memory
        from mt_nodes.cli.terminal import progress_bar
        from mt_nodes.runs.replay.replay_run import Run
        from mt_nodes.runs.run_execution import PairCounter

        request = request_of(
            ReplayRequest,
            self._args,
            **{"bags": (self._args.bag,), "relations": tuple(relations), "limit": self._args.frames, "report": False},
            **{"transport": self._transport, "topics": role_topics(self._args.topics)},
            stack_settings=settings(self._args.stack_settings),
        )
        run = Run.create(request, str(self._place / str(len(self._runs))))
        self._runs.append(run)
        keep_freed_memory()
        with progress_bar("{task.completed}/{task.total} pairs", hidden=self._args.json) as progress:
            task = progress.add_task(f"trying {counted(len(relations), 'relation')}", total=run.pairs_to_come)

            def show(done: int, total: int, violated: int) -> None:
                progress.update(task, completed=done)

            return dict(carry_out(run, PairCounter(run.pairs_to_come, show, self._warn)).summary)

    def _warn(self, warning: str) -> None:
        """Print a warning once: it is the same in each trial."""
        if warning not in self._warned:
            self._warned.add(warning)
            print(f"mt: warning: {warning}", file=sys.stderr)

    @property
    def about(self) -> str:
        """What the bag and the stack are to each other."""
        if not self._runs:
            return ""
        run, source = self._runs[0], self._runs[0].sources[0]
        topics = ", ".join(
            f"{role} {', '.join(source.roles[role])}" for role in run.stack.inputs if role in source.roles
        )
        frames = counted(source.info[source.lead].count, "frame")
        return f"{self._args.bag}: {frames}; {topics}; stack '{run.stack.name}' answers {', '.join(run.stack.answers)}"

    def notes(self, suggestion: Suggestion) -> list[str]:
        """Return what the length of the bag means for a verdict."""
        if not self._runs or not suggestion.relations:
            return []
        source = self._runs[0].sources[0]
        frames = source.info[source.lead].count
        chosen = {one.id for one in suggestion.relations}
        needed = max(r.min_decided for run in self._runs for r in run.suite.relations if r.id in chosen)
        return [f"the bag has {counted(frames, 'frame')}; a PASS needs {needed}"] if frames < needed else []


def _print(suggestion: Suggestion, about: str, args: argparse.Namespace) -> None:
    from mt_nodes.cli.terminal import clipped, heading, paged, paragraph, text
    from mt_nodes.runs.relation_choice import left_out_lines

    paragraph(about)
    for line in left_out_lines(suggestion.left_out, NAMES):
        clipped(line)
    if suggestion.left_out and not args.out:
        text("--out FILE and --json name all of these")
    if not suggestion.relations:
        heading("\nno relation decides anything here")
    else:
        title = (
            f"\n{counted(len(suggestion.relations), 'relation')} for stack '{suggestion.stack}', by the frames tried:"
        )
        texts = {r.id: (first_sentence(r.because), r.because) for r in suggestion.relations}
        rows = [(r.id, r.family, r.counts, texts[r.id]) for r in suggestion.relations]
        paged([(title, ("name", "family", "frames", "what it is"), rows)])
    for note in suggestion.notes:
        text(f"note: {note}")
    if suggestion.relations:
        text(f"next: {_next(suggestion, args)}")


def _next(suggestion: Suggestion, args: argparse.Namespace) -> str:
    named = str(args.out) if args.out else ",".join(one.word for one in suggestion.relations)
    topics = [word for topic in args.topics for word in ("--topic", topic)]
    topics += [word for setting in args.stack_settings for word in ("--set", setting)]
    transforms = ["--transforms", args.transforms] if args.transforms else []
    return shlex.join(["mt", "replay", args.bag, "--stack", args.stack, "--relations", named, *topics, *transforms])
