# SPDX-License-Identifier: Apache-2.0
"""What the commands share that choose relations of rules for recordings: the bags, the store, and what was chosen."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.rules_models import indexer_of
from mt_nodes.cli.rules_store import opened

if TYPE_CHECKING:
    from mt_nodes.rules.bag_cases import Recording
    from mt_nodes.rules.matching import Choice, Matcher
    from mt_nodes.rules.ontology import Ontology
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.scene import SceneFacts
    from mt_nodes.rules.scene_by_model import SeenBy
    from mt_nodes.rules.store_entry import Entry

#: Of candidates that were not chosen so many are told without ``-v``.
_TOLD = 5


def recordings(args: argparse.Namespace, ontology: Ontology, seen_by: SeenBy | None = None) -> list[Recording]:
    """Return the bags with what is known of them beforehand, and who looks at their pictures.

    Raises:
        UsageError: a fact or the file of transforms is none.
    """
    from mt_nodes.cli.mutate_command import settings
    from mt_nodes.data.transforms import load_transforms
    from mt_nodes.rules.bag_cases import Recording, facts

    tree = load_transforms(args.transforms) if args.transforms else None
    told = facts(settings(args.fact, "--fact"), ontology)
    return [Recording(bag, role_topics(args.topic), tree, told, args.utc_offset_h, seen_by) for bag in args.bags]


def chooser(args: argparse.Namespace, ontology: Ontology, recording: Recording) -> Matcher:
    """Return what chooses relations for cases of a bag."""
    from mt_nodes.rules.bag_cases import matcher
    from mt_nodes.stacks.stack import load_stack

    asked = {"seed": args.seed, "limit": args.nearest, "region": args.region, "origins": tuple(args.origin)}
    return matcher(ontology, recording.sensors, [load_stack(name) for name in args.stack], **asked)


@contextmanager
def store_of(args: argparse.Namespace, ontology: Ontology) -> Iterator[Store]:
    """Yield what is counted in: the store itself only for ``--count``, a copy that is gone afterwards otherwise."""
    from mt_nodes.rules.rule_store import Store
    from mt_nodes.rules.shipped_rules import scratch_store

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


def plain(choice: Choice, scene: SceneFacts, entries: dict[int, Entry]) -> dict[str, Any]:
    """Return a choice, all its candidates and its scene as JSON can hold them."""
    return {**choice.as_plain(), "relations": list(_ids(choice, entries)), "paper": scene.as_paper()}


def _ids(choice: Choice, entries: dict[int, Entry]) -> tuple[str, ...]:
    from mt_nodes.rules.shipped_rules import ids_of

    return () if choice.index is None else ids_of(entries[choice.index])


def stack_asked(args: argparse.Namespace) -> str:
    """Return `mt replay`'s option for whom relations were matched: its default stack says no command."""
    return f"--stack {shlex.quote(args.stack[0]) if args.stack else 'STACK'}"


def tell(args: argparse.Namespace, choice: Choice, scene: SceneFacts, entries: dict[int, Entry]) -> None:
    """Print a choice, its scene, and why others were not chosen."""
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
