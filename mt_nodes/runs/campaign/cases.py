# SPDX-License-Identifier: Apache-2.0
"""From the violated pairs of a run to cases of the database, and from a case to what its follow-up is made by."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import json
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.base import plugins, seeds
from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.base.jsonl import jsonable
from mt_nodes.data.datasets.dataset_name import exists, located
from mt_nodes.data.verdict import Outcome, Pair, RelationOutcome
from mt_nodes.engine.finish import read_summary
from mt_nodes.engine.journal import read_journal
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.engine.run_record import read_record, refuse_foreign_record
from mt_nodes.relations import pipeline
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.relation import Relation, load_relation
from mt_nodes.runs.campaign.campaign_plan import relation_files
from mt_nodes.runs.campaign.campaign_store import FILE as STORE
from mt_nodes.runs.campaign.campaign_store import CampaignStore
from mt_nodes.runs.campaign.conductor import is_campaign
from mt_nodes.runs.campaign.failures import FailureCase
from mt_nodes.runs.campaign.inputs import drives, fetched
from mt_nodes.runs.campaign.item import Drive

#: New cases that a run leaves of one bag and relation: those violated most.
MOST_NEW = 20
#: What every follow-up is made by, beside its mutation.
_MODULES = (pipeline, seeds, inspect.getmodule(Mutation))


@dataclass(frozen=True)
class CaseSource:
    """What must be known of a run to tell its cases.

    ``stack``: its name, and the faults that were planted. ``seed``: of the run. ``relations``: by id, control and sham
    left out. ``drive``: returns path or URL of the bag of an episode, and the SHA-256 of its content.
    """

    stack: str
    seed: int
    relations: Mapping[str, Relation]
    drive: Callable[[int], tuple[str, str]]


def violated(
    run: CaseSource, summary: Mapping[str, Any], lines: Iterable[Mapping[str, Any]], only: Collection[str] | None = None
) -> list[FailureCase]:
    """Return the violated pairs of a run as cases: of each bag and relation the worst, or these of them ``only``.

    Violations of a relation that does not stand out from its control and sham, which were violated too, are none.
    ``run``: what is searched for cases. ``summary``: of it. ``lines``: of its journal.
    Raises MtError: a bag cannot be read.
    """
    outcomes = summary.get("relations", {})
    found: dict[tuple[int, str], list[tuple[float, Pair, Any]]] = {}
    for line in lines:
        name = str(line.get("relation"))
        if name in run.relations and line["outcome"] == Outcome.VIOLATED.value and steady(outcomes.get(name, {})):
            pair, margin = Pair.parse(line["pair"]), line["margin"]
            how_bad = -float("inf") if margin is None else margin
            found.setdefault((pair.episode, name), []).append((how_bad, pair, margin))
    if only is None:
        worst = [row for rows in found.values() for row in sorted(rows, key=_by_margin)[:MOST_NEW]]
    else:
        worst = [row for rows in found.values() for row in rows if str(row[1]) in only]
    provenance = {name: (words_of(run.relations[name]), code_of(run.relations[name])) for _, name in found}
    return [_case(run, pair, margin, *provenance[pair.relation]) for _, pair, margin in worst]


def of_results(directory: Path, cache: Path, only: Collection[str] | None = None) -> list[FailureCase]:
    """Return what :func:`violated` tells of a results directory, that of a campaign's cell included.

    A bag is taken to be what it is now, unless a campaign has noted what it was.
    ``directory``: of a finished replay. ``cache``: SQLite file of the hashes of bags. ``only``: these pairs.
    Raises UsageError: it holds no replay, or a bag or relation of it is not there any more. MtError: it is damaged.
    """
    record = read_record(directory)
    if "bags" not in record["request"]:
        raise UsageError(f"{directory}: holds no replay of bags; cases are kept of `mt replay`, campaigns and searches")
    request = ReplayRequest.from_plain(record["request"])
    if request.only:
        raise UsageError(f"{directory}: holds one pair that was made again; give the run that it is of")
    refuse_foreign_record(directory, record)
    plugins.add_directories(map(Path, request.plugins))
    started_in = Path(record.get("directory", "."))
    bags = [bag if "://" in bag else located(bag, started_in) for bag in request.bags]
    known = _noted(directory)

    def drive(episode: int) -> tuple[str, str]:
        bag = bags[episode - request.first_episode]
        if bag not in known:
            known[bag] = drives([bag], cache)[0].sha256
        return bag, known[bag]

    relations = {row["id"]: relation_of(row) for row in record["relations"] if row["check"] is not None}
    run = CaseSource(stack_name(record["stack"], request.faults), request.seed, relations, drive)
    return violated(run, read_summary(directory), read_journal(directory / "result.jsonl"), only)


def relation_of(words: Mapping[str, Any]) -> Relation:
    """Return a relation from its plain form, read as a user's file would be.

    Raises UsageError: it is none, or what it names is not there any more.
    """
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "relation.yaml"
        path.write_text(file_of(words), encoding="utf-8")
        return load_relation(str(path))


def relation_of_case(case: FailureCase) -> Relation:
    """Return the relation of a case. Raises UsageError: what it names is not there any more."""
    return relation_of(json.loads(case.relation))


def file_of(words: Mapping[str, Any]) -> str:
    """Return the file of a relation from its plain form: YAML."""
    return yaml.safe_dump(dict(words), sort_keys=False, allow_unicode=True)


def words_of(relation: Relation) -> str:
    """Return a relation as a case keeps it: JSON."""
    return json.dumps(jsonable(relation.as_plain()), sort_keys=True)


def stack_name(name: str, faults: Iterable[str]) -> str:
    """Return what a stack is called, with the faults that are planted in it."""
    return "+".join((name, *faults))


def code_of(relation: Relation) -> str:
    """Return the SHA-256 of what a relation's follow-ups are made by: its own words, and the source files.

    Those are of its mutations, of all that these inherit from, and of what draws and applies them.
    """
    mutations = (type(mutation) for mutation in (*relation.mutate, *relation.baseline))
    bases = (base for mutation in mutations for base in mutation.__mro__ if base.__module__ not in ("builtins", "abc"))
    files = {inspect.getsourcefile(found) for found in (*bases, *_MODULES) if found is not None}
    digest = hashlib.sha256(words_of(relation).encode())
    for file in sorted(str(file) for file in files):
        digest.update(hashlib.sha256(Path(file).read_bytes()).digest())
    return digest.hexdigest()


def _noted(directory: Path) -> dict[str, str]:
    """Return the SHA-256 of drives by place, of a campaign whose cell a directory is."""
    home = directory.resolve().parents[1]
    if not is_campaign(home):
        return {}
    with CampaignStore(home / STORE, read_only=True) as store:
        return {drive.url: drive.sha256 for drive in store.plan().drives}


def steady(relation: Mapping[str, Any]) -> bool:
    """Whether violations say something of the change: they stand out, or control and sham were never violated.

    ``relation``: its row of a summary.
    """
    background = sum(relation.get(arm, {}).get("violated", 0) for arm in ("control", "sham"))
    return relation.get("outcome") == RelationOutcome.FAIL.value or background == 0


def _by_margin(row: tuple[float, Pair, Any]) -> tuple[float, Pair]:
    return row[:2]


def _case(run: CaseSource, pair: Pair, margin: float | None, words: str, code: str) -> FailureCase:
    bag, sha256 = run.drive(pair.episode)
    return FailureCase(bag, sha256, run.stack, pair, run.seed, words, code, margin)


#: Settings of a replay that a case has of its own, or that have no meaning for some pairs.
OWN = ("relations", "seed", "limit", "draws", "cases", "waivers", "pace")


@dataclass(frozen=True)
class Together:
    """Cases that one replay plays: of one bag at one place, with one seed, each relation in its n-th wording."""

    bag: str
    bag_sha256: str
    episode: int
    seed: int
    wording: int
    cases: tuple[FailureCase, ...]

    @property
    def name(self) -> str:
        """A name for a directory."""
        suffix = f"-{self.wording}" if self.wording else ""
        return f"{Path(self.bag).name}-{self.bag_sha256[:8]}-episode{self.episode}-seed{self.seed}{suffix}"

    def request(self, template: ReplayRequest, out: Path, bags: Path, cache: Path) -> ReplayRequest:
        """Return the replay; writes the relations as the cases have them.

        Raises MtError: the bag is not there, or is another one by now.
        ``template``: stack, transport and what else is not the cases' own. ``out``: directory for the relations.
        ``bags``: where bags behind URLs are copied to. ``cache``: of hashes of bags.
        """
        bag = fetched(Drive(self.episode, self.bag, self.bag_sha256, None), bags)
        if not exists(str(bag)):
            raise UsageError(f"{bag}: the bag is not there any more")
        if drives([str(bag)], cache)[0].sha256 != self.bag_sha256:
            raise UsageError(f"{bag}: the bag has another content than when the case failed")
        texts = {case.pair.relation: file_of(json.loads(case.relation)) for case in self.cases}
        return dataclasses.replace(
            template,
            bags=(str(bag),),
            first_episode=self.episode,
            seed=self.seed,
            relations=relation_files(tuple(texts), texts, out),
            draws=1 + max(int(case.pair.draw) for case in self.cases),
            first_pairs=tuple(str(case.pair) for case in self.cases),
            only_first=True,
        )


def together(cases: Iterable[FailureCase]) -> list[Together]:
    """Return cases as few replays, in the order of the cases; one has each relation in one wording only."""
    found: dict[tuple[str, str, int, int, int], list[FailureCase]] = {}
    wordings: dict[tuple[str, str, int, int, str], list[str]] = {}
    for case in cases:
        place = (case.bag, case.bag_sha256, case.pair.episode, case.seed)
        known = wordings.setdefault((*place, case.pair.relation), [])
        if case.relation not in known:
            known.append(case.relation)
        found.setdefault((*place, known.index(case.relation)), []).append(case)
    return [Together(*place, tuple(some)) for place, some in found.items()]


def expired(cases: Sequence[FailureCase]) -> list[FailureCase]:
    """Return those cases whose follow-up is made otherwise by now, or cannot be made any more."""
    now = {words: _code_now(words) for words in {case.relation for case in cases}}
    return [case for case in cases if now[case.relation] != case.code]


def _code_now(words: str) -> str:
    try:
        return code_of(relation_of(json.loads(words)))
    except MtError:  # what it names is gone, or takes other parameters
        return ""
