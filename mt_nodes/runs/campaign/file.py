# SPDX-License-Identifier: Apache-2.0
"""The file of a campaign: bags × relations × parameters × seeds × stacks, and how they are worked off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import build, param, plain
from mt_nodes.base.yaml_files import read_mapping, refuse_unknown
from mt_nodes.data.datasets.dataset_name import DatasetName, is_dataset
from mt_nodes.engine.plan import MODES, MOST_DRAWS, TRANSPORTS
from mt_nodes.runs.campaign.early_stop import StopEarly

MOST_WORKERS, MOST_RETRIES, MOST_MINUTES, MOST_PAIRS = 1024, 1000, 1e6, 10**12
_YAML = (".yaml", ".yml")


@dataclass(frozen=True)
class CampaignRelation:
    """A relation of the file: its name, and the values that parameters are to take, by ``<plugin>.<parameter>``."""

    name: str
    values: Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Budget:
    """When a campaign ends before its plan does."""

    minutes: float | None = param(None, low=0.0, high=MOST_MINUTES, help="no further item begins after so many")
    pairs: int | None = param(None, low=1, high=MOST_PAIRS, help="so many at most, in whole drives of the plan")


def _relations(value: Any, where: str) -> tuple[CampaignRelation, ...]:
    if not isinstance(value, list) or not value:
        raise UsageError(f"{where}: got {value!r}, expected a list of relations; `mt list relations` shows them")
    return tuple(_relation(row, f"{where}[{i}]") for i, row in enumerate(value))


def _relation(row: Any, where: str) -> CampaignRelation:
    if isinstance(row, str):
        return CampaignRelation(row, {})
    if not isinstance(row, dict) or not isinstance(row.get("id"), str):
        raise UsageError(
            f"{where}: got {row!r}, expected a name, or {{id: NAME, set: {{fog.visibility_m: [100, 200]}}}}"
        )
    refuse_unknown(row, ("id", "set"), where)
    given = row.get("set") or {}
    if not isinstance(given, dict):
        raise UsageError(f"{where}.set: got {given!r}, expected a mapping such as {{fog.visibility_m: [100, 200]}}")
    values = {str(name): tuple(v) if isinstance(v, list) else (v,) for name, v in given.items()}
    if empty := [name for name, options in values.items() if not options]:
        raise UsageError(f"{where}.set.{empty[0]}: got no value, expected one or more")
    return CampaignRelation(row["id"], values)


def _seeds(value: Any, where: str) -> tuple[int, ...]:
    rows = value if isinstance(value, list) else [value]
    if not rows or any(isinstance(seed, bool) or not isinstance(seed, int) for seed in rows):
        raise UsageError(f"{where}: got {value!r}, expected whole numbers such as [0, 1]")
    return _once(tuple(rows), where)


def _names(value: Any, where: str) -> tuple[str, ...]:
    rows = [value] if isinstance(value, str) else value
    if not isinstance(rows, list) or not rows or any(not isinstance(row, str) or not row for row in rows):
        raise UsageError(f"{where}: got {value!r}, expected a list of names or paths")
    return _once(tuple(rows), where)


def _once(rows: tuple[Any, ...], where: str) -> tuple[Any, ...]:
    if twice := [row for at, row in enumerate(rows) if row in rows[:at]]:
        raise UsageError(f"{where}: got {twice[0]} twice, expected it once")
    return rows


def _budget(value: Any, where: str) -> Budget:
    return build(Budget, value, where)


def _stop_early(value: Any, where: str) -> StopEarly | None:
    return None if value is None else build(StopEarly, value, where)


def _search(value: Any, where: str) -> None:
    if value is not None:
        raise UsageError(f"{where}: got {value!r}, expected null; `mt search` looks for violations")


@dataclass(frozen=True)
class Campaign:
    """What one file asks for; paths in it are relative to it."""

    bags: tuple[str, ...] = param((), convert=_names, help="paths, globs or URLs of recorded drives")
    relations: tuple[CampaignRelation, ...] = param((), convert=_relations, help="names, files, or {id: …, set: …}")
    stacks: tuple[str, ...] = param(("reference_detector",), convert=_names, help="names of shipped stacks, or files")
    faults: tuple[str, ...] = param((), help="planted in every reference stack that takes them")
    seeds: tuple[int, ...] = param((0,), convert=_seeds, help="what every draw depends on; one cell each")
    draws: int = param(1, low=1, high=MOST_DRAWS, help="follow-ups that each relation makes of each bundle")
    limit: int | None = param(None, low=1, help="bundles per drive at most")
    most_evidence: int | None = param(
        None, low=0, help="keep the evidence of at most N violated pairs of each relation and item; null: of all"
    )
    transport: str = param("ros", choices=TRANSPORTS, help=", ".join(TRANSPORTS))
    mode: str = param("twin", choices=MODES, help=", ".join(MODES))
    topics: Mapping[str, str] = param({}, help="choose among several topics of the bags, by role")
    transforms: str = param("", help="file of transforms that the bags lack")
    qos: str = param("", help="file of QoS profiles by topic of the stack")
    waivers: str = param("", help="file of violations that are known and accepted for now")
    workers: int = param(1, low=1, high=MOST_WORKERS, help="items at a time")
    retries: int = param(2, low=0, high=MOST_RETRIES, help="further tries of an item after infrastructure trouble")
    stall_minutes: float = param(
        60.0, low=0.1, high=MOST_MINUTES, help="an item whose journal has not grown for so long counts as lost"
    )
    budget: Budget = param(Budget(), convert=_budget, help="{minutes: …, pairs: …}")
    stop_early: StopEarly | None = param(None, convert=_stop_early, help="{when: …, alpha: …, tolerated_rate: …}")
    cluster: Mapping[str, Any] | None = param(None, help="where the workers are; null: this machine")
    search: None = param(None, convert=_search, help="null; `mt search` looks for violations")

    @classmethod
    def load(cls, path: Path) -> Campaign:
        """Read a file. Raises UsageError: naming the file, the key, what was got and what was expected."""
        campaign = build(cls, read_mapping(path), str(path))
        for name in ("bags", "relations"):
            if not getattr(campaign, name):
                raise UsageError(f"{path}: missing {name}")
        return campaign._with_absolute_paths(path.resolve().parent)

    def _with_absolute_paths(self, folder: Path) -> Campaign:
        """Return it with absolute paths."""

        def file(name: str) -> str:
            return str(folder / name) if name else ""

        def named(name: str) -> str:
            return file(name) if name.endswith(_YAML) else name

        return replace(
            self,
            bags=tuple(_absolute(bag, folder) for bag in self.bags),
            stacks=tuple(map(named, self.stacks)),
            relations=tuple(replace(row, name=named(row.name)) for row in self.relations),
            transforms=file(self.transforms),
            qos=file(self.qos),
            waivers=file(self.waivers),
            cluster=self._cluster_in(folder),
        )

    def _cluster_in(self, folder: Path) -> Mapping[str, Any] | None:
        """Return ``cluster`` with absolute paths of its certificates."""
        if self.cluster is None or not isinstance(tls := self.cluster.get("tls"), dict):
            return self.cluster
        return {**self.cluster, "tls": {name: str(folder / str(path)) for name, path in tls.items()}}

    def as_plain(self) -> dict[str, Any]:
        """Return what a file with the same content holds."""
        rows = [{"id": row.name, "set": {key: list(v) for key, v in row.values.items()}} for row in self.relations]
        return {**plain(self), "relations": rows}

    @classmethod
    def from_plain(cls, data: Mapping[str, Any], where: str) -> Campaign:
        """Read what :meth:`as_plain` made."""
        return build(cls, data, where)


def _absolute(bag: str, folder: Path) -> str:
    """Return a bag with an absolute path, a URL as it is."""
    if is_dataset(bag):
        return str(DatasetName.parse(bag).beside(folder))
    return bag if "://" in bag else str(folder / bag)
