# SPDX-License-Identifier: Apache-2.0
"""Workers on other machines: from ``cluster:`` of a campaign file to a client of Dask, by its own deployers."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError, suggest
from mt_nodes.base.params import build, param
from mt_nodes.runs.campaign.cluster_security import (
    SharedKey,
    check_started,
    is_here,
    key_of,
    own_key,
    refuse_plain,
    warn,
)

#: Keys of ours; all others go to the deployer as they are.
_OWN = ("workers", "shared", "scratch", "results", "wait_s", "insecure")


@dataclass(frozen=True)
class ClusterSettings:
    """What of ``cluster:`` is the campaign's own.

    ``shared``: leader and workers see one file system under the same paths; default: only where they are one machine.
    """

    workers: int = param(1, low=1, high=100_000, help="workers to ask for, where they are ours to start")
    shared: bool = param(False, help="leader and workers see the same files under the same paths")
    scratch: str = param("", help="folder for items and bags on each worker's machine")
    results: str = param("", help="URL of a folder through which results come home; empty: through the scheduler")
    insecure: bool = param(False, help="allow connections that are neither encrypted nor authenticated")
    wait_s: float = param(300.0, low=1.0, high=86_400.0, unit="s", help="for the first worker")


Deployment = Callable[[Mapping[str, Any], ClusterSettings, ExitStack], Any]


def _local(rest: Mapping[str, Any], settings: ClusterSettings, ending: ExitStack) -> Any:
    given = {"processes": True, "threads_per_worker": 1, "dashboard_address": None}
    local = is_here(str(rest.get("host") or "localhost")) and not rest.get("interface")
    return _deployer("distributed", "LocalCluster")(
        n_workers=settings.workers, **{**given, **({} if local else _secured(settings)), **rest}
    )


def _ssh(rest: Mapping[str, Any], settings: ClusterSettings, ending: ExitStack) -> Any:
    hosts = rest.get("hosts")
    if not isinstance(hosts, list) or len(hosts) < 2:
        raise UsageError(f"cluster.hosts: got {hosts!r}, expected a list: the scheduler's host, then those of workers")
    deployer = _deployer("distributed", "SSHCluster")
    options = {"nthreads": 1, **dict(rest.get("worker_options", {}))}
    if settings.insecure:
        return deployer(**{**rest, "worker_options": options})
    import dask

    key = own_key()
    shared = SharedKey(key, hosts, rest.get("connect_options"))
    ending.callback(shared.take_back)
    shared.hand_out()
    # Their web pages have no passwords.
    scheduler = {"protocol": "tls://", "dashboard_address": "127.0.0.1:0", **dict(rest.get("scheduler_options", {}))}
    options = {"protocol": "tls://", "dashboard_address": "127.0.0.1:0", **options}
    with dask.config.set(shared.settings):
        return deployer(**{**rest, "worker_options": options, "scheduler_options": scheduler, "security": key})


def _kubernetes(rest: Mapping[str, Any], settings: ClusterSettings, ending: ExitStack) -> Any:
    warn("the network of a Kubernetes cluster")  # dask-kubernetes has no means against that
    return _deployer("dask_kubernetes.operator", "KubeCluster", "dask-kubernetes")(
        **{"n_workers": settings.workers, **rest}
    )


def _slurm(rest: Mapping[str, Any], settings: ClusterSettings, ending: ExitStack) -> Any:
    # With security on, dask-jobqueue makes a key and hands it on in files of mode 0600 in shared_temp_directory.
    given = {"cores": 1, "processes": 1, **({} if settings.insecure else {"security": True, "protocol": "tls://"})}
    cluster = _deployer("dask_jobqueue", "SLURMCluster", "dask-jobqueue")(**{**given, **rest})
    cluster.scale(settings.workers)
    return cluster


def _secured(settings: ClusterSettings) -> dict[str, Any]:
    return {} if settings.insecure else {"security": own_key(), "protocol": "tls://"}


KINDS: Mapping[str, Deployment] = {"local": _local, "ssh": _ssh, "kubernetes": _kubernetes, "slurm": _slurm}


def settings_of(cluster: Mapping[str, Any], workers: int = 1) -> ClusterSettings:
    """Return what of ``cluster:`` is the campaign's own. Raises UsageError: naming the key."""
    given = {key: value for key, value in cluster.items() if key in _OWN}
    return build(ClusterSettings, {"workers": workers, "shared": cluster.get("kind") == "local", **given}, "cluster")


def client_of(cluster: Mapping[str, Any], settings: ClusterSettings, ending: ExitStack) -> Any:
    """Return a client, and put its end, and that of what was started for it, on the stack.

    Raises UsageError: the kind is unknown or needs a package, or the deployer refuses what it is given.
    InfrastructureError: no worker came in time, or the scheduler cannot be reached.
    """
    kind = cluster.get("kind", "")
    rest = {key: value for key, value in cluster.items() if key not in (*_OWN, "kind")}
    client_class = _deployer("distributed", "Client")
    security: Any = None
    if kind == "address":
        if not {"address"} <= set(rest) <= {"address", "tls"} or not isinstance(rest["address"], str):
            raise UsageError(f"cluster: got {dict(rest)!r}, expected address: tls://HOST:PORT, and tls, nothing else")
        target: Any = rest["address"]
        refuse_plain(target, settings.insecure)
        security = key_of(rest.get("tls"))
    elif kind in KINDS:
        target = _started(kind, rest, settings, ending)
    else:
        raise UsageError(f"cluster.kind: got {kind!r}{suggest(str(kind), [*KINDS, 'address'])}")
    try:
        client = client_class(target, timeout=settings.wait_s, **({"security": security} if security else {}))
        ending.callback(client.close)
        client.wait_for_workers(1, timeout=settings.wait_s)
    except (TimeoutError, OSError) as error:
        raise InfrastructureError(f"cluster: {kind}: no worker within {settings.wait_s:g} s: {error}") from error
    return client


def _started(kind: str, rest: Mapping[str, Any], settings: ClusterSettings, ending: ExitStack) -> Any:
    """Start a cluster, put its end on the stack, and see who reaches it."""
    try:
        cluster = KINDS[kind](rest, settings, ending)
    except (TypeError, ValueError) as error:
        raise UsageError(f"cluster: {kind}: {error}") from error
    ending.callback(_end, cluster)
    if kind != "kubernetes":
        check_started(getattr(cluster, "scheduler_address", ""), settings.insecure)
    return cluster


def _end(cluster: Any) -> None:
    """End what was started. A slow worker is killed then, which is no news: it is idle, or can be gone on with."""
    nannies = logging.getLogger("distributed.nanny")
    before = nannies.level
    nannies.setLevel(logging.ERROR)
    try:
        cluster.close()
    finally:
        nannies.setLevel(before)


def _deployer(module: str, name: str, package: str = "") -> Any:
    """Import late. Raises UsageError: naming what to install."""
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        what = f"'mt_nodes[cluster]' {package}".strip()
        raise UsageError(f"cluster: needs {package or 'distributed'} ({error}); type: pip install {what}") from error
