# SPDX-License-Identifier: Apache-2.0
"""How a model is trained, and what came out of each round. Needs no PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.params import param
from mt_nodes.runs.models.preprocessing import Bytes
from mt_nodes.runs.models.samples import Indices

#: A quantity that hardly varies is not blown up: metres per second, radians.
_LEAST_SPREAD = (0.1, 0.01)


@dataclass(frozen=True)
class Recipe:
    """How a model is trained; the defaults of loss, optimiser, rate, epochs and batch are those of AutoMT."""

    network: str = param("pilotnet", help="network, see `mt models list`")
    epochs: int = param(30, low=1, high=10_000, help="passes over all windows")
    batch: int = param(128, low=3, high=65_536, help="windows per step")
    rate: float = param(1e-3, low=1e-7, high=1.0, help="learning rate of Adam")
    loss: str = param(
        "l1", choices=("l1", "mse"), help="loss of speed and steering, each divided by its standard deviation"
    )
    seed: int = param(0, low=0, help="seed of weights, order and augmentation")
    ahead: int = param(
        1, low=0, high=100, unit="frames", help="delay of the learned speed and steering (0: those of the same frame)"
    )
    mirror: bool = param(False, help="mirror every second window, and its steering")
    brightness: float = param(0.2, low=0.0, high=1.0, help="random brightness factor per window, from 1 - X to 1 + X")
    balance: float = param(
        0.0, low=0.0, high=100.0, help="sample windows with weight 1 + X * |steering| / its mean; 0: each once"
    )


@dataclass(frozen=True)
class EpochReport:
    """What one round brought: losses in units of the spread, mean absolute errors on the validation part."""

    epoch: int
    train_loss: float
    validation_loss: float
    validation_mae_speed_mps: float
    validation_mae_steering_rad: float


def spread_of(targets: Floats, mirrored: bool) -> tuple[Floats, Floats]:
    """Return mean (2,) and spread (2,), the standard deviation, of speed and steering (M, 2)."""
    mean = targets.mean(axis=0)
    if mirrored:
        mean[1] = 0.0
    spread = np.sqrt(((targets - mean) ** 2).mean(axis=0))
    return mean, np.maximum(spread, _LEAST_SPREAD)


def augmented(planes: Bytes, targets: Floats, recipe: Recipe, draws: Floats) -> tuple[Singles, Floats]:
    """Return windows (K, T, 3, H, W), and what is wanted (K, 2), changed as a recipe says.

    ``draws``: (2, K) numbers from 0 to 1: of brightness, and of whether a window is mirrored.
    """
    shown, aims = planes.astype(np.float32), targets.copy()
    if recipe.brightness:
        times = 1.0 + recipe.brightness * (2.0 * draws[0] - 1.0)
        shown[:, :, 0] = np.clip(shown[:, :, 0] * times[:, None, None, None], 0.0, 255.0)
    if recipe.mirror:
        turned = draws[1] < 0.5
        shown[turned] = shown[turned][..., ::-1]
        aims[turned, 1] *= -1.0
    return shown, aims


def order_of(recipe: Recipe, epoch: int, steering: Floats) -> list[Indices]:
    """Return the windows of each step of an epoch, by the seed and the epoch alone.

    Steps are as equal as can be: a step of one window would have nothing to normalise by.
    """
    rng = np.random.default_rng((recipe.seed, epoch))
    count = len(steering)
    if recipe.balance:
        turn = np.abs(steering)
        weights = 1.0 + recipe.balance * turn / max(float(turn.mean()), 1e-9)
        order = rng.choice(count, count, p=weights / weights.sum())
    else:
        order = rng.permutation(count)
    return list(np.array_split(order, -(-count // recipe.batch)))
