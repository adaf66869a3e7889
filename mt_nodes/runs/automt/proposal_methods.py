# SPDX-License-Identifier: Apache-2.0
"""Carries out the methods: what does each give every case of the bags?

The nine relations that were written by hand, to compare with: of each case one is drawn by lot, whatever its scene.

``config/experiments/published/automt_manual.yaml`` has them (arXiv 2510.19438, table 7 of its supplement).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError
from mt_nodes.base.seeds import generator
from mt_nodes.base.wording import counted
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.transforms import load_transforms
from mt_nodes.engine.entries import mapping, text
from mt_nodes.relations.relation import Relation
from mt_nodes.rules.bag_cases import Recording, facts, matcher
from mt_nodes.rules.case_planning import CaseFrames, choose, cut
from mt_nodes.rules.chat import Chat
from mt_nodes.rules.matching import Choice
from mt_nodes.rules.model_answers import Answers
from mt_nodes.rules.model_queries import Asker
from mt_nodes.rules.models import LanguageModel, load_models, models_named
from mt_nodes.rules.ontology import ANY_ROAD, Ontology, load_ontology
from mt_nodes.rules.shipped_rules import ids_of, scratch_store, shipped_entries
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.store_entry import Entry
from mt_nodes.runs.automt.automt_request import ASKING, MANUAL, OURS, AutomtRequest
from mt_nodes.runs.automt.automt_run import ANSWERS, RELATIONS, AutomtRun
from mt_nodes.runs.automt.model_baselines import Baselines
from mt_nodes.runs.automt.own_relations import own_relation, why_not, write_own_relation
from mt_nodes.runs.automt.proposals import Proposal, ProposalSet
from mt_nodes.stacks.stack import Stack

FILE = "experiments/published/automt_manual.yaml"
_KEYS = ("text", "element", "place", "behaviour", "origin")


def manual_relations(region: str, ontology: Ontology) -> dict[str, tuple[Statement, Relation]]:
    """Return the nine as they look in a region, by id.

    Raises UsageError: the file is none, or one of them cannot be shown; names it.
    """
    path = resources.config_dir() / FILE
    data = read_mapping(path)
    refuse_unknown(data, ("title", "relations"), str(path))
    relations = {}
    for name, row in mapping(data.get("relations"), f"{path}: relations").items():
        where = f"{path}: relations.{name}"
        entry = mapping(row, where)
        refuse_unknown(entry, _KEYS, where)
        statement = _statement(entry, where, ontology)
        relation = own_relation(
            f"{MANUAL}_{region}_{name}",
            statement,
            text(entry, "text", where, None),
            str(data["title"]),
            region,
            ontology,
        )
        relations[relation.id] = (statement, relation)
    return relations


def manual(
    cases: Sequence[CaseFrames],
    region: str,
    rounds: int,
    seed: int,
    *,
    ontology: Ontology,
    sensors: Collection[str],
    stacks: Sequence[Stack],
    directory: Path,
) -> list[Proposal]:
    """Return one of the nine for each case and round, by lot from the seed, of those that can be run.

    Raises UsageError: none can.

    Args:
        sensors: that all bags have. stacks: that all of them are run on.
        directory: where the files of those that are drawn are written.
    """
    known = {
        name: one for name, one in manual_relations(region, ontology).items() if not why_not(one[1], sensors, stacks)
    }
    if not known:
        raise UsageError(f"--methods {MANUAL}: none of its relations can be run on these bags and stacks; leave it out")
    return [_drawn(case, region, turn, seed, known, directory) for turn in range(rounds) for case in cases]


def _drawn(
    case: CaseFrames,
    region: str,
    turn: int,
    seed: int,
    known: Mapping[str, tuple[Statement, Relation]],
    directory: Path,
) -> Proposal:
    names = sorted(known)
    name = names[int(generator(seed, f"automt_{MANUAL}_{region}", case.bag, case.first, turn).integers(len(names)))]
    statement, relation = known[name]
    return Proposal(
        MANUAL,
        region,
        turn,
        case.name,
        statement,
        name,
        write_own_relation(relation, directory),
        f"drawn by lot of {len(names)}",
    )


def _statement(entry: Mapping[str, object], where: str, ontology: Ontology) -> Statement:
    element, behaviour = text(entry, "element", where, None), text(entry, "behaviour", where, None)
    if element not in ontology.elements:
        raise UsageError(f"{where}.element: no element '{element}'")
    verb = ontology.elements[element].verb
    statement = Statement(ANY_ROAD, verb, element, behaviour, text(entry, "place", where))
    ontology.refuse_unknown(statement, where)
    return statement


def recordings_of(request: AutomtRequest, ontology: Ontology) -> list[Recording]:
    """Return the bags with what is known of them beforehand.

    Raises UsageError: a fact or the file of transforms is none.
    """
    tree = load_transforms(Path(request.transforms)) if request.transforms else None
    known_facts = facts(request.facts, ontology)
    return [Recording(Path(bag), request.topics, tree, known_facts) for bag in request.bags]


def shared_sensors(recordings: Sequence[Recording]) -> tuple[str, ...]:
    """Return the kinds of sensors that every bag has."""
    return tuple(sorted(set.intersection(*(set(recording.sensors) for recording in recordings))))


def refuse_discord(recordings: Sequence[Recording], stacks: Sequence[Stack]) -> None:
    """Refuse bags whose frames another sensor counts for a stack than for the cases.

    Raises UsageError: names the bag and both counts.
    """
    for recording in recordings:
        for stack in stacks:
            with BagSource(recording.bag, recording.topics, recording.transforms, require=stack.topics) as source:
                count = source.info[source.lead].count
            if count != recording.count:
                raise UsageError(
                    f"{recording.bag}: {counted(recording.count, 'frame')}, and {count} as stack '{stack.name}' counts "
                    "them by its sensors; cases of both cannot be compared, record the sensors at one rate"
                )


NO_MODEL = "not run: no language model; name one by --model or --models"
Progress = Callable[[str, int], None]
"""Is told what is being done, and how much of it is."""


def propose(run: AutomtRun, progress: Progress = lambda doing, done: None) -> ProposalSet:
    """Return what the methods of a run give every case.

    Raises UsageError: there is no case, or a fact, a file or a model is none. InfrastructureError: a bag is damaged, or
    the model's server gives no answers; those so far are kept.
    """
    request, ontology = run.request, load_ontology()
    model = model_of(request)
    recordings = recordings_of(request, ontology)
    stacks = list(run.stacks.values())
    refuse_discord(recordings, stacks)
    cases = tuple(
        cut(recordings, request.frames, request.reference, partial(_read, progress, recordings), request.limit)
    )
    context: dict[str, Any] = {"ontology": ontology, "sensors": shared_sensors(recordings), "stacks": stacks}
    directory = run.out / RELATIONS
    proposals: list[Proposal] = []
    for region in request.regions:
        args = (cases, region, request.rounds, request.seed)
        if OURS in request.methods:
            progress(f"matching, {region}", 0)
            proposals += matched(*args, **context)
        if MANUAL in request.methods:
            proposals += manual(*args, directory=directory, **context)
    asking = [method for method in ASKING if method in request.methods]
    not_run = dict.fromkeys(asking, NO_MODEL) if model is None else {}
    if model is None or not asking:
        return ProposalSet(cases, tuple(proposals), not_run)
    with _asker(model, run.out / ANSWERS) as asker:
        baselines = Baselines(asker, directory=directory, **context)
        proposals += _model_proposals(baselines, asking, cases, request, progress)
        usage = {"model": asker.name, **asker.usage.as_plain(), "cost": asker.cost}
    return ProposalSet(cases, tuple(proposals), not_run, usage)


def model_of(request: AutomtRequest) -> LanguageModel | None:
    """Return the language model that is asked, None where none is named.

    Raises UsageError: it is not fully told, or there are several.
    """
    found: Sequence[LanguageModel]
    if request.models_file:
        found = load_models(Path(request.models_file), os.environ)
        if request.models:
            found = [one for one in found if one.name in request.models]
    elif request.models:
        found = models_named(request.models, os.environ)
    else:
        return None
    if len(found) != 1:
        names = ", ".join(one.name for one in found) or "none"
        raise UsageError(f"--model: got {names}, expected one: the methods are compared, not models")
    return found[0]


def _model_proposals(
    baselines: Baselines,
    methods: Sequence[str],
    cases: Sequence[CaseFrames],
    request: AutomtRequest,
    progress: Progress,
) -> Iterator[Proposal]:
    for region in request.regions:
        for method in methods:
            doing = f"asking, {method}, {region}"
            yield from baselines.proposals(method, cases, region, request.rounds, partial(progress, doing))


def _read(progress: Progress, recordings: Sequence[Recording], bag: int, read: int) -> None:
    progress(f"scenes of {recordings[bag].bag.name}", read)


@contextmanager
def _asker(model: LanguageModel, path: Path) -> Iterator[Asker]:
    with Answers(path) as answers:
        yield Asker(Chat(model), answers)


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

    ``sensors``: that all bags have. ``stacks``: a relation that cannot be run on one of them is never chosen.
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
