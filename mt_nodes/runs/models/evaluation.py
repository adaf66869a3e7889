# SPDX-License-Identifier: Apache-2.0
"""How far a model is from what was driven, and how far who always says the same would be. Needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats

QUANTITIES = (("speed", "m/s"), ("steering", "rad"))


@dataclass(frozen=True)
class Errors:
    """Errors of one quantity.

    Attributes:
        quantity, unit: ``speed`` in m/s, or ``steering`` in rad.
        windows: how many were asked about.
        mae, rmse, bias, p95: mean absolute error, root of the mean squared one, mean of (said - driven), and what 95 %
            of the absolute errors do not exceed.
        constant_mae: mean absolute error of whoever always says the median of what was driven. A model that is not
            below it has learned nothing of this quantity.
    """

    quantity: str
    unit: str
    windows: int
    mae: float
    rmse: float
    bias: float
    p95: float
    constant_mae: float


def errors_of(predicted: Floats, driven: Floats) -> list[Errors]:
    """Return the errors of speed and steering, (M, 2) each.

    Raises ValueError: there is nothing to compare, or the two differ in shape.
    """
    if predicted.shape != driven.shape or not len(predicted):
        got = f"{predicted.shape} said and {driven.shape} driven"
        raise ValueError(f"got {got}, expected as many of both, one at least")
    errors = []
    for i, (quantity, unit) in enumerate(QUANTITIES):
        off = predicted[:, i] - driven[:, i]
        size, constant = np.abs(off), np.abs(driven[:, i] - np.median(driven[:, i]))
        rmse, p95 = float(np.sqrt((off**2).mean())), float(np.quantile(size, 0.95))
        means = float(size.mean()), rmse, float(off.mean()), p95, float(constant.mean())
        errors.append(Errors(quantity, unit, len(off), *means))
    return errors
