# SPDX-License-Identifier: Apache-2.0
"""Carries out the methods: what does each give every case of the bags?"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from mt_nodes.base.errors import UsageError
from mt_nodes.base.wording import counted
from mt_nodes.data.bags.bundles import BagSource
from mt_nodes.data.transforms import load_transforms
from mt_nodes.rules.bag_cases import Recording, facts
from mt_nodes.rules.case_planning import CaseFrames, cut
from mt_nodes.rules.models import LanguageModel, load_models, models_named
from mt_nodes.rules.nearest_texts import Indexer
from mt_nodes.rules.ontology import Ontology, load_ontology
from mt_nodes.rules.scene_by_model import SceneReader
from mt_nodes.rules.scene_detector import SceneDetector
from mt_nodes.runs.automt.ablations import FreeReadings, drawn_by_lot
from mt_nodes.runs.automt.automt_request import (
    ABLATIONS,
    ASKING,
    MANUAL,
    OURS,
    WITHOUT_ONTOLOGY,
    WITHOUT_RETRIEVAL,
    WITHOUT_SELF_CHECK,
    AutomtRequest,
)
from mt_nodes.runs.automt.automt_run import ANSWERS, RELATIONS, AutomtRun
from mt_nodes.runs.automt.manual import manual
from mt_nodes.runs.automt.matched import EntryRelations, matched
from mt_nodes.runs.automt.model_baselines import Baselines
from mt_nodes.runs.automt.model_pool import ModelPool
from mt_nodes.runs.automt.own_relations import RelationShop
from mt_nodes.runs.automt.proposals import Proposal, ProposalSet
from mt_nodes.runs.automt.rule_reading import Progress, RuleReaders
from mt_nodes.stacks.stack import Stack

NO_MODEL = "not run: no language model; name one by --model or --models"
NO_JUDGE = "not run: nobody judges the readings of the rules; name a language model by --reader or --judge"
NO_READER = "not run: no language model reads the rules; name one by --reader"


def propose(run: AutomtRun, progress: Progress = lambda doing, done: None) -> ProposalSet:
    """Return what the methods of a run give every case.

    Raises UsageError: there is no case, or a fact, a file or a model is none. InfrastructureError: a bag is damaged, or
    a model's server gives no answers; those so far are kept.
    """
    request, ontology = run.request, load_ontology()
    model = model_of(request)
    with ModelPool(request.models_file, run.out / ANSWERS) as pool:
        recordings = recordings_of(request, ontology, pool)
        stacks = list(run.stacks.values())
        refuse_discord(recordings, stacks)
        reading = partial(_read, progress, recordings)
        cases = tuple(cut(recordings, request.frames, request.reference, reading, request.limit))
        shop = RelationShop(ontology, shared_sensors(recordings), stacks, run.out / RELATIONS, request.edit_model)
        methods = Methods(request, cases, shop, pool, model, progress)
        not_run = methods.not_run()
        proposals = [one for region in request.regions for one in methods.proposals(region, not_run)]
        return ProposalSet(cases, tuple(proposals), not_run, tuple(pool.usage()))


@dataclass(frozen=True)
class Methods:
    """The methods of a request, with what they share.

    ``model``: asked by the two methods that a language model carries out; None: none is named.
    """

    request: AutomtRequest
    cases: Sequence[CaseFrames]
    shop: RelationShop
    pool: ModelPool
    model: LanguageModel | None
    progress: Progress

    def not_run(self) -> dict[str, str]:
        """Return the methods that cannot be carried out, and why."""
        lacking = dict.fromkeys(ASKING, NO_MODEL) if self.model is None else {}
        if self._readers.check is None:
            lacking[WITHOUT_SELF_CHECK] = NO_JUDGE
        if not self._readers.models:
            lacking[WITHOUT_ONTOLOGY] = NO_READER
        return {method: lacking[method] for method in self.request.methods if method in lacking}

    def proposals(self, region: str, without: Sequence[str] | dict[str, str]) -> Iterator[Proposal]:
        """Yield what each method proposes for a region, but those that cannot be carried out."""
        request, args = self.request, (self.cases, region, self.request.rounds, self.request.seed)
        methods = [method for method in request.methods if method not in without]
        for method in (one for one in (OURS, *ABLATIONS) if one in methods):
            self.progress(f"{method}, {region}", 0)
            yield from self._of_rules(method, region)
        if MANUAL in methods:
            yield from manual(*args, self.shop)
        for method in (one for one in ASKING if one in methods):
            doing = partial(self.progress, f"asking, {method}, {region}")
            yield from self._baselines.proposals(method, self.cases, region, request.rounds, doing)

    def _of_rules(self, method: str, region: str) -> list[Proposal]:
        """Return the proposals of our method, or of an ablation of it."""
        request = self.request
        if method == WITHOUT_ONTOLOGY:
            asker = self.pool.asker(self._readers.models[0].model, "reading rules in free words")
            free = FreeReadings(asker, self.shop, region, self._indexer, self.progress)
            return free.proposals(self.cases, request.rounds)
        entries = self._readers.entries(region, self.progress, judged=method != WITHOUT_SELF_CHECK)
        relations, args = EntryRelations(self.shop, method), (self.cases, region, request.rounds, request.seed)
        if method == WITHOUT_RETRIEVAL:
            return drawn_by_lot(*args, entries, relations)
        return matched(*args, entries, relations, nearest=request.nearest, indexer=self._indexer)

    @cached_property
    def _readers(self) -> RuleReaders:
        return RuleReaders.of(self.request, self.shop.ontology, self.pool)

    @cached_property
    def _indexer(self) -> Indexer:
        return self.pool.indexer(self.request.embed)

    @cached_property
    def _baselines(self) -> Baselines:
        assert self.model is not None
        return Baselines(self.pool.asker(self.model, "proposing relations"), self.shop)


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


def _read(progress: Progress, recordings: Sequence[Recording], bag: int, read: int) -> None:
    progress(f"scenes of {recordings[bag].bag.name}", read)


def recordings_of(request: AutomtRequest, ontology: Ontology, pool: ModelPool) -> list[Recording]:
    """Return the bags with what is known of them beforehand, and who describes their frames.

    Raises UsageError: a fact, the file of transforms, a detector or the scene model is none.
    """
    tree = load_transforms(Path(request.transforms)) if request.transforms else None
    known_facts = facts(request.facts, ontology)
    detectors = tuple(map(SceneDetector.named, request.detectors))
    seen_by = None
    if request.scene_model:
        seen_by = SceneReader(pool.named(request.scene_model, "scenes"), ontology, request.scene_samples)
    return [
        Recording(Path(bag), request.topics, tree, known_facts, seen_by=seen_by, detectors=detectors)
        for bag in request.bags
    ]


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
