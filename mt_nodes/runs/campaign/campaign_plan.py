# SPDX-License-Identifier: Apache-2.0
"""From a campaign to its plan: drives, cells, and how many pairs each of their items owes."""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_nodes.base import plugins
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.params import plain
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.wording import counted
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.transforms import TransformTree, load_transforms
from mt_nodes.engine.compatibility import check_needs, check_requirements
from mt_nodes.engine.plan import ReplayRequest, check_request
from mt_nodes.engine.waivers import load_waivers
from mt_nodes.relations.relation import Suite, load_suite, sham_for
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.campaign.item import CampaignItem, Drive
from mt_nodes.runs.campaign.relation_variants import Variant, relations_for, variants, version_of
from mt_nodes.runs.relation_choice import left_out_lines
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import Stack, load_stack

#: Among the versions of a cell; no relation can be called so.
STACK = "@stack"


@dataclass(frozen=True)
class Cell(PlainData):
    """One stack × one seed: a results directory.

    ``request``: what all its items share; relations by id, no bag. ``texts``: YAML of the relations that do not ship,
    by id. ``versions``: SHA-256 by id, and of :data:`STACK` and files.
    """

    name: str
    request: ReplayRequest
    texts: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def relations(self) -> tuple[str, ...]:
        """Ids of all that is offered."""
        return self.request.relations

    def item(self, drive: Drive, relations: Sequence[str] = ()) -> CampaignItem:
        """Return the item of a drive for some relations, all when none is named."""
        item = CampaignItem.make(self.name, drive, self.request, self.texts, self.versions)
        return item.narrowed(tuple(relations)) if relations and tuple(relations) != self.relations else item


@dataclass(frozen=True)
class Plan:
    """What a campaign comes to: drives outer, cells inner, so that a prefix of drives is complete.

    ``pairs``: verdicts that an item owes, by (drive number, cell); left out where nobody can tell yet. ``notes``: what
    a person should know of it.
    """

    drives: tuple[Drive, ...]
    cells: tuple[Cell, ...]
    pairs: Mapping[tuple[int, str], int]
    notes: tuple[str, ...] = ()

    def within(self, pairs: int | None) -> int:
        """Return how many drives, from the first, owe no more than so many pairs together; all when it is None.

        Raises UsageError: not even the first is within it, or nobody can tell.
        """
        if pairs is None:
            return len(self.drives)
        left = pairs
        for drive in self.drives:
            owed = [self.pairs.get((drive.number, cell.name)) for cell in self.cells]
            if None in owed and "://" in drive.url:
                raise UsageError(
                    f"budget.pairs: got {pairs}, and nobody can tell how many {drive.url} owes before it is fetched; "
                    "use budget.minutes or limit"
                )
            left -= sum(count for count in owed if count is not None)
            if left < 0:
                if drive.number == 0:
                    raise UsageError(f"budget.pairs: got {pairs}, and the first drive alone owes {pairs - left}")
                return drive.number
        return len(self.drives)


def plan_of(campaign: Campaign, drives: Sequence[Drive], before: Plan | None = None) -> Plan:
    """Return the plan of a campaign over drives; what was counted ``before`` is not counted again.

    Raises UsageError: it cannot run: saying what to type instead.
    """
    distinct, notes = without_repeats(drives)
    if not distinct:
        raise UsageError(f"bags: got no drive in {', '.join(campaign.bags)}")
    distinct = in_order(distinct, campaign)
    if campaign.waivers:
        load_waivers(Path(campaign.waivers))
    cells: list[Cell] = []
    pairs: dict[tuple[int, str], int] = {}
    bundles: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as place:
        for name, stack, faults in _stacks(campaign):
            relations, left_out = relations_for(stack, campaign.relations)
            notes += [f"stack '{stack.name}': {line}" for line in left_out_lines(left_out)]
            checked = _Checked.make(campaign, variants(relations), name, stack, faults, Path(place))
            of_stack = [_cell(checked, seed) for seed in campaign.seeds]
            cells += of_stack
            for drive in distinct if before is None else ():
                if (found := checked.owed(drive)) is not None:
                    bundles[drive.number], owed = found
                    pairs |= {(drive.number, cell.name): owed for cell in of_stack}
    known = tuple(dataclasses.replace(d, bundles=bundles.get(d.number, d.bundles)) for d in distinct)
    return Plan(known, tuple(_distinct_names(cells)), pairs if before is None else before.pairs, tuple(notes))


def without_repeats(drives: Sequence[Drive]) -> tuple[list[Drive], list[str]]:
    """Return each content once, numbered anew, and a note for each that was there before: it is no further drive."""
    first: dict[str, Drive] = {}
    notes = []
    for drive in drives:
        if drive.sha256 not in first:
            first[drive.sha256] = dataclasses.replace(drive, number=len(first))
        elif first[drive.sha256].url != drive.url:
            notes.append(f"{drive.url} has the content of {first[drive.sha256].url} and is left out")
    return list(first.values()), notes


def in_order(drives: Sequence[Drive], campaign: Campaign) -> list[Drive]:
    """Return the drives in plan order, numbered anew: as listed or, for early stop, in one of chance.

    That is the order of SHA-256 of ``<first seed>/<SHA-256 of the drive>``: it has nothing to do with what a drive
    shows, and is the same wherever the drives lie, and in whichever order they are listed.
    """
    if campaign.stop_early is None or campaign.stop_early.order == "listed":
        return list(drives)

    def rank(drive: Drive) -> bytes:
        return hashlib.sha256(f"{campaign.seeds[0]}/{drive.sha256}".encode()).digest()

    return [dataclasses.replace(drive, number=number) for number, drive in enumerate(sorted(drives, key=rank))]


def differences(before: Plan, now: Plan) -> list[str]:
    """Return what of a plan is another one now, in words."""
    was, has = ({drive.sha256: drive for drive in plan.drives} for plan in (before, now))
    changes = [
        f"{counted(len(rows), 'drive')} {word} ({rows[0].url}{', …' if len(rows) > 1 else ''})"
        for word, rows in (("gone", _without(was, has)), ("added", _without(has, was)))
        if rows
    ]
    if not changes and list(was) != list(has):
        changes.append("the order of drives")
    cells, others = ({cell.name: cell for cell in plan.cells} for plan in (before, now))
    changes += [f"cell {name} {'gone' if name in cells else 'added'}" for name in cells.keys() ^ others.keys()]
    for name in (name for name in cells if name in others):
        changes += [line for line in _cell_differences(cells[name], others[name]) if line not in changes]
    return changes


def _without(these: Mapping[str, Drive], those: Mapping[str, Drive]) -> list[Drive]:
    return [drive for sha256, drive in these.items() if sha256 not in those]


def _cell_differences(before: Cell, now: Cell) -> Iterator[str]:
    names = {STACK: f"stack '{before.request.stack}'"}
    for name in {**before.versions, **now.versions}:
        if before.versions.get(name) != now.versions.get(name):
            yield names.get(name, name.lstrip("@") if name.startswith("@") else f"relation '{name}'")
    was, has = before.request.as_plain(), now.request.as_plain()
    for name, value in was.items():
        if name not in ("relations", "stack") and value != has[name]:
            yield f"{name}: was {value!r}, is {has[name]!r}"


@dataclass(frozen=True, eq=False)
class _Checked:
    """A stack with the relations that it is judged by: what cannot run was refused while making it."""

    name: str
    request: ReplayRequest
    relations: tuple[Variant, ...]
    suite: Suite
    stack: Stack
    transforms: TransformTree | None
    files: Mapping[str, str]

    @classmethod
    def make(
        cls, campaign: Campaign, found: Sequence[Variant], name: str, stack: Stack, faults: tuple[str, ...], place: Path
    ) -> _Checked:
        request = ReplayRequest(
            bags=(),
            relations=tuple(variant.id for variant in found),
            stack=name,
            mode=campaign.mode,
            transport=campaign.transport,
            limit=campaign.limit,
            faults=faults,
            topics=campaign.topics,
            transforms=campaign.transforms,
            qos=campaign.qos,
            draws=campaign.draws,
            most_evidence=campaign.most_evidence,
            plugins=tuple(str(p.resolve()) for p in plugins.directories()),
        )
        check_request(request, stack)
        texts = {variant.id: variant.text for variant in found}
        suite = load_suite(relation_files(request.relations, texts, place), sham_for(stack.inputs), stack.traits)
        check_requirements(suite, stack, over_topics=request.transport == "ros")
        extra = load_transforms(Path(campaign.transforms)) if campaign.transforms else None
        files = {f"@{key}": getattr(campaign, key) for key in ("transforms", "qos") if getattr(campaign, key)}
        return cls(name, request, tuple(found), suite, stack, extra, files)

    def owed(self, drive: Drive) -> tuple[int, int] | None:
        """Return bundles of a drive and verdicts that it owes; None where that is not to be known before it is played.

        Raises UsageError: it lacks what the stack needs.
        """
        if "://" in drive.url:
            return None
        try:
            arguments = (self.request.topics, self.transforms, drive.number, self.request.limit, self.stack.topics)
            source = BagSource(Path(drive.url), *arguments, bool(self.stack.callable))
            check_needs((source,), self.stack)
        except InfrastructureError:  # a damaged bag is the trouble of its own items
            return None
        request = dataclasses.replace(self.request, bags=(drive.url,), first_episode=drive.number)
        run = Run(request, Path(), self.stack, self.suite, (source,))
        return run.bundles_to_come, run.pairs_to_come


def relation_files(names: Sequence[str], texts: Mapping[str, str], place: Path) -> tuple[str, ...]:
    """Write the relations that do not ship into a directory; return what a request calls all of them."""
    place.mkdir(parents=True, exist_ok=True)
    named = []
    for name in names:
        path = place / f"{name}.yaml"
        if text := texts.get(name):
            path.write_text(text, encoding="utf-8")
        named.append(str(path) if text else name)
    return tuple(named)


def _stacks(campaign: Campaign) -> Iterator[tuple[str, Stack, tuple[str, ...]]]:
    """Yield name, stack and planted faults; each fault in those stacks that take it.

    Raises UsageError: a fault is taken by none.
    """
    loaded = {name: load_stack(name) for name in campaign.stacks}
    fitting = {name: tuple(f for f in campaign.faults if _takes(stack, f)) for name, stack in loaded.items()}
    for fault in campaign.faults:
        if not any(fault in faults for faults in fitting.values()):
            with_faults(next(iter(loaded.values())), (fault,))  # which says why not
    for name, stack in loaded.items():
        yield name, with_faults(stack, fitting[name]), fitting[name]


def _takes(stack: Stack, fault: str) -> bool:
    try:
        with_faults(stack, (fault,))
    except UsageError:
        return False
    return True


def _cell(checked: _Checked, seed: int) -> Cell:
    versions = {variant.id: variant.version for variant in checked.relations}
    versions |= {name: version_of(Path(path).read_text(encoding="utf-8")) for name, path in checked.files.items()}
    return Cell(
        f"{checked.stack.name}-seed{seed}",
        dataclasses.replace(checked.request, seed=seed),
        {variant.id: variant.text for variant in checked.relations if variant.text},
        {**versions, STACK: version_of(plain(checked.stack))},
    )


def _distinct_names(cells: Sequence[Cell]) -> list[Cell]:
    names = [cell.name for cell in cells]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"stacks: got two for the cell {twice[0]}, expected a name: of its own in each stack file")
    return list(cells)
