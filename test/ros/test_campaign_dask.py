# SPDX-License-Identifier: Apache-2.0
"""Items on Dask's workers: results come home as from workers of our own, whoever is killed; other clusters as asked.

SSH, Kubernetes and SLURM are stood in for: what is tested there is what their deployers are given.
"""

from __future__ import annotations

import io
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from campaign_runs import drives

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.params import build
from mt_nodes.runs.campaign.campaign_plan import plan_of
from mt_nodes.runs.campaign.clusters import client_of, settings_of
from mt_nodes.runs.campaign.conductor import pool_of
from mt_nodes.runs.campaign.dask_pool import DaskPool
from mt_nodes.runs.campaign.file import Campaign
from mt_nodes.runs.campaign.inputs import drives as found
from mt_nodes.runs.campaign.item import CampaignItem, ItemResult
from mt_nodes.runs.campaign.item_execution import perform
from mt_nodes.runs.campaign.parcels import pack, unpack
from mt_nodes.runs.campaign.pool import LostItem, Pool

GENEROUS_S = 150.0
BUNDLES = 8
RELATIONS = ["noise_outside_roi_10", "noise_outside_roi_100"]


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[CampaignItem]:
    """One item for each of three drives."""
    place = tmp_path_factory.mktemp("drives")
    asked = {"bags": list(map(str, drives(place, 3, BUNDLES))), "relations": RELATIONS, "transport": "inprocess"}
    campaign = build(Campaign, asked, "test")
    plan = plan_of(campaign, found(campaign.bags, place / "hashes"))
    return [plan.cells[0].item(drive) for drive in plan.drives]


@pytest.fixture(scope="module")
def undisturbed(items: list[CampaignItem], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What comes of them where nobody dies, and no Dask is."""
    place = tmp_path_factory.mktemp("here")
    return told([perform(item, place) for item in items])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskPool]:
    """A pool that starts two workers, to which the pools of other tests go, too: starting some takes long."""
    with closing(DaskPool({"kind": "local"}, tmp_path_factory.mktemp("shared"), workers=2)) as pool:
        assert pool.free == 2, "as many as are asked for"
        yield pool


def at(pool: DaskPool, **asked: Any) -> dict[str, Any]:
    """Return what a campaign says that is to have workers that are there already."""
    return {"kind": "address", "address": pool._client.scheduler.address, **asked}


def done(pool: Pool, items: Sequence[CampaignItem], look: Callable[[], None] = lambda: None) -> list[ItemResult]:
    """Have items done; ``look`` is called now and then."""
    waiting, ended = list(items), []
    until_s = time.monotonic() + GENEROUS_S
    while len(ended) < len(items):
        assert time.monotonic() < until_s, f"{len(ended)} of {len(items)} ended in {GENEROUS_S} s"
        while waiting and pool.free:
            pool.submit(waiting.pop(0))
        for one in pool.finished(0.05):
            assert isinstance(one, ItemResult) and not one.trouble, one
            ended.append(one)
        look()
    return ended


def told(results: Sequence[ItemResult]) -> dict[str, Any]:
    """What must be alike: all but who did it, and how long it took."""
    return {r.key: (r.exit_code, r.parts, r.sha256) for r in results}


def verdicts(item: CampaignItem, home: Path) -> list[str]:
    lines = (home / item.key / "result.jsonl").read_text().splitlines()
    return sorted(line for line in lines if '"type": "verdict"' in line)


def test_a_worker_that_is_killed_changes_no_result(
    items: list[CampaignItem], undisturbed: dict[str, Any], shared: DaskPool
) -> None:
    """Workers on one machine see the same files, so that the next one goes on where the killed one was."""
    killed: list[str] = []
    pids, home = shared._client.run(os.getpid), shared._home

    def kill_one_that_is_at_something() -> None:
        for worker, tasks in () if killed else shared._client.processing().items():
            for key in (task.rpartition("-")[0] for task in tasks):
                journal = home / key / "result.jsonl"
                if journal.exists() and journal.read_text().count('"type": "verdict"') > 3:
                    os.kill(pids[worker], signal.SIGKILL)
                    unfinished = not (home / key / "summary.json").exists()
                    killed.append(key) if unfinished else None
                    return

    ended = done(shared, items, kill_one_that_is_at_something)
    assert killed, "no worker was killed at its work: the test showed nothing"
    assert told(ended) == undisturbed


def test_directories_come_home(
    items: list[CampaignItem], undisturbed: dict[str, Any], shared: DaskPool, tmp_path: Path
) -> None:
    """Through the scheduler, and through a folder behind a URL; the worker's own are taken away."""
    home, scratch, parcels = tmp_path / "home", tmp_path / "scratch", tmp_path / "parcels"
    item = items[0]
    for results in ("", f"file://{parcels}"):
        with closing(DaskPool(at(shared, scratch=str(scratch), results=results), home)) as pool:
            assert told(done(pool, [item])) == {item.key: undisturbed[item.key]}
        assert len(verdicts(item, home)) == sum(part.offered for part in undisturbed[item.key][1])
        assert (home / item.key / "summary.json").is_file() and not (scratch / item.key).exists()
        shutil.rmtree(home / item.key)
    assert [p.name for p in parcels.iterdir()] == [f"{item.key}.tar.zst"]


def test_an_item_whose_process_dies_is_lost(items: list[CampaignItem], shared: DaskPool, tmp_path: Path) -> None:
    """The worker lives on, and does the next."""
    workers = shared._client.run(os.getpid)
    with closing(DaskPool(at(shared, shared=True), tmp_path)) as pool:
        pool.submit(items[0])
        until_s, children = time.monotonic() + GENEROUS_S, list[int]()
        while not children and time.monotonic() < until_s:
            children = [pid for found in pool._client.run(_children, str(tmp_path)).values() for pid in found]
        os.kill(children[0], signal.SIGKILL)
        ended = waited(pool)
        assert isinstance(ended, LostItem) and "the process that did it was ended by SIGKILL" in ended.why
        assert done(pool, items[:1])
    assert shared._client.run(os.getpid) == workers


def test_an_item_that_kills_every_worker_is_lost(
    items: list[CampaignItem], shared: DaskPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared._client.cluster.scheduler, "allowed_failures", 0)
    monkeypatch.setattr("mt_nodes.runs.campaign.dask_pool.dask_worker.do", _dies)
    shared.submit(items[0])
    ended = waited(shared)
    assert isinstance(ended, LostItem) and ended.key == items[0].key
    assert ended.why.startswith("KilledWorker: "), ended.why


def waited(pool: Pool) -> ItemResult | LostItem:
    until_s = time.monotonic() + GENEROUS_S
    while time.monotonic() < until_s:
        for ended in pool.finished(0.1):
            return ended
    raise AssertionError("nothing ended")


def _dies(*args: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _children(place: str) -> list[int]:
    from mt_nodes.runs.campaign import dask_worker

    return [child._process.pid for child in dask_worker._children if str(child.options[0]) == place]


def test_a_scheduler_that_is_gone_is_told(items: list[CampaignItem], tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=3, processes=False, dashboard_address=":0") as cluster:
        pool = DaskPool({"kind": "address", "address": cluster.scheduler_address, "shared": True}, tmp_path)
        assert pool.free == 1, "one item a worker, however many threads it has"
        pool._client.close()
        with pytest.raises(InfrastructureError, match=r"the scheduler is gone"):
            _ = pool.free
        pool.close()


def test_a_parcel_is_put_in_the_place_of_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "from/evidence").mkdir(parents=True)
    (tmp_path / "from/evidence/pair.mcap").write_bytes(b"new")
    (tmp_path / "from/.lock").touch()
    parcel = io.BytesIO()
    pack(tmp_path / "from", parcel)
    (tmp_path / "to").mkdir()
    (tmp_path / "to/stale").touch()
    (tmp_path / ".to.new").mkdir()
    (tmp_path / ".to.new/torn").touch()
    for _ in range(2):
        unpack(io.BytesIO(parcel.getvalue()), tmp_path / "to")
        assert [str(p.relative_to(tmp_path / "to")) for p in sorted((tmp_path / "to").rglob("*"))] == [
            "evidence",
            "evidence/pair.mcap",
        ]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["from", "to"]


@pytest.mark.parametrize("cut", [0, 10, -8])
def test_a_damaged_parcel_leaves_what_is_there(cut: int, tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/file").write_bytes(os.urandom(100_000))
    parcel = io.BytesIO()
    pack(tmp_path / "from", parcel)
    (tmp_path / "to").mkdir()
    (tmp_path / "to/kept").touch()
    with pytest.raises(InfrastructureError, match=r"to: what came from its worker is damaged"):
        unpack(io.BytesIO(parcel.getvalue()[:cut]), tmp_path / "to")
    assert [p.name for p in (tmp_path / "to").iterdir()] == ["kept"]


class StandIn:
    """A deployer that remembers what it was given."""

    given: list[Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.given.append((type(self).__name__, args, kwargs))

    def scale(self, workers: int) -> None:
        self.given.append(("scale", (workers,), {}))

    def close(self) -> None:
        self.given.append(("close", (), {}))

    def wait_for_workers(self, count: int, timeout: float) -> None:
        self.given.append(("wait", (count, timeout), {}))


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What deployers and client were given."""
    seen: list[Any] = []

    def stand_in(module: str, *names: str) -> None:
        made = ModuleType(module)
        for name in names:
            setattr(made, name, type(name, (StandIn,), {"given": seen}))
        monkeypatch.setitem(sys.modules, module, made)

    stand_in("distributed", "Client", "LocalCluster", "SSHCluster")
    stand_in("dask_kubernetes.operator", "KubeCluster")
    stand_in("dask_jobqueue", "SLURMCluster")
    yield seen


def connected(cluster: dict[str, Any]) -> None:
    with ExitStack() as ending:
        client_of(cluster, settings_of(cluster), ending)


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (
            {"kind": "local", "workers": 3, "memory_limit": 0, "wait_s": 7},
            [("LocalCluster", {"n_workers": 3, "memory_limit": 0, "processes": True, "threads_per_worker": 1})],
        ),
        (
            {"kind": "ssh", "hosts": ["a", "b", "c"], "connect_options": {"username": "me"}, "insecure": True},
            [
                (
                    "SSHCluster",
                    {
                        "hosts": ["a", "b", "c"],
                        "connect_options": {"username": "me"},
                        "worker_options": {"nthreads": 1},
                    },
                )
            ],
        ),
        (
            {"kind": "kubernetes", "workers": 5, "name": "mt", "image": "img"},
            [("KubeCluster", {"n_workers": 5, "name": "mt", "image": "img"})],
        ),
        (
            {"kind": "slurm", "workers": 9, "queue": "long", "memory": "8GB", "cores": 2},
            [
                (
                    "SLURMCluster",
                    {
                        "queue": "long",
                        "memory": "8GB",
                        "cores": 2,
                        "processes": 1,
                        "security": True,
                        "protocol": "tls://",
                    },
                ),
                ("scale", {}),
            ],
        ),
        ({"kind": "address", "address": "tcp://host:8786", "insecure": True}, []),
    ],
)
def test_deployers_get_what_the_file_says(given: list[Any], cluster: dict[str, Any], expected: list[Any]) -> None:
    connected(cluster)
    started = [(name, {k: v for k, v in kwargs.items() if k != "dashboard_address"}) for name, _, kwargs in given]
    wait_s = float(cluster.get("wait_s", 300.0))
    made = [*expected, ("Client", {"timeout": wait_s}), ("wait", {}), ("close", {})]
    assert started == made + ([("close", {})] if expected else []), "what was started is ended, and nothing else"
    assert ("wait", (1, wait_s), {}) in given
    if cluster["kind"] == "slurm":
        assert ("scale", (9,), {}) in given
    if cluster["kind"] == "address":
        assert given[0][1] == ("tcp://host:8786",)


@pytest.mark.parametrize(("cluster", "count"), [({"kind": "local"}, 3), ({"kind": "local", "workers": 5}, 5)])
def test_the_campaigns_workers_are_asked_for_unless_the_cluster_says_how_many(
    given: list[Any], cluster: dict[str, Any], count: int, tmp_path: Path
) -> None:
    asked = {"bags": ["drive"], "relations": RELATIONS, "workers": 3, "cluster": cluster}
    pool_of(build(Campaign, asked, "test"), tmp_path).close()
    assert [kwargs["n_workers"] for name, _, kwargs in given if name == "LocalCluster"] == [count]


def test_that_a_slow_worker_is_killed_at_the_end_is_not_told(
    given: list[Any], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nannies = logging.getLogger("distributed.nanny")
    monkeypatch.setattr(sys.modules["distributed"].LocalCluster, "close", lambda self: nannies.warning("killing"))
    connected({"kind": "local"})
    nannies.warning("what comes at other times")
    assert [row.getMessage() for row in caplog.records] == ["what comes at other times"]


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"kind": "slrum"}, r"cluster\.kind: got 'slrum'; did you mean 'slurm'"),
        ({}, r"cluster\.kind: got ''; known: address, kubernetes, local, slurm, ssh"),
        ({"kind": "ssh", "hosts": ["one"]}, r"cluster\.hosts: got \['one'\], expected a list: the scheduler's host"),
        ({"kind": "address", "adress": "x"}, r"cluster: got .*adress.*expected address: tls://HOST:PORT"),
        ({"kind": "local", "workers": 0}, r"cluster\.workers: got 0"),
        ({"kind": "local", "wait_s": "long"}, r"cluster\.wait_s"),
    ],
)
def test_clusters_that_cannot_be_are_refused(cluster: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        connected(cluster)


def test_a_deployer_that_refuses_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(**kwargs: Any) -> None:
        raise TypeError("unexpected keyword argument 'quue'")

    monkeypatch.setitem(sys.modules, "dask_jobqueue", SimpleNamespace(SLURMCluster=refuses))
    with pytest.raises(UsageError, match=r"cluster: slurm: unexpected keyword argument 'quue'"):
        connected({"kind": "slurm", "quue": "long"})


@pytest.mark.parametrize(("kind", "package"), [("kubernetes", "dask-kubernetes"), ("slurm", "dask-jobqueue")])
def test_a_package_that_is_missing_is_named(kind: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("dask_kubernetes", "dask_kubernetes.operator", "dask_jobqueue"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf"needs {package} .*pip install 'mt_nodes\[cluster\]' {package}"):
        connected({"kind": kind})


def test_no_scheduler_is_told(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match=r"cluster: address: no worker within 1 s"):
        DaskPool({"kind": "address", "address": "tcp://127.0.0.1:1", "wait_s": 1}, tmp_path)
