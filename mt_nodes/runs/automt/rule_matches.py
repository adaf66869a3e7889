# SPDX-License-Identifier: Apache-2.0
"""AutoMT's own method: of the relations that the rules of a region gave, each case is given the one that fits."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mt_nodes.rules.bag_cases import matcher
from mt_nodes.rules.case_planning import CaseFrames, choose
from mt_nodes.rules.matching import Choice
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.shipped_rules import ids_of, scratch_store, shipped_entries
from mt_nodes.rules.store_entry import Entry
from mt_nodes.runs.automt.automt_request import OURS
from mt_nodes.runs.automt.proposals import Proposal
from mt_nodes.stacks.stack import Stack


def matched(
    cases: Sequence[CaseFrames],
    region: str,
    rounds: int,
    seed: int,
    *,
    ontology: Ontology,
    sensors: Collection[str],
    stacks: Sequence[Stack],
) -> list[Proposal]:
    """Return what the matcher gives each case and round; it goes on counting over cases and rounds.

    Args:
        sensors: that all bags have. stacks: a relation that cannot be run on one of them is never chosen.
    """
    chooses = matcher(ontology, sensors, stacks, seed=seed, region=region)
    matchers = [chooses] * (1 + max(case.bag for case in cases))
    with scratch_store(shipped_entries(), ontology) as store:
        entries = {entry.index: entry for entry in store.entries()}
        return [_proposal(one, region, turn, entries) for _, turn, one in choose(cases, store, matchers, rounds)]


def _proposal(choice: Choice, region: str, turn: int, entries: dict[int, Entry]) -> Proposal:
    if choice.index is None:
        return Proposal(OURS, region, turn, choice.case, why=choice.why, lacking={"logical": choice.why})
    entry = entries[choice.index]
    return Proposal(OURS, region, turn, choice.case, entry.statement, ids_of(entry)[0], why=choice.why)
