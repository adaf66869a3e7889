# SPDX-License-Identifier: Apache-2.0
"""Workers on other machines, through Dask: items go out, results and their directories come home.

A worker that dies is Dask's to replace: the item is tried on others as often as its scheduler allows
(``distributed.scheduler.allowed-failures``), and is lost, for the leader to count, when it was at each death.
"""

from __future__ import annotations

import io
import queue
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.runs.campaign import dask_worker
from mt_nodes.runs.campaign.clusters import client_of, settings_of
from mt_nodes.runs.campaign.item import CampaignItem, ItemResult
from mt_nodes.runs.campaign.parcels import unpack
from mt_nodes.runs.campaign.pool import LostItem


class DaskPool:
    """A pool whose workers are Dask's.

    Raises UsageError: the cluster cannot be what the file says. InfrastructureError: no worker came.
    ``cluster``: of the campaign file, see :mod:`mt_nodes.runs.campaign.clusters`. ``home``: where the directories of
    items are to be, by key. ``workers``: to ask for where ``cluster`` does not say.
    """

    def __init__(self, cluster: Mapping[str, Any], home: Path, workers: int = 1) -> None:
        self._settings, self._home = settings_of(cluster, workers), home.resolve()
        self._ended: queue.Queue[Any] = queue.Queue()
        self._out: dict[str, tuple[Any, str]] = {}  # Dask's key -> future and the item's key
        self._submitted = 0
        with ExitStack() as ending:
            self._client = client_of(cluster, self._settings, ending)
            self._ending = ending.pop_all()

    def submit(self, item: CampaignItem) -> None:
        """Have an item done."""
        settings, name = self._settings, f"{item.key}-{self._submitted}"  # a name of its own: a retry is no repetition
        self._submitted += 1
        places = settings.scratch, str(self._home) if settings.shared else "", settings.results
        directories = [str(d) for d in plugins.directories()]
        future = self._client.submit(dask_worker.do, item, *places, directories, key=name, pure=False)
        self._out[name] = future, item.key
        future.add_done_callback(self._ended.put)

    def finished(self, timeout_s: float) -> Iterator[ItemResult | LostItem]:
        """Yield what ended; waits so long for the first at most."""
        try:
            ended = self._ended.get(timeout=timeout_s)
            while True:
                if (known := self._out.pop(ended.key, None)) is not None:
                    yield self._home_with(*known)
                ended = self._ended.get_nowait()
        except queue.Empty:
            return

    @property
    def free(self) -> int:
        """How many workers are without an item. Raises InfrastructureError: the scheduler is gone."""
        if self._client.status != "running":
            raise InfrastructureError("cluster: the scheduler is gone; `mt campaign --resume DIR` goes on elsewhere")
        return max(0, len(self._client.nthreads()) - len(self._out))

    def close(self) -> None:
        """Let go of the workers, and end those that were started for this campaign."""
        for future, _ in self._out.values():
            future.cancel()
        self._out.clear()
        self._ending.close()

    def _home_with(self, future: Any, key: str) -> ItemResult | LostItem:
        try:
            answer = future.result()
        # A worker's error is raised here as it was there, whatever it was; KilledWorker, where workers died of it.
        except Exception as error:  # noqa: BLE001
            return LostItem(key, f"{type(error).__name__}: {error}")
        try:
            self._bring(answer, self._home / key)
        except InfrastructureError as error:
            return LostItem(key, str(error))
        result: ItemResult = answer.result
        return result

    def _bring(self, answer: dask_worker.ItemParcel, directory: Path) -> None:
        if answer.parcel is not None:
            unpack(io.BytesIO(answer.parcel), directory)
        elif answer.url:
            import fsspec

            try:
                with fsspec.open(answer.url, "rb") as parcel:
                    unpack(parcel, directory)
            except OSError as error:
                raise InfrastructureError(f"{answer.url}: cannot be read: {error}") from error
