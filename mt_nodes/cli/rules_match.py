# SPDX-License-Identifier: Apache-2.0
"""``mt rules match BAG``."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.arguments import help_of, role_topics
from mt_nodes.cli.replay_command import whole_number
from mt_nodes.cli.rules_store import add_store, ontology_of, opened
from mt_nodes.errors import ExitCode, UsageError
from mt_nodes.plan import ReplayRequest

if TYPE_CHECKING:
    from mt_nodes.rules.cases import Recording
    from mt_nodes.rules.matching import Choice
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.scene import Scene
    from mt_nodes.rules.store_entry import Entry

#: Of candidates that were not chosen so many are told without ``-v``.
_TOLD = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt rules match my_bag --frame 12 --fact roads=intersection --fact weather=rain"
    add = parser.add_argument
    add("bag", type=Path, metavar="BAG", help="bag directory, .mcap, .db3 or ROS 1 .bag")
    frame = "frame in the middle of a case, numbered from 0; may be given again (default 1)"
    add("--frame", type=whole_number, action="append", default=[], metavar="N", help=frame)
    add(
        "--fact", action="append", default=[], metavar="K=V", help="what you know of the scene, such as roads=crosswalk"
    )
    add("--utc-offset-h", type=float, metavar="H", help="local time where the bag was recorded, in hours from UTC")
    add("--region", default="", help="only relations of this region")
    add("--origin", action="append", default=[], help="only what this read; may be given again")
    add("--nearest", type=whole_number, default=0, metavar="N", help="look at the N nearest only (default: all)")
    add("--seed", type=whole_number, default=0, help="what lots depend on (default %(default)s)")
    add("--topic", action="append", default=[], metavar="ROLE=TOPIC", help=help_of(ReplayRequest)["topics"])
    add("--transforms", type=Path, metavar="FILE", help="YAML file of transforms that the bag lacks")
    add("--count", action="store_true", help="count the choice in the store, so that others are chosen next time")
    add(
        "--json", action="store_true", help="print one array: each case, its scene, and every candidate with the reason"
    )
    add_store(parser, "without: the store that ships", writes=True)


def run(args: argparse.Namespace) -> int:
    """Choose a relation for each case and say why; exit 3 if none applies to any."""
    from mt_nodes.cli.mutate_command import settings
    from mt_nodes.rules.cases import Recording, facts
    from mt_nodes.transforms import load_transforms

    if args.count and args.store is None:
        raise UsageError("--count: the shipped store is not written to; name one of your own by --store")
    ontology = ontology_of(args)
    tree = load_transforms(args.transforms) if args.transforms else None
    told = facts(settings(args.fact, "--fact"), ontology)
    recording = Recording(args.bag, role_topics(args.topic), tree, told, args.utc_offset_h)
    scenes = _scenes(recording, args.frame or [1], hidden=args.json or not sys.stdout.isatty())
    choices, entries = _choose(args, ontology, recording, scenes)
    if args.json:
        print(json.dumps([_plain(c, scenes, entries) for c in choices], indent=2, ensure_ascii=False))
    else:
        for choice in choices:
            _tell(choice, scenes[choice.case], entries, everything=args.verbose)
    return int(ExitCode.PASS if any(c.index is not None for c in choices) else ExitCode.UNDECIDED)


def _scenes(recording: Recording, frames: list[int], *, hidden: bool) -> dict[str, Scene]:
    from rich.progress import Progress

    with Progress(transient=True, disable=hidden) as progress:
        task = progress.add_task("frames", total=max(frames) + 2)
        return recording.scenes(frames, lambda read: progress.update(task, completed=read))


def _choose(
    args: argparse.Namespace, ontology: Ontology, recording: Recording, scenes: dict[str, Scene]
) -> tuple[list[Choice], dict[int, Entry]]:
    """Return what each case is given, and the relations by number; only ``--count`` changes a store."""
    from mt_nodes.rules.cases import matcher
    from mt_nodes.rules.shipped import scratch_store
    from mt_nodes.rules.store import Store

    asked = {"seed": args.seed, "limit": args.nearest, "region": args.region, "origins": tuple(args.origin)}
    chooses = matcher(ontology, recording.sensors, **asked)
    if args.count:
        with Store(args.store, wait_s=args.wait, ontology=ontology) as store:
            return chooses.plan(store, scenes), {entry.index: entry for entry in store.entries()}
    with opened(args) as found:
        entries = found.entries()
    with scratch_store(entries, ontology) as store:
        return chooses.plan(store, scenes), {entry.index: entry for entry in entries}


def _plain(choice: Choice, scenes: dict[str, Scene], entries: dict[int, Entry]) -> dict[str, Any]:
    return {
        **choice.as_plain(),
        "relations": list(_ids(choice, entries)),
        "paper": scenes[choice.case].as_paper(),
    }


def _ids(choice: Choice, entries: dict[int, Entry]) -> tuple[str, ...]:
    from mt_nodes.rules.shipped import ids_of

    return () if choice.index is None else ids_of(entries[choice.index])


def _tell(choice: Choice, scene: Scene, entries: dict[int, Entry], *, everything: bool) -> None:
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
        text(f"  mt replay BAG --relations {ids[0]}")
    others = [c for c in choice.candidates if c.index != choice.index]
    for one in others if everything else others[:_TOLD]:
        text(f"  not no. {one.index} ({entries[one.index].text}): {one.why}")
    if len(others) > _TOLD and not everything:
        text(f"  and {len(others) - _TOLD} more; -v or --json tell them")


def _value(value: Any) -> str:
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return f"{value:.2f}"
    return ", ".join(map(str, value)) if isinstance(value, (list, dict)) else str(value)
