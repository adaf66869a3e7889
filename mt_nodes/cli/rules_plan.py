# SPDX-License-Identifier: Apache-2.0
"""``mt rules match BAG… --frames N --plan FILE``: whole bags cut into cases, each with the relation that fits it."""

from __future__ import annotations

import argparse
import json
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.whole_numbers import at_least_one, whole_number

if TYPE_CHECKING:
    from mt_nodes.engine.case_plan import PlannedCase
    from mt_nodes.rules.bag_cases import Recording
    from mt_nodes.rules.case_planning import CaseFrames
    from mt_nodes.rules.matching import Choice
    from mt_nodes.rules.store_entry import Entry

    Chosen = tuple[CaseFrames, int, Choice]

#: As in AutoMT's cases.
_FRAMES = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    add = parser.add_argument
    frames = f"cut whole bags into cases of N frames ({_FRAMES} with --plan)"
    add("--frames", type=at_least_one, metavar="N", help=frames)
    add(
        "--reference", type=whole_number, metavar="N", help="frame within a case that its scene is of (default: middle)"
    )
    add("--rounds", type=at_least_one, metavar="N", help="give each case a relation so often, counting on (default 1)")
    add("--plan", type=Path, metavar="FILE", help="write the cases to a YAML file for `mt replay --cases`")


def asked(args: argparse.Namespace) -> bool:
    """Return whether whole bags are to be cut into cases.

    Raises:
        UsageError: the options do not go together.
    """
    if not (args.frames or args.plan):
        if args.rounds is not None or args.reference is not None:
            raise UsageError("--rounds and --reference are of whole bags; give --frames N or --plan FILE, too")
        return False
    if args.frame:
        raise UsageError("--frame N looks at one case, --frames N cuts whole bags into cases; leave one out")
    if args.plan and args.plan.exists():
        raise UsageError(f"--plan {args.plan}: is there already, and a plan stays as it is; choose another name")
    return True


def run(args: argparse.Namespace) -> int:
    """Give every case a relation, write the plan, say why; exit 3 if none applies to any."""
    from mt_nodes.cli.rules_choice import chooser, hidden, recordings, store_of
    from mt_nodes.cli.rules_models import eyes_of
    from mt_nodes.cli.rules_store import ontology_of
    from mt_nodes.engine.case_plan import CasePlan, write_cases
    from mt_nodes.rules.case_planning import choose, cut, name_of

    frames = args.frames or _FRAMES
    reference = frames // 2 if args.reference is None else args.reference
    if not 0 <= reference < frames:
        raise UsageError(f"--reference: got {reference}, expected 0 to {frames - 1}")
    ontology = ontology_of(args)
    with eyes_of(args, ontology) as seen_by:
        bags = recordings(args, ontology, seen_by)
        with _progress(bags, hidden=hidden(args)) as progress:
            cuts = cut(bags, frames, reference, progress)
    matchers = [chooser(args, ontology, bag) for bag in bags]
    with store_of(args, ontology) as store, store.transaction():
        entries = {entry.index: entry for entry in store.entries()}
        found = choose(cuts, store, matchers, args.rounds or 1)
        beside = args.plan.with_name(f"{args.plan.stem}_relations") if args.plan else None
        chosen = {c.index: name_of(entries[c.index], ontology, beside) for _, _, c in found if c.index is not None}
        cases = [one.given("" if c.index is None else chosen[c.index], turn, c.why) for one, turn, c in found]
        if args.plan:
            write_cases(CasePlan(_made_by(args, bags, frames, reference), tuple(cases)), args.plan)
    if args.json:
        print(json.dumps(_plain(found, cases, entries), indent=2, ensure_ascii=False))
    else:
        _tell(args, found, cases, entries, bags, frames)
    return int(ExitCode.PASS if any(case.relation for case in cases) else ExitCode.UNDECIDED)


def _made_by(args: argparse.Namespace, bags: Sequence[Recording], frames: int, reference: int) -> dict[str, Any]:
    """Return how the cases were matched, in words that name no place of this machine."""
    from mt_nodes import __version__

    return {
        "command": "mt rules match",
        "version": __version__,
        "bags": [bag.bag.name for bag in bags],
        "store": args.store.name if args.store else "shipped",
        "region": args.region or "all",
        "stacks": [Path(name).name for name in args.stack],
        "facts": list(args.fact),
        "frames": frames,
        "reference": reference,
        "rounds": args.rounds or 1,
        "seed": args.seed,
        "embedded_by": args.embed or "latent semantic analysis",
        "seen_by": args.scene_model or "nobody",
    }


@contextmanager
def _progress(bags: Sequence[Recording], *, hidden: bool) -> Iterator[Any]:
    from rich.progress import Progress

    with Progress(transient=True, disable=hidden) as progress:
        tasks = [progress.add_task(bag.bag.name, total=bag.count) for bag in bags]
        yield lambda bag, read: progress.update(tasks[bag], completed=read)


def _plain(found: Sequence[Chosen], cases: Sequence[PlannedCase], entries: dict[int, Entry]) -> list[dict[str, Any]]:
    from mt_nodes.cli.rules_choice import plain

    where = ("bag", "first", "last", "draw", "relation")
    return [
        {**plain(choice, one.scene, entries), **{name: getattr(case, name) for name in where}}
        for (one, _, choice), case in zip(found, cases, strict=True)
    ]


def _tell(
    args: argparse.Namespace,
    found: Sequence[Chosen],
    cases: Sequence[PlannedCase],
    entries: dict[int, Entry],
    bags: Sequence[Recording],
    frames: int,
) -> None:
    from mt_nodes.base.wording import counted
    from mt_nodes.cli.rules_choice import stack_asked, tell
    from mt_nodes.cli.terminal import heading, text
    from mt_nodes.rules.case_planning import left_out

    for (one, turn, choice), case in zip(found, cases, strict=True):
        heading(f"{case.name}, frames {case.first} to {case.last}, draw {turn}: {case.relation or 'no relation'}")
        if args.verbose:
            tell(args, choice, one.scene, entries)
        else:
            text("  " + (f"{entries[choice.index].text}; {choice.why}" if choice.index is not None else choice.why))
    given = sum(bool(case.relation) for case in cases)
    text(f"{counted(len(cases), 'case')} of {counted(frames, 'frame')}: {given} with a relation")
    for why in left_out(bags, frames):
        text(f"  {why}")
    if args.plan and given:
        typed = shlex.join(["mt", "replay", *map(str, args.bags), "--cases", str(args.plan)])
        text(f"in {args.plan}; run it by: {typed} {stack_asked(args)}")
