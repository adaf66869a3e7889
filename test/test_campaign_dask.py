# SPDX-License-Identifier: Apache-2.0
"""Items on Dask's workers: results come home as from workers of our own, whoever is killed; other clusters as asked.

SSH, Kubernetes and SLURM are stood in for: what is tested there is what their deployers are given.
"""

from __future__ import annotations

import io
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

from mt_nodes.bags import write_bundles
from mt_nodes.campaign.clusters import asked_of, client_of
from mt_nodes.campaign.dask_pool import DaskPool
from mt_nodes.campaign.file import Campaign
from mt_nodes.campaign.inputs import drives
from mt_nodes.campaign.item import Item, ItemResult
from mt_nodes.campaign.local_pool import LocalPool
from mt_nodes.campaign.parcels import pack, unpack
from mt_nodes.campaign.planning import plan_of
from mt_nodes.campaign.pool import Lost, Pool
from mt_nodes.errors import InfrastructureError, UsageError
from mt_nodes.params import build
from mt_nodes.scene.drive import generate_drive

GENEROUS_S = 150.0
BUNDLES = 4


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> list[Item]:
    """One item for each of three drives."""
    place = tmp_path_factory.mktemp("drives")
    whole = list(generate_drive(BUNDLES + 3))
    for i in range(3):
        write_bundles(place / f"drive{i}", whole[i : i + BUNDLES])
    relations = ["noise_outside_roi_10", "noise_outside_roi_100"]
    asked = {"bags": [str(place / "drive*")], "relations": relations, "transport": "inprocess"}
    campaign = build(Campaign, asked, "test")
    plan = plan_of(campaign, drives(campaign.bags, place / "hashes"))
    return [plan.cells[0].item(drive) for drive in plan.drives]


@pytest.fixture(scope="module")
def undisturbed(items: list[Item], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What workers of our own make of them."""
    with closing(LocalPool(1, tmp_path_factory.mktemp("local"))) as pool:
        return told(done(pool, items))


def done(pool: Pool, items: Sequence[Item], look: Callable[[], None] = lambda: None) -> list[ItemResult]:
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


def verdicts(item: Item, home: Path) -> list[str]:
    lines = (home / item.key / "result.jsonl").read_text().splitlines()
    return sorted(line for line in lines if '"type": "verdict"' in line)


def test_a_worker_that_is_killed_changes_no_result(
    items: list[Item], undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    """Workers on one machine see the same files, so that the next one goes on where the killed one was."""
    killed: list[tuple[str, int]] = []
    with closing(DaskPool({"kind": "local", "workers": 2}, tmp_path)) as pool:
        pids = pool._client.run(os.getpid)

        def kill_one_that_is_at_something() -> None:
            for worker, tasks in () if killed else pool._client.processing().items():
                for key in (task.rpartition("-")[0] for task in tasks):
                    journal = tmp_path / key / "result.jsonl"
                    if journal.exists() and journal.read_text().count('"type": "verdict"') > 3:
                        os.kill(pids[worker], signal.SIGKILL)
                        unfinished = not (tmp_path / key / "summary.json").exists()
                        killed.append((key, 1)) if unfinished else None
                        return

        found = done(pool, items, kill_one_that_is_at_something)
    assert killed, "no worker was killed at its work: the test showed nothing"
    assert told(found) == undisturbed


def test_directories_come_home(items: list[Item], undisturbed: dict[str, Any], tmp_path: Path) -> None:
    """Through the scheduler, and through a folder behind a URL; the worker's own are taken away."""
    home, scratch, parcels = tmp_path / "home", tmp_path / "scratch", tmp_path / "parcels"
    asked = {"kind": "local", "workers": 1, "shared": False, "scratch": str(scratch)}
    for results in ("", f"file://{parcels}"):
        with closing(DaskPool({**asked, "results": results}, home)) as pool:
            assert told(done(pool, items[:1])) == {item.key: undisturbed[item.key] for item in items[:1]}
        item = items[0]
        assert len(verdicts(item, home)) == sum(part.offered for part in undisturbed[item.key][1])
        assert (home / item.key / "summary.json").is_file() and not (scratch / item.key).exists()
        shutil.rmtree(home / item.key)
    assert [p.name for p in parcels.iterdir()] == [f"{items[0].key}.tar.zst"]


def test_an_item_that_kills_every_worker_is_lost(
    items: list[Item], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dask

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        closing(DaskPool({"kind": "local", "workers": 1}, tmp_path)) as pool,
    ):
        pids = pool._client.run(os.getpid)
        monkeypatch.setattr("mt_nodes.campaign.dask_pool.dask_worker.do", _dies)
        pool.submit(items[0])
        ended = waited(pool)
        assert isinstance(ended, Lost) and ended.key == items[0].key
        assert ended.why.startswith("KilledWorker: "), ended.why
        assert pids


def test_an_item_whose_process_dies_is_lost(items: list[Item], tmp_path: Path) -> None:
    """The worker lives on, and does the next."""
    with closing(DaskPool({"kind": "local", "workers": 1}, tmp_path)) as pool:
        pool.submit(items[0])
        children: list[int] = []
        until_s = time.monotonic() + GENEROUS_S
        while not children and time.monotonic() < until_s:
            children = next(iter(pool._client.run(_children).values()))
        os.kill(children[0], signal.SIGKILL)
        ended = waited(pool)
        assert isinstance(ended, Lost) and "the process that did it was ended by SIGKILL" in ended.why
        assert done(pool, items[:1])


def waited(pool: Pool) -> ItemResult | Lost:
    until_s = time.monotonic() + GENEROUS_S
    while time.monotonic() < until_s:
        for ended in pool.finished(0.1):
            return ended
    raise AssertionError("nothing ended")


def _dies(*args: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _children() -> list[int]:
    from mt_nodes.campaign import dask_worker

    return [child._process.pid for child in dask_worker._children]


def test_a_scheduler_that_is_gone_is_told(items: list[Item], tmp_path: Path) -> None:
    from distributed import LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=3, dashboard_address=None) as cluster:
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
        client_of(cluster, asked_of(cluster), ending)


@pytest.mark.parametrize(
    ("cluster", "expected"),
    [
        (
            {"kind": "local", "workers": 3, "memory_limit": 0, "wait_s": 7},
            [("LocalCluster", {"n_workers": 3, "memory_limit": 0, "processes": True, "threads_per_worker": 1})],
        ),
        (
            {"kind": "ssh", "hosts": ["a", "b", "c"], "connect_options": {"username": "me"}, "scratch": "/disk"},
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
            [("SLURMCluster", {"queue": "long", "memory": "8GB", "cores": 2, "processes": 1}), ("scale", {})],
        ),
        ({"kind": "address", "address": "tcp://host:8786"}, []),
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


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"kind": "slrum"}, r"cluster\.kind: got 'slrum'; did you mean 'slurm'"),
        ({}, r"cluster\.kind: got ''; known: address, kubernetes, local, slurm, ssh"),
        ({"kind": "ssh", "hosts": ["one"]}, r"cluster\.hosts: got \['one'\], expected a list: the scheduler's host"),
        ({"kind": "address", "adress": "x"}, r"cluster: got .*adress.*expected address: tcp://HOST:PORT"),
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
