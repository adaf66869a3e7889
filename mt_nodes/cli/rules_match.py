# SPDX-License-Identifier: Apache-2.0
"""``mt rules match BAG``."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.arguments import help_of, role_topics
from mt_nodes.cli import rules_plan
from mt_nodes.cli.replay_command import whole_number
from mt_nodes.cli.rules_models import add_embedding, add_eyes, eyes_of, indexer_of
from mt_nodes.cli.rules_store import add_store, ontology_of, opened
from mt_nodes.errors import ExitCode, UsageError
from mt_nodes.plan import ReplayRequest

if TYPE_CHECKING:
    from mt_nodes.rules.cases import Recording
    from mt_nodes.rules.matching import Choice, Matcher
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.scene import Scene
    from mt_nodes.rules.scene_by_model import SeenBy
    from mt_nodes.rules.store import Store
    from mt_nodes.rules.store_entry import Entry

#: Of candidates that were not chosen so many are told without ``-v``.
_TOLD = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules match my_bag --frame 12 --fact roads=intersection --fact weather=rain"
    add = parser.add_argument
    add("bags", type=Path, nargs="+", metavar="BAG", help="bag directory, .mcap, .db3 or ROS 1 .bag")
    frame = "frame in the middle of a case, numbered from 0; may be given again (default 1)"
    add("--frame", type=whole_number, action="append", default=[], metavar="N", help=frame)
    rules_plan.add_arguments(parser)
    add(
        "--fact", action="append", default=[], metavar="K=V", help="what you know of the scene, such as roads=crosswalk"
    )
    add("--utc-offset-h", type=float, metavar="H", help="local time where the bag was recorded, in hours from UTC")
    add("--region", default="", help="only relations of this region")
    stack = "only relations that can judge this stack; may be given again"
    add("--stack", action="append", default=[], metavar="NAME", help=stack)
    add("--origin", action="append", default=[], help="only what this read; may be given again")
    add("--nearest", type=whole_number, default=0, metavar="N", help="look at the N nearest only (default: all)")
    add("--seed", type=whole_number, default=0, help="what lots depend on (default %(default)s)")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=help_of(ReplayRequest)["topics"])
    add("--transforms", type=Path, metavar="FILE", help="YAML file of transforms that the bag lacks")
    add("--count", action="store_true", help="count the choice in the store, so that others are chosen next time")
    add(
        "--json", action="store_true", help="print one array: each case, its scene, and every candidate with the reason"
    )
    add_embedding(parser)
    add_eyes(parser)
    add_store(parser, "without: the store that ships", writes=True)


def run(args: argparse.Namespace) -> int:
    """Choose a relation for each case and say why; exit 3 if none applies to any."""
    if args.count and args.store is None:
        raise UsageError("--count: the shipped store is not written to; name one of your own by --store")
    if rules_plan.asked(args):
        return rules_plan.run(args)
    if len(args.bags) > 1:
        raise UsageError(f"got {len(args.bags)} bags, expected one; give several --frames to be cut into cases")
    ontology = ontology_of(args)
    with eyes_of(args, ontology) as seen_by:
        (recording,) = recordings(args, ontology, seen_by)
        scenes = _scenes(recording, args.frame or [1], hidden=hidden(args))
    with store_of(args, ontology) as store:
        choices = chooser(args, ontology, recording).plan(store, scenes)
        entries = {entry.index: entry for entry in store.entries()}
    if args.json:
        rows = [plain(choice, scenes[choice.case], entries) for choice in choices]
        print(json.dumps(rows, indent=2, ensure_ascii=False))
    else:
        for choice in choices:
            tell(args, choice, scenes[choice.case], entries)
    return int(ExitCode.PASS if any(c.index is not None for c in choices) else ExitCode.UNDECIDED)


def recordings(args: argparse.Namespace, ontology: Ontology, seen_by: SeenBy | None = None) -> list[Recording]:
    """Return the bags with what is known of them beforehand, and who looks at their pictures.

    Raises:
        UsageError: a fact or the file of transforms is none.
    """
    from mt_nodes.cli.mutate_command import settings
    from mt_nodes.rules.cases import Recording, facts
    from mt_nodes.transforms import load_transforms

    tree = load_transforms(args.transforms) if args.transforms else None
    told = facts(settings(args.fact, "--fact"), ontology)
    return [Recording(bag, role_topics(args.topic), tree, told, args.utc_offset_h, seen_by) for bag in args.bags]


def chooser(args: argparse.Namespace, ontology: Ontology, recording: Recording) -> Matcher:
    """Return what chooses relations for cases of a bag."""
    from mt_nodes.rules.cases import matcher
    from mt_nodes.stacks import load_stack

    asked = {"seed": args.seed, "limit": args.nearest, "region": args.region, "origins": tuple(args.origin)}
    return matcher(ontology, recording.sensors, [load_stack(name) for name in args.stack], **asked)


@contextmanager
def store_of(args: argparse.Namespace, ontology: Ontology) -> Iterator[Store]:
    """Yield what is counted in: the store itself only for ``--count``, a copy that is gone afterwards otherwise."""
    from mt_nodes.rules.shipped import scratch_store
    from mt_nodes.rules.store import Store

    with indexer_of(args) as indexer:
        if args.count:
            with Store(args.store, wait_s=args.wait, ontology=ontology, indexer=indexer) as store:
                yield store
            return
        with opened(args) as found:
            entries = found.entries()
        with scratch_store(entries, ontology, indexer) as store:
            yield store


def hidden(args: argparse.Namespace) -> bool:
    """Return whether nobody would see how it goes."""
    return bool(args.json) or not sys.stdout.isatty()


def _scenes(recording: Recording, frames: list[int], *, hidden: bool) -> dict[str, Scene]:
    from rich.progress import Progress

    with Progress(transient=True, disable=hidden) as progress:
        task = progress.add_task("frames", total=max(frames) + 2)
        return recording.scenes(frames, lambda read: progress.update(task, completed=read))


def plain(choice: Choice, scene: Scene, entries: dict[int, Entry]) -> dict[str, Any]:
    """Return a choice, all its candidates and its scene as JSON can hold them."""
    return {**choice.as_plain(), "relations": list(_ids(choice, entries)), "paper": scene.as_paper()}


def _ids(choice: Choice, entries: dict[int, Entry]) -> tuple[str, ...]:
    from mt_nodes.rules.shipped import ids_of

    return () if choice.index is None else ids_of(entries[choice.index])


def stack_asked(args: argparse.Namespace) -> str:
    """Return `mt replay`'s option for whom relations were matched: its default stack says no command."""
    return f"--stack {shlex.quote(args.stack[0]) if args.stack else 'STACK'}"


def tell(args: argparse.Namespace, choice: Choice, scene: Scene, entries: dict[int, Entry]) -> None:
    """Print a choice, its scene, and why others were not chosen."""
    from mt_nodes.cli.printing import heading, table, text

    heading(f"case {choice.case}")
    facts = [(name, _value(row["value"]), row["source"]) for name, row in scene.as_plain().items()]
    table(("scene", "is", "from"), facts)
    ids = _ids(choice, entries)
    if choice.index is not None:
        text(f"{entries[choice.index].text}\n  no. {choice.index}: {choice.why}")
    else:
        text(choice.why)
    if ids:
        text(f"  mt replay BAG --relations {ids[0]} {stack_asked(args)}")
    others = [c for c in choice.candidates if c.index != choice.index]
    for one in others if args.verbose else others[:_TOLD]:
        text(f"  not no. {one.index} ({entries[one.index].text}): {one.why}")
    if len(others) > _TOLD and not args.verbose:
        text(f"  and {len(others) - _TOLD} more; -v or --json tell them")


def _value(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.2f}"
    return ", ".join(map(str, value)) if isinstance(value, (list, dict)) else str(value)
