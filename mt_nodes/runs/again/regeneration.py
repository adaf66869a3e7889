# SPDX-License-Identifier: Apache-2.0
"""The follow-ups of a finished replay made again from its draws, each proved by the ledger's SHA-256."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import MtError
from mt_nodes.data.datasets.dataset_name import exists, located
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.followups import RecordedDraws
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.ledger import baseline_of
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.engine.reduction.reduction import reducing
from mt_nodes.engine.run_record import read_record, refuse_foreign_record
from mt_nodes.relations.pipeline import DerivedFollowup
from mt_nodes.runs.replay.replay_run import Run


@dataclass(frozen=True, eq=False)
class RemadeFollowup:
    """A follow-up made again.

    ``pair``: which one. ``bundle``: its source. ``derived``: what was made, None where nothing could be. ``wrong``: why
    it is not what the run sent; empty: it is, bit for bit.
    """

    pair: Pair
    bundle: Bundle
    derived: DerivedFollowup | None
    wrong: str


def run_of_results(place: Path) -> Run | str:
    """Return the run of a directory with its files where they are now, or why it cannot be made."""
    record = read_record(place)
    request = Run.read_request(record["request"], place)

    def here(name: str) -> str:
        moved = located(name, Path(record.get("directory", ".")))
        return moved if name and not exists(name) and exists(moved) else name

    bags = tuple(map(here, request.bags))
    if lost := [bag for bag in bags if not exists(bag)]:
        return f"the bag {lost[0]} is not there"
    try:
        refuse_foreign_record(place, record)
        relations = tuple(map(here, request.relations))
        found = replace(request, bags=bags, relations=relations, stack=here(request.stack), waivers="")
        return Run.make(replace(found, transforms=here(request.transforms)), place)
    except MtError as error:
        return f"the run cannot be made again: {error}"


def made_again(run: Run, place: Path, wanted: Collection[str] | None = None) -> Iterator[RemadeFollowup]:
    """Yield each recorded follow-up, made again.

    ``run``: of the results directory ``place``. ``wanted``: identities of those to make; None: all.
    """
    recorded = {relation.id: RecordedDraws(place, relation) for relation in run.suite.all}
    made_offers = _offers(run, recorded)
    reduced = reducing(run.request)
    for episode in run.episodes:
        for bundle in episode():
            for offer in made_offers:
                draws, pair = recorded[offer.relation.id], offer.followup_pair(bundle)
                line = draws.lines.get(str(pair))
                if line is None or (wanted is not None and str(pair) not in wanted):
                    draws.meet(bundle)
                    continue
                try:
                    derived = draws.rebuild(pair, bundle)
                except MtError as error:
                    yield RemadeFollowup(pair, bundle, None, str(error))
                    continue
                assert derived is not None, "it has a line"
                made = reduced(derived, bundle)
                yield RemadeFollowup(pair, bundle, made, _difference(made, line))


def _offers(run: Run, recorded: Mapping[str, RecordedDraws]) -> tuple[Offer, ...]:
    """Return what a run offered; of one that chose its pairs, what its ledger has."""
    if not run.schedule.chosen:
        return run.offers
    draws = (int(Pair.parse(pair).draw) for each in recorded.values() for pair in each.lines)
    return offers(run.suite, max(draws, default=0) + 1)


def _difference(derived: DerivedFollowup, line: dict[str, Any]) -> str:
    """Say that a follow-up, or the baseline beside it, is not what the ledger says; empty if it is."""
    milder = derived.baseline
    now = sha256_of_followup(derived.followup), None if milder is None else sha256_of_followup(milder.followup)
    if now == (line["sha256"], (baseline_of(line) or {}).get("sha256")):
        return ""
    return "made again it has another SHA-256; that takes the same versions and CPU type"
