# SPDX-License-Identifier: Apache-2.0
"""Relations for the cases of recordings: what ``mt rules match`` and ``mt rules match --frames N --plan FILE`` share.

The latter cuts whole bags into cases, and gives each the relation that fits it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.base.wording import counted
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import at_least_one, settings, whole_number
from mt_nodes.cli.rules_models import indexer_of, scene_reader_of
from mt_nodes.cli.rules_store import ontology_of, open_store

if TYPE_CHECKING:
    from mt_nodes.engine.case_plan import PlannedCase
    from mt_nodes.rules.bag_cases import Recording
    from mt_nodes.rules.case_planning import CaseFrames
    from mt_nodes.rules.matching import Choice, Matcher
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.scene import SceneFacts
    from mt_nodes.rules.scene_by_model import SeenBy
    from mt_nodes.rules.store_entry import Entry

    Chosen = tuple[CaseFrames, int, Choice]

#: Frames of a case, as in AutoMT.
_FRAMES = 10
#: Printed candidates that were not chosen; -v prints all.
_MAX_CANDIDATES = 5


def recordings(args: argparse.Namespace, ontology: Ontology, scene_reader: SeenBy | None = None) -> list[Recording]:
    """Return the bags with the facts that the user knows, and the model that describes their images.

    Raises UsageError: a fact, a detector or the file of transforms is wrong.
    """
    from mt_nodes.data.transforms import load_transforms
    from mt_nodes.rules.bag_cases import Recording, facts
    from mt_nodes.rules.scene_detector import SceneDetector

    tree = load_transforms(args.transforms) if args.transforms else None
    known, topics = facts(settings(args.fact, "--fact"), ontology), role_topics(args.topic)
    beside = tuple(map(SceneDetector.named, args.detector))
    return [Recording(bag, topics, tree, known, args.utc_offset_h, scene_reader, beside) for bag in args.bags]


def matcher_of(args: argparse.Namespace, ontology: Ontology, recording: Recording) -> Matcher:
    """Return the matcher that chooses relations for cases of a bag."""
    from mt_nodes.rules.bag_cases import matcher
    from mt_nodes.stacks.stack import load_stack

    options = {"seed": args.seed, "limit": args.nearest, "region": args.region, "origins": tuple(args.origin)}
    return matcher(ontology, recording.sensors, [load_stack(name) for name in args.stack], **options)


@contextmanager
def store_of(args: argparse.Namespace, ontology: Ontology) -> Iterator[Store]:
    """Yield the store for ``--count``, which writes to it, else a temporary copy."""
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.shipped_rules import scratch_store

    with indexer_of(args) as indexer:
        if args.count:
            with Store(args.store, wait_s=args.wait, ontology=ontology, indexer=indexer) as store:
                yield store
            return
        with open_store(args) as store:
            entries = store.entries()
        with scratch_store(entries, ontology, indexer) as copy:
            yield copy


def hidden(args: argparse.Namespace) -> bool:
    """Return whether to show no progress bar."""
    return bool(args.json) or not sys.stdout.isatty()


def choice_as_plain(choice: Choice, scene: SceneFacts, entries: dict[int, Entry]) -> dict[str, Any]:
    """Return a choice with its candidates and its scene as plain data."""
    return {**choice.as_plain(), "relations": list(_ids(choice, entries)), "paper": scene.as_paper()}


def _ids(choice: Choice, entries: dict[int, Entry]) -> tuple[str, ...]:
    from mt_nodes.rules.shipped_rules import ids_of

    return () if choice.index is None else ids_of(entries[choice.index])


def _stack_option(args: argparse.Namespace) -> str:
    """Return the option of `mt replay` for the stack, whose default gives no command."""
    return f"--stack {shlex.quote(args.stack[0]) if args.stack else 'STACK'}"


def print_choice(args: argparse.Namespace, choice: Choice, scene: SceneFacts, entries: dict[int, Entry]) -> None:
    """Print a choice, its scene, and why other relations were not chosen."""
    from mt_nodes.cli.terminal import heading, table, text

    heading(f"case {choice.case}")
    facts = [(name, _value(row["value"]), row["source"]) for name, row in scene.as_plain().items()]
    table(("scene", "is", "from"), facts)
    ids = _ids(choice, entries)
    if choice.index is not None:
        text(f"{entries[choice.index].text}\n  no. {choice.index}: {choice.why}")
    else:
        text(choice.why)
    if ids:
        text(f"  mt replay BAG --relations {ids[0]} {_stack_option(args)}")
    others = [c for c in choice.candidates if c.index != choice.index]
    for one in others if args.verbose else others[:_MAX_CANDIDATES]:
        text(f"  not no. {one.index} ({entries[one.index].text}): {one.why}")
    if len(others) > _MAX_CANDIDATES and not args.verbose:
        text(f"  and {len(others) - _MAX_CANDIDATES} more; -v or --json shows them")


def _value(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.2f}"
    return ", ".join(map(str, value)) if isinstance(value, (list, dict)) else str(value)


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for whole bags."""
    add = parser.add_argument
    frames = f"cut whole bags into cases of N frames (default {_FRAMES} with --plan)"
    add("--frames", type=at_least_one, metavar="N", help=frames)
    add(
        "--reference",
        type=whole_number,
        metavar="N",
        help="frame of a case that its scene is taken from (default: the middle one)",
    )
    add(
        "--rounds",
        type=at_least_one,
        metavar="N",
        help="choose N relations for each case, one after another (default 1)",
    )
    add("--plan", type=Path, metavar="FILE", help="write the cases to a YAML file for `mt replay --cases`")


def is_for_whole_bags(args: argparse.Namespace) -> bool:
    """Return whether the options ask for whole bags, cut into cases.

    Raises UsageError: the options do not go together.
    """
    if not (args.frames or args.plan):
        if args.rounds is not None or args.reference is not None:
            raise UsageError("--rounds and --reference are for whole bags; give --frames N or --plan FILE, too")
        return False
    if args.frame:
        raise UsageError("--frame N is for one case, --frames N and --plan FILE for whole bags; leave one out")
    if args.plan and args.plan.exists():
        raise UsageError(f"--plan {args.plan}: exists already; choose another name")
    return True


def match_bags(args: argparse.Namespace) -> int:
    """Choose a relation for every case, write the plan, print why; return 3 if no relation applies to any case."""
    from mt_nodes.engine.case_plan import CasePlan, write_cases
    from mt_nodes.rules.case_planning import choose, cut, name_of

    frames = args.frames or _FRAMES
    reference = frames // 2 if args.reference is None else args.reference
    if not 0 <= reference < frames:
        raise UsageError(f"--reference: got {reference}, expected 0 to {frames - 1}")
    ontology = ontology_of(args)
    with scene_reader_of(args, ontology) as scene_reader:
        bags = recordings(args, ontology, scene_reader)
        with _progress(bags, hidden=hidden(args)) as progress:
            cuts = cut(bags, frames, reference, progress)
    matchers = [matcher_of(args, ontology, bag) for bag in bags]
    with store_of(args, ontology) as store, store.transaction():
        entries = {entry.index: entry for entry in store.entries()}
        found = choose(cuts, store, matchers, args.rounds or 1)
        relations_dir = args.plan.with_name(f"{args.plan.stem}_relations") if args.plan else None
        chosen = {
            c.index: name_of(entries[c.index], ontology, relations_dir) for _, _, c in found if c.index is not None
        }
        cases = [one.given("" if c.index is None else chosen[c.index], turn, c.why) for one, turn, c in found]
        if args.plan:
            write_cases(CasePlan(_origin(args, bags, frames, reference), tuple(cases)), args.plan)
    if args.json:
        print(json.dumps(_plain(found, cases, entries), indent=2, ensure_ascii=False))
    else:
        _print_plan(args, found, cases, entries, bags, frames)
    return int(ExitCode.PASS if any(case.relation for case in cases) else ExitCode.UNDECIDED)


def _origin(args: argparse.Namespace, bags: Sequence[Recording], frames: int, reference: int) -> dict[str, Any]:
    """Return how the cases were matched, without paths of this machine."""
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
        "detectors": [Path(name).name for name in args.detector],
    }


@contextmanager
def _progress(bags: Sequence[Recording], *, hidden: bool) -> Iterator[Any]:
    from rich.progress import Progress

    with Progress(transient=True, disable=hidden) as progress:
        tasks = [progress.add_task(bag.bag.name, total=bag.count) for bag in bags]
        yield lambda bag, read: progress.update(tasks[bag], completed=read)


def _plain(found: Sequence[Chosen], cases: Sequence[PlannedCase], entries: dict[int, Entry]) -> list[dict[str, Any]]:
    where = ("bag", "first", "last", "draw", "relation")
    return [
        {**choice_as_plain(choice, one.scene, entries), **{name: getattr(case, name) for name in where}}
        for (one, _, choice), case in zip(found, cases, strict=True)
    ]


def _print_plan(
    args: argparse.Namespace,
    found: Sequence[Chosen],
    cases: Sequence[PlannedCase],
    entries: dict[int, Entry],
    bags: Sequence[Recording],
    frames: int,
) -> None:
    from mt_nodes.cli.terminal import heading, text
    from mt_nodes.rules.case_planning import left_out

    for (one, turn, choice), case in zip(found, cases, strict=True):
        heading(f"{case.name}, frames {case.first} to {case.last}, draw {turn}: {case.relation or 'no relation'}")
        if args.verbose:
            print_choice(args, choice, one.scene, entries)
        else:
            text("  " + (f"{entries[choice.index].text}; {choice.why}" if choice.index is not None else choice.why))
    given = sum(bool(case.relation) for case in cases)
    text(f"{counted(len(cases), 'case')} of {counted(frames, 'frame')}: {given} with a relation")
    for why in left_out(bags, frames):
        text(f"  {why}")
    if args.plan and given:
        command = shlex.join(["mt", "replay", *map(str, args.bags), "--cases", str(args.plan)])
        text(f"plan: {args.plan}; run it with: {command} {_stack_option(args)}")
