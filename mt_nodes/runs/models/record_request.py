# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt models record``."""

from __future__ import annotations

from dataclasses import dataclass, field

from mt_nodes.base.params import Param, param


@dataclass(frozen=True)
class RecordRequest:
    """What is to be recorded."""

    scenarios: tuple[str, ...] = field(metadata={"param": Param(help="scenario file, or name of a shipped one")})
    stack: str = param("pilotnet", help="whose camera takes the pictures: name of a shipped stack or a .yaml file")
    driver: str = param("", help="weights of a model that drives, too, while the expert says what it would have done")
    share: float = param(0.8, low=0.0, high=1.0, help="of the time that this model drives")
    drives: int = param(1, low=1, high=10_000, help="times each scenario is driven, ranges drawn anew")
    push_mps2: float = param(1.0, low=0.0, high=5.0, unit="m/s²", help="most by which the expert is pushed aside")
    cruise_mps: float = param(8.0, low=1.0, high=40.0, unit="m/s", help="of the expert, where the road is straight")
    jitter: float = param(1.0, low=0.0, high=10.0, help="by how much drives differ in where they begin")
    seed: int = param(0, help="what every draw depends on")
