# SPDX-License-Identifier: Apache-2.0
"""The unit of work of a campaign, and what comes of it: plain data that goes to any worker and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mt_nodes.base.plain_data import PlainData
from mt_nodes.engine.plan import ReplayRequest

#: Of a request: where things lie does not change what comes of it.
_PLACES = ("bags", "relations", "stack", "plugins", "transforms", "qos", "waivers", "most_evidence")


@dataclass(frozen=True)
class Drive:
    """One bag of a campaign.

    ``number``: its place in the plan, which is the episode of its pairs. ``bundles``: how many it gives, None when that
    is not known without reading it.
    """

    number: int
    url: str
    sha256: str
    bundles: int | None = None


@dataclass(frozen=True)
class CampaignItem(PlainData):
    """One drive × one cell × some relations; the same item done twice gives the same verdict lines.

    Attributes:
        key: SHA-256 of everything that its verdicts depend on, see :func:`item_key`.
        cell: name of the cell, ``<stack>-seed<seed>``.
        stack: name of a shipped stack or path of its file. seed: what every draw depends on.
        relations: ids of what is offered.
        request: of the replay; its bag is the drive's URL and its ``first_episode`` the drive's number.
        texts: YAML of those relations that do not ship, by id, so that a worker needs no file of the leader's.
        versions: SHA-256 of what stands behind a name: relations by id, what else there is with ``@``.
    """

    key: str
    cell: str
    drive: Drive
    stack: str
    seed: int
    relations: tuple[str, ...]
    request: ReplayRequest
    texts: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def make(
        cls, cell: str, drive: Drive, request: ReplayRequest, texts: Mapping[str, str], versions: Mapping[str, str]
    ) -> CampaignItem:
        """Make an item of the request for its relations, which are given by id."""
        own = replace(request, bags=(drive.url,), first_episode=drive.number, report=False)
        item = cls("", cell, drive, request.stack, request.seed, request.relations, own, texts, versions)
        return replace(item, key=item_key(item))

    def narrowed(self, relations: tuple[str, ...]) -> CampaignItem:
        """Return the item for some of its relations; verdicts of one do not depend on which others there are."""
        texts = {name: text for name, text in self.texts.items() if name in relations}
        versions = {name: sha for name, sha in self.versions.items() if name in relations or name[0] == "@"}
        return CampaignItem.make(self.cell, self.drive, replace(self.request, relations=relations), texts, versions)


def item_key(item: CampaignItem) -> str:
    """Return the SHA-256 over the canonical JSON of what an item's verdicts depend on, as hexadecimal text."""
    usual = ReplayRequest(bags=()).as_plain()
    parameters = item.request.as_plain()
    # What is as usual is left out, so that a key outlives parameters that are added.
    request = {name: value for name, value in parameters.items() if name not in _PLACES and value != usual[name]}
    known = {
        "drive": item.drive.sha256,
        "episode": item.drive.number,
        "relations": item.relations,
        "request": request,
        "versions": dict(item.versions),
    }
    return hashlib.sha256(json.dumps(known, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@dataclass(frozen=True)
class ItemTally:
    """Decided and violated pairs of one arm."""

    decided: int
    violated: int


@dataclass(frozen=True)
class PartResult:
    """What came of one relation in one item, with the control and sham lines that were judged for it.

    ``frames``: in which a pair of its own was decided; draws of one frame are no further frames. ``work_s``: what its
    follow-ups took to be made, proved and answered in the last try, which differs from worker to worker.
    """

    relation: str
    offered: int
    outcomes: Mapping[str, int]
    own: ItemTally
    control: ItemTally
    sham: ItemTally
    frames: int
    work_s: float = field(default=0.0, compare=False)

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> PartResult:
        """Read what ``dataclasses.asdict`` made."""
        arms = {arm: ItemTally(**data[arm]) for arm in ("own", "control", "sham")}
        return cls(**{**data, **arms})


@dataclass(frozen=True)
class ItemCpu:
    """Processor time of an item that was done in one go.

    ``seconds``: of all that was done, in all its processes. ``relations``: what went into the follow-ups of each and
    into judging them, in seconds, and their verdicts; control and sham by their own names.
    """

    seconds: float
    relations: Mapping[str, tuple[float, int]]

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> ItemCpu:
        """Read what ``dataclasses.asdict`` made."""
        return cls(data["seconds"], {name: (cpu_s, pairs) for name, (cpu_s, pairs) in data["relations"].items()})


@dataclass(frozen=True)
class ItemResult:
    """What came of an item.

    ``sha256``: of the sorted verdict lines. ``seconds``: that it took, wall time. ``worker``: who did it. ``trouble``:
    infrastructure trouble, empty when there was none. ``deaths``: how the stack died, each time; on a former try, too.
    ``cpu``: None where it was not measured.
    """

    key: str
    exit_code: int
    parts: tuple[PartResult, ...]
    sha256: str
    seconds: float
    worker: str
    trouble: str = ""
    deaths: tuple[str, ...] = ()
    cpu: ItemCpu | None = None
