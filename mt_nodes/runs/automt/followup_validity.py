# SPDX-License-Identifier: Apache-2.0
"""Whether each follow-up of a run was a fair test: its mutations' guarantees, a second look, its scene, its logic.

A case holds as changed where its mutations could be applied to more than half of its frames, as the median over frames
needs, and broke their guarantee in none. The second look and the scene of the follow-up are of one frame in the middle;
its road is the source's, for no mutation moves the ego-vehicle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mt_nodes.base.errors import UsageError
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import Outcome, Pair
from mt_nodes.engine.followups import RecordedDraws
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.relations.facts.scene_facts import Facts, first_known
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.scene import SceneFacts
from mt_nodes.rules.scene_light import light_in_pictures
from mt_nodes.rules.statement_binding import edit_facts
from mt_nodes.rules.validation import (
    FACTORS,
    Factor,
    Validation,
    logical_alignment,
    manipulation_verification,
    scenario_alignment,
)
from mt_nodes.runs.automt.followup_check import FollowupCheck
from mt_nodes.runs.automt.proposals import Proposal, ProposalSet
from mt_nodes.runs.automt.second_look import Look, second_look
from mt_nodes.runs.replay.replay_run import Run

#: A follow-up of the run: relation, name of the case, round.
Key = tuple[str, str, int]


@dataclass(frozen=True)
class CaseFollowups:
    """What became of the follow-ups of a case.

    Attributes:
        frames: to which the change could be applied. of: all. why_not: the first reason, of others. broken: why a
            guarantee is, empty where all hold. look: at the frame nearest to the middle. light: what its picture says.
    """

    frames: tuple[int, ...]
    of: int
    why_not: str = ""
    broken: str = ""
    look: Look = (None, "")
    light: Facts = field(default_factory=dict)

    @property
    def manipulation(self) -> Factor:
        """Whether the change was made."""
        if 2 * len(self.frames) <= self.of and not self.broken:
            return Factor(False, f"applied to {len(self.frames)} of {self.of} frames: {self.why_not}")
        return manipulation_verification(self.broken, *self.look)


def key_of(one: Proposal) -> Key:
    """Return what a proposal's follow-ups are known by."""
    return one.relation, one.case, one.round


def rate_followups(
    run: Run,
    proposed: ProposalSet,
    progress: Callable[[int], None] = lambda count: None,
    check: FollowupCheck | None = None,
) -> dict[Key, CaseFollowups]:
    """Return what became of the follow-ups of every proposal that was run.

    Raises MtError: the model's server gives no answers, its results or its bags are damaged.

    Args:
        run: a finished replay of them. progress: is told of each follow-up that was looked at.
        check: a model that looks, too; what one of the looks does not find was not made.
    """
    cases = {case.name: case for case in proposed.cases}
    proposals = {key_of(one): one for one in proposed.proposals if one.relation}
    sent = {Pair.parse(line["pair"]) for line in read_ledger(run.out)}
    failed = _failed(run)
    followups = {key: _followups_of(key, cases[key[1]], sent, failed) for key in proposals}
    for key, look, light in _looks(run, proposals, followups, cases, check):
        followups[key] = replace(followups[key], look=look, light=light)
        progress(1)
    return followups


def validation_of(one: Proposal, case: CaseFrames, followups: CaseFollowups | None, ontology: Ontology) -> Validation:
    """Return the three factors of a proposal. ``followups``: what became of it; None where nothing was run."""
    known = {name: Factor(False, why) for name, why in one.lacking.items()}
    if one.statement is None:
        return Validation(**{name: known.get(name, Factor(None, one.why)) for name in FACTORS})
    statement, region = one.statement, one.region
    light = followups.light if followups else {}
    followup = SceneFacts({**case.scene.facts, **first_known(light, case.scene.facts)})
    factors = {
        "scenario": scenario_alignment(statement, case.scene, followup),
        "manipulation": followups.manipulation if followups else Factor(None, one.why),
        "logical": logical_alignment(
            statement, ontology.elements[statement.element].needs, case.scene, _edit(one, region, ontology)
        ),
    }
    return Validation(**{**factors, **known})


def _edit(one: Proposal, region: str, ontology: Ontology) -> Mapping[str, float]:
    try:
        return edit_facts(one.statement, ontology, region) if one.statement else {}
    except UsageError:
        return {}


def _failed(run: Run) -> dict[Pair, tuple[str, str]]:
    """Return outcome and reason of follow-ups that were not made, or not honestly."""
    done = (Outcome.HOLDS.value, Outcome.VIOLATED.value)
    verdicts = (line for line in read_journal(run.out / "result.jsonl") if line["type"] == "verdict")
    lines = (line for line in verdicts if line["outcome"] not in done)
    return {Pair.parse(line["pair"]): (line["outcome"], line["reason"]) for line in lines}


def _followups_of(key: Key, case: CaseFrames, sent: set[Pair], failed: Mapping[Pair, tuple[str, str]]) -> CaseFollowups:
    relation, _, draw = key
    pairs = {frame: Pair(case.bag, frame, relation, str(draw)) for frame in range(case.first, case.last + 1)}
    frames = tuple(frame for frame, pair in pairs.items() if pair in sent)
    missing = [failed.get(pair, ("", "it was not sent")) for frame, pair in pairs.items() if frame not in frames]
    broken = [why for outcome, why in missing if outcome == Outcome.INVALID.value]
    return CaseFollowups(frames, len(pairs), missing[0][1] if missing else "", broken[0] if broken else "")


def _looks(
    run: Run,
    proposals: Mapping[Key, Proposal],
    followups: Mapping[Key, CaseFollowups],
    cases: Mapping[str, CaseFrames],
    check: FollowupCheck | None,
) -> Iterator[tuple[Key, Look, Facts]]:
    """Look at one follow-up of each, made again from its draws."""
    at: dict[tuple[int, int], list[Key]] = {}
    for key, one in followups.items():
        case = cases[key[1]]
        if one.frames and not one.broken:
            frame = min(one.frames, key=lambda n, middle=case.reference: (abs(n - middle), n))  # type: ignore[misc]
            at.setdefault((case.bag, frame), []).append(key)
    draws = {relation.id: RecordedDraws(run.out, relation) for relation in run.suite.relations}
    for episode in run.episodes:
        for bundle in episode():
            for key in at.get((bundle.episode, bundle.index), ()):
                derived = draws[key[0]].rebuild(Pair(bundle.episode, bundle.index, key[0], str(key[2])), bundle)
                if derived is not None:
                    yield key, *_inspect(bundle, derived.followup, proposals[key], check)
            for recorded in draws.values():
                recorded.meet(bundle)


def _inspect(bundle: Bundle, followup: Followup, one: Proposal, check: FollowupCheck | None) -> tuple[Look, Facts]:
    if not followup.bundles or one.statement is None:
        return (None, ""), {}
    looks = [second_look(bundle, followup, one.statement.element)]
    if check is not None:
        looks.append(check.look(bundle, followup.first, one.statement))
    return _agreed(looks), light_in_pictures([followup.first])


def _agreed(looks: Sequence[Look]) -> Look:
    """Return whether all looks that could tell found the change."""
    telling = [look for look in looks if look[0] is not None]
    if not telling:
        return None, ""
    missed = [what for seen, what in telling if not seen]
    return not missed, "; ".join(missed or [what for _, what in telling])
