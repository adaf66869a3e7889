# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt experiment moral-levels``."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.base.plain_data import PlainData
from mt_nodes.runs.moral.moral_request import MOST_CASES, MOST_RUNS, MOST_WORKERS, PRINCIPLES

LEVELS = ("object", "lidar", "camera")


@dataclass(frozen=True)
class LevelsRequest(PlainData):
    """Everything that the location of a module depends on, kept in ``run.json``."""

    principles: tuple[str, ...] = param(PRINCIPLES[:2], help="names of principles, or .yaml files")
    object: str = param("reference_planner", help="stack whose planner gets true objects")
    lidar: str = param("reference_pilot_lanes", help="stack with the same planner behind a LiDAR; '' for none")
    camera: str = param("reference_camera_pilot", help="stack with the same planner behind a camera; '' for none")
    faults: tuple[str, ...] = param((), help="plant a fault at every level whose stack takes it, see `mt list faults`")
    pool: str = param("levels", help="pool of dilemmas: shipped name, or .yaml file")
    cases: int = param(4, low=1, high=MOST_CASES, help="at most N cases of the pool per principle")
    runs: int = param(400, low=1, high=MOST_RUNS, help="at most N drives at each level")
    seed: int = param(0, low=0, help="seed of all random draws")
    workers: int = param(0, low=0, high=MOST_WORKERS, help="parallel processes; 0: one per core, at most 2")
    plugins: tuple[str, ...] = param((), help="directory with your own plugins")


def checked_levels(request: LevelsRequest) -> LevelsRequest:
    """Return the request. Raises UsageError: it cannot be carried out; says what to type instead."""
    if not request.object:
        raise UsageError("--object: got none, expected a stack: only true objects tell planning from perception")
    if not (request.lidar or request.camera):
        raise UsageError("--lidar, --camera: got neither, expected a stack for one of them")
    if not request.principles:
        raise UsageError("--principles: got none, expected one or more; `mt list principles` shows those that ship")
    return request
