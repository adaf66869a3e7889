# SPDX-License-Identifier: Apache-2.0
"""Stored cases as replays: one of each drive, place in its run and seed, of these pairs and their control and sham."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mt_nodes.base.errors import MtError, UsageError
from mt_nodes.data.datasets.dataset_name import exists
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.runs.campaign.campaign_plan import relation_files
from mt_nodes.runs.campaign.cases import code_of, file_of, relation_of
from mt_nodes.runs.campaign.failures import FailureCase
from mt_nodes.runs.campaign.inputs import drives, fetched
from mt_nodes.runs.campaign.item import Drive

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

        Args:
            template: stack, transport and what else is not the cases' own.
            out: directory for the relations. bags: where bags behind URLs are copied to. cache: of hashes of bags.
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
