# SPDX-License-Identifier: Apache-2.0
"""Generated drives with as many different frames as an experiment asks for, made by several processes."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from mt_nodes.base.errors import InfrastructureError
from mt_nodes.base.processes import die_with_parent
from mt_nodes.world.scene.lidar import LidarModel

#: Frames of one drive: ten seconds at 10 Hz, after which the street is another one.
FRAMES_EACH = 100
#: Seed of the first drive; that of `mt demo` and its neighbours stay for other things.
FIRST_SEED = 100
#: Curvature of every second road; the others are straight.
BEND_1PM = 1.0 / 80.0


def generate_drives(
    place: Path, frames: int, workers: int = 0, lidar: LidarModel | None = None, each: int = FRAMES_EACH
) -> tuple[Path, ...]:
    """Write bags with so many different frames, and return their paths; those that are there already are left.

    The same arguments give the same bytes, however many processes make them.
    Raises InfrastructureError: a process ended before its drive was finished, for want of memory for example.
    ``place``: directory of the bags; may be new. ``frames``: of all drives together, at least 1. ``workers``: number of
    processes; 0: one per processor. ``lidar``: 64 beams by default. ``each``: frames of one drive.
    """
    place.mkdir(parents=True, exist_ok=True)
    counts = [min(each, frames - begin) for begin in range(0, frames, each)]
    paths = tuple(place / f"drive_{FIRST_SEED + i}_{count}" for i, count in enumerate(counts))
    todo = [(i, path, count) for i, (path, count) in enumerate(zip(paths, counts, strict=True)) if not path.exists()]
    if not todo:
        return paths
    most = min(workers or len(os.sched_getaffinity(0)), len(todo))
    with ProcessPoolExecutor(most, mp_context=get_context("spawn"), initializer=_begin) as pool:
        futures = [pool.submit(write_drive, path, count, FIRST_SEED + i, lidar) for i, path, count in todo]
        try:
            for future in futures:
                future.result()
        except BrokenProcessPool as error:
            raise InfrastructureError(
                f"{place}: a process that generates drives ended; is there enough memory?"
            ) from error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    return paths


def write_drive(path: Path, frames: int, seed: int, lidar: LidarModel | None) -> None:
    """Write one drive; every second seed has a straight road. The bag gets its name when it is whole."""
    from mt_nodes.data.bags.bundles import write_bundles
    from mt_nodes.world.scene.drive import generate_drive

    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    write_bundles(unfinished, generate_drive(frames, seed, lidar, bend_1pm=BEND_1PM if seed % 2 else 0.0))
    unfinished.rename(path)


def _begin() -> None:
    """Leave an interruption at the terminal to the process that waits for us, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    die_with_parent()
