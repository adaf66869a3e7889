# SPDX-License-Identifier: Apache-2.0
"""What a method gives a case: a relation, or none and why; plain data, frozen before anything is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.stats.cluster_sums import Unit
from mt_nodes.engine.case_plan import CasePlan
from mt_nodes.relations.facts.scene_facts import Fact
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.scene import SceneFacts
from mt_nodes.rules.statement import Statement


@dataclass(frozen=True)
class Proposal(PlainData):
    """What one method gives one case in one round.

    Attributes:
        case: name of the source case. statement: None where there is none that the ontology can say.
        relation: its id; empty: nothing is run. file: where it stands in the run's directory; empty of a shipped one.
        why: it was chosen, or none was. lacking: by factor of validity why the case has none, as far as that is known.
        told: what the method said in free words; empty of those that do not.
    """

    method: str
    region: str
    round: int
    case: str
    statement: Statement | None = None
    relation: str = ""
    file: str = ""
    why: str = ""
    lacking: Mapping[str, str] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ProposalSet:
    """All that is asked of stacks.

    ``not_run``: why, of methods that were not. ``usage``: what the language models took, by task.
    """

    cases: tuple[CaseFrames, ...]
    proposals: tuple[Proposal, ...]
    not_run: Mapping[str, str] = field(default_factory=dict)
    usage: Sequence[Mapping[str, Any]] = ()

    def of(self, region: str, method: str) -> list[Proposal]:
        """Return what a method gave in a region."""
        return [one for one in self.proposals if (one.region, one.method) == (region, method)]

    def as_plain(self) -> dict[str, Any]:
        """Return what JSON can hold."""
        return {
            "cases": list(map(plain_cut, self.cases)),
            "proposals": [one.as_plain() for one in self.proposals],
            "not_run": dict(self.not_run),
            "usage": list(map(dict, self.usage)),
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> ProposalSet:
        """Read what :meth:`as_plain` made."""
        return cls(
            tuple(map(_cut, data["cases"])),
            tuple(map(Proposal.from_plain, data["proposals"])),
            data["not_run"],
            tuple(data["usage"]),
        )


def plan_of(proposed: ProposalSet, origin: Mapping[str, Any]) -> CasePlan:
    """Return the plan of one replay: every relation on every case and round once, whoever proposed it."""
    cases = {case.name: case for case in proposed.cases}
    planned = {
        (one.relation, one.case, one.round): cases[one.case].given(
            one.file or one.relation, one.round, f"{one.method}: {one.why}"
        )
        for one in proposed.proposals
        if one.relation
    }
    return CasePlan(origin, tuple(planned.values()))


def unit_of(case: CaseFrames) -> Unit:
    """Return what neighbours are told by."""
    return case.bag, case.first


def plain_cut(case: CaseFrames) -> dict[str, Any]:
    """Return a source case and its scene as JSON can hold them."""
    return {**vars(case), "scene": case.scene.as_plain()}


def _cut(data: Mapping[str, Any]) -> CaseFrames:
    facts = {name: Fact(row["value"], row["source"]) for name, row in data["scene"].items()}
    return CaseFrames(**{**data, "scene": SceneFacts(facts)})
