# SPDX-License-Identifier: Apache-2.0
"""What runs on a Dask worker: an item at a time, in a process of its own, and its directory packed to go home.

Dask runs tasks in threads. An item handles signals and leases a ROS domain, which is for the main thread of a process.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

from mt_nodes.base.directories import own_temporary_directory
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.processes import how_it_ended
from mt_nodes.runs.campaign.item import CampaignItem, ItemResult
from mt_nodes.runs.campaign.local_pool import serve
from mt_nodes.runs.campaign.parcels import pack

#: How long a child that closed its end may take to be gone.
_END_S = 60.0
#: One item at a time, however many threads the worker has.
_turn = threading.Lock()


@dataclass(frozen=True)
class ItemParcel:
    """What comes home of an item: the result, and its directory: packed, behind a URL, or neither (it is there)."""

    result: ItemResult
    parcel: bytes | None = None
    url: str = ""


def do(item: CampaignItem, scratch: str, home: str, results: str, directories: Sequence[str]) -> ItemParcel:
    """Do an item on this worker.

    Raises InfrastructureError: the process that did it died, or its parcel could not be put where it should be.

    Args:
        scratch: folder on this machine for items and bags; empty: one of this user's below the temporary folder.
        home: folder that both leader and workers see, empty when there is none; it takes the place of ``scratch``.
        results: URL of a folder to put parcels into; empty: they go to the leader by way of the scheduler.
    """
    place = Path(home or scratch or own_temporary_directory("mt_campaign"))
    with _turn:
        result = _child(place, tuple(directories)).do(item)
    if home:
        return ItemParcel(result)
    return _packed(result, place / item.key, results)


def _packed(result: ItemResult, directory: Path, results: str) -> ItemParcel:
    """Send a directory off; what went well is not needed here any more."""
    if results:
        answer = ItemParcel(result, url=f"{results.rstrip('/')}/{result.key}.tar.zst")
        _put(directory, answer.url)
    else:
        parcel = io.BytesIO()
        pack(directory, parcel)
        answer = ItemParcel(result, parcel.getvalue())
    if not result.trouble:
        shutil.rmtree(directory, ignore_errors=True)
    return answer


def _put(directory: Path, url: str) -> None:
    import fsspec

    try:
        with fsspec.open(url, "wb", auto_mkdir=True) as target:
            pack(directory, target)
    # Clients of networks raise errors of any kind.
    except Exception as error:
        raise InfrastructureError(f"{url}: cannot be written: {type(error).__name__}: {error}") from error


class _Child:
    """A process that does items one after another, and ends with this one."""

    def __init__(self, scratch: Path, directories: tuple[str, ...]) -> None:
        self.options = scratch, directories
        self._pipe, theirs = Pipe()
        with theirs:
            number = theirs.fileno()
            command = [
                sys.executable,
                "-m",
                __spec__.name,
                str(number),
                pickle.dumps((*self.options, os.getpid())).hex(),
            ]
            # No Process of multiprocessing: Dask's workers are daemons, which may have none.
            self._process = subprocess.Popen(command, pass_fds=[number], stdin=subprocess.DEVNULL)

    def do(self, item: CampaignItem) -> ItemResult:
        """Have an item done."""
        try:
            self._pipe.send(item)
            answer: ItemResult = self._pipe.recv()
        except (EOFError, OSError) as error:
            raise InfrastructureError(f"the process that did it {how_it_ended(self.end())}") from error
        return answer

    def end(self) -> int:
        """End the process and return how it ended."""
        self._pipe.close()
        try:
            return self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return not self._pipe.closed and self._process.poll() is None


_children: list[_Child] = []


def _child(scratch: Path, directories: tuple[str, ...]) -> _Child:
    """Return this worker's child for a place, another one where it died or was for another place."""
    scratch.mkdir(parents=True, exist_ok=True)
    if _children and not (_children[0].alive and _children[0].options == (scratch, directories)):
        _children.pop().end()
    if not _children:
        _children.append(_Child(scratch, directories))
    return _children[0]


def main(arguments: Sequence[str]) -> None:
    """Be the child: the number of the inherited end of a pipe, and what is asked, pickled by the parent."""
    scratch, directories, parent = pickle.loads(bytes.fromhex(arguments[1]))
    with contextlib.suppress(KeyboardInterrupt):
        serve(Connection(int(arguments[0])), scratch, [Path(d) for d in directories], parent)


if __name__ == "__main__":
    main(sys.argv[1:])
