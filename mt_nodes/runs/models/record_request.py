# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt models record``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mt_nodes.base.params import Param, param


@dataclass(frozen=True)
class RecordRequest:
    """What is to be recorded."""

    scenarios: tuple[str, ...] = field(metadata={"param": Param(help="shipped scenario, or .scenario or .xosc file")})
    stack: str = param("pilotnet", help="stack whose camera records the images: shipped name, or .yaml file")
    driver: str = param("", help="weights of a model that drives, too, while the expert labels the images")
    share: float = param(0.8, low=0.0, high=1.0, help="share of the time that this model drives")
    drives: int = param(1, low=1, high=10_000, help="drives per scenario, each with new random values")
    push_mps2: float = param(
        1.0, low=0.0, high=5.0, unit="m/s²", help="largest sideways disturbance of the expert, m/s²"
    )
    cruise_mps: float = param(8.0, low=1.0, high=40.0, unit="m/s", help="speed of the expert on a straight road, m/s")
    jitter: float = param(1.0, low=0.0, high=10.0, help="how much the start positions of drives differ; 0: not at all")
    seed: int = param(0, help="seed of all random draws")
    edits: tuple[str, ...] = param((), help="relation whose change of the image leaves the labels as they are")
    edited: float = param(0.3, low=0.0, high=1.0, help="share of the images that one of these relations changes")
    parameters: Mapping[str, str] = param({}, help="set a parameter of the scenario files")
