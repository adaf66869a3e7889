# SPDX-License-Identifier: Apache-2.0
"""Cuts bags into cases and assigns each a relation: the contents of a case plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from mt_nodes.base.directories import cannot_write
from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.engine.case_plan import PlannedCase
from mt_nodes.rules.bag_cases import Recording
from mt_nodes.rules.matching import Choice, Matcher
from mt_nodes.rules.ontology import Ontology, load_ontology
from mt_nodes.rules.rule_store import Store
from mt_nodes.rules.scene import SceneFacts
from mt_nodes.rules.shipped_rules import ids_of, of_entry
from mt_nodes.rules.store_entry import Entry
from mt_nodes.rules.store_import import write_relation


@dataclass(frozen=True)
class CaseFrames:
    """Successive frames of a bag that get a relation; ``reference``: the frame of ``scene``."""

    name: str
    bag: int
    first: int
    last: int
    reference: int
    scene: SceneFacts

    def given(self, relation: str, draw: int, why: str) -> PlannedCase:
        """Return the case with a relation, and with the known facts of its scene."""
        known = {name: row for name, row in self.scene.as_plain().items() if row["value"] is not None}
        return PlannedCase(
            self.name,
            self.bag,
            self.first,
            self.last,
            draw,
            relation,
            facts={name: row["value"] for name, row in known.items()},
            sources={name: row["source"] for name, row in known.items()},
            why=why,
        )


def cut(
    recordings: Sequence[Recording],
    frames: int,
    reference: int,
    progress: Callable[[int, int], None] = lambda bag, read: None,
    limit: int | None = None,
) -> list[CaseFrames]:
    """Return the cases of all bags, ``frames`` long each; a shorter remainder of a bag is left out.

    Raises UsageError: no bag has enough frames for one. InfrastructureError: a bag is damaged.
    ``reference``: frame of a case that its scene describes. ``progress``: receives a bag's number and the number of its
    frames read.
    """
    planned = []
    for bag, (name, recording) in enumerate(zip(_names(recordings), recordings, strict=True)):
        firsts = range(0, min(recording.count, limit or recording.count) - frames + 1, frames)
        scenes = recording.scenes([first + reference for first in firsts], partial(progress, bag))
        for first, scene in zip(firsts, scenes.values(), strict=True):
            planned.append(CaseFrames(f"{name}/{first}", bag, first, first + frames - 1, first + reference, scene))
    if not planned:
        longest = max(recording.count for recording in recordings)
        raise UsageError(
            f"--frames {frames}: got {counted(longest, 'frame')} in the longest bag, less than one case; take fewer"
        )
    return planned


def left_out(recordings: Sequence[Recording], frames: int) -> list[str]:
    """Report for each bag the frames in no case."""
    rest = [(name, one.count, one.count % frames) for name, one in zip(_names(recordings), recordings, strict=True)]
    return [f"{name}: {counted(left, 'frame')} from {count - left} on left out" for name, count, left in rest if left]


def choose(
    cuts: Sequence[CaseFrames], store: Store, matchers: Sequence[Matcher], rounds: int
) -> list[tuple[CaseFrames, int, Choice]]:
    """Return the choices for each case in each round, and count them, all in one transaction.

    ``matchers``: by number of the bag. ``rounds``: how often each case gets a relation; earlier choices count.
    Raises InfrastructureError: the store cannot be written; nothing is counted.
    """
    found: list[tuple[CaseFrames, int, Choice]] = []
    with store.transaction():
        for turn in range(rounds):
            for bag, chooses in enumerate(matchers):
                own = [one for one in cuts if one.bag == bag]
                # Random choices depend on the name of a case, so they differ between rounds.
                named = {f"{one.name} round {turn}" if turn else one.name: one.scene for one in own}
                choices = chooses.plan(store, named)
                found += [(one, turn, replace(c, case=one.name)) for one, c in zip(own, choices, strict=True)]
    return found


def name_of(entry: Entry, ontology: Ontology, path: Path | None) -> str:
    """Return the name of a store's relation for `mt replay`.

    One that does not ship is written to the directory ``path`` (None: nowhere), and named by its file there.
    Raises InfrastructureError: the file cannot be written.
    """
    # With the user's own words, a relation may be shown in another way than in the package.
    if ontology == load_ontology() and (ids := ids_of(entry)):
        return ids[0]
    relation = replace(of_entry(entry).relation(ontology), id=f"relation_{entry.index}")
    if path is None:
        return relation.id
    try:
        path.mkdir(parents=True, exist_ok=True)
        return f"{path.name}/{write_relation(path, relation).name}"
    except OSError as error:
        raise cannot_write(path, error) from error


def _names(recordings: Sequence[Recording]) -> list[str]:
    """Return the name of each bag; those with equal names get a number."""
    names = [recording.bag.name for recording in recordings]
    return [f"{name}.{bag}" if names.count(name) > 1 else name for bag, name in enumerate(names)]
