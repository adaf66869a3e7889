# SPDX-License-Identifier: Apache-2.0
"""Reception of changed returns: the receiver of the sensor's family, and which weaker returns it loses."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Mask, Rows, Singles
from mt_nodes.base.params import param
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.attenuation import REFERENCE_REFLECTIVITY, Receiver
from mt_nodes.relations.mutations.joint.beam_parts import firing_of
from mt_nodes.relations.mutations.joint.chance import Quarters, quarters_at
from mt_nodes.relations.mutations.joint.receiver_models import (
    AUTO,
    GENERIC,
    RECEIVER_MODELS,
    ReceiverModel,
    recognised_sensor,
)

R = TypeVar("R", bound="Reception")


@dataclass(frozen=True)
class Reception:
    """Base of mutations that weaken returns: parameters of the LiDAR's receiver."""

    sensor: str = param(
        AUTO,
        choices=(AUTO, *RECEIVER_MODELS),
        help="family of the LiDAR, for max_range_m, focus_m, pulse_ns, divergence_mrad where those are defaults; auto: "
        "as the cloud tells, else generic",
    )
    max_range_m: float = param(120.0, low=1.0, high=1000.0, unit="m", aspect="fixed", help="the sensor's range")
    focus_m: float = param(
        5.0, low=0.5, high=50.0, unit="m", aspect="fixed", help="nearer echoes are out of focus: not stronger (assumed)"
    )

    @property
    def receiver(self) -> Receiver:
        """The sensor's receiver."""
        return Receiver(self.max_range_m, self.focus_m)

    @property
    def model(self) -> ReceiverModel:
        """The model of the receiver; the generic one before a cloud is recognised."""
        return RECEIVER_MODELS[GENERIC if self.sensor == AUTO else self.sensor]

    def sensor_of(self, cloud: Cloud) -> str:
        """Return the family of a cloud's sensor."""
        return recognised_sensor(cloud) if self.sensor == AUTO else self.sensor

    def draw_reception(self, rng: np.random.Generator, cloud: Cloud) -> Draw:
        """Draw the key of the receiver's noise, under ``noise_key``; ``sensor`` is the family."""
        return {"noise_key": int(rng.integers(2**62)), "sensor": self.sensor_of(cloud)}


@lru_cache(maxsize=64)
def with_sensor(mutation: R, sensor: str) -> R:
    """Return a mutation as a family of sensors sees it: its parameters are the family's where they are the defaults."""
    model, own = RECEIVER_MODELS[sensor], {f.name: f.default for f in fields(mutation)}
    names = ("max_range_m", "pulse_ns", "divergence_mrad")
    of_family: dict[str, Any] = {name: getattr(model, name) for name in names if name in own}
    # Rain has a focus of its own, without which no drop would be seen.
    of_family |= {"focus_m": model.focus_m} if own["focus_m"] == Reception.focus_m else {}
    changed = {name: value for name, value in of_family.items() if getattr(mutation, name) == own[name]}
    return replace(mutation, sensor=sensor, **changed)


@dataclass(frozen=True)
class WeakenedReturns(Reception):
    """Base of mutations after which a share of a return's power, or of its margin over the noise, is left.

    The amplitude a of a reported return is drawn given its intensity and that it was detected
    (:meth:`~mt_nodes.relations.mutations.joint.attenuation.Receiver.detected`), its share n of noise is normal. With
    the share q left it is n + q (a - n), and lost below the detection threshold, which is 1, as in bad air
    (:class:`~mt_nodes.relations.mutations.joint.weather.Weather`). Reports of one firing share their chance.
    """

    sensitivity: float = param(
        REFERENCE_REFLECTIVITY,
        low=1e-6,
        high=1.0,
        aspect="fixed",
        help="intensity, 0 to 1, of the weakest echo at max_range_m",
    )

    @property
    def receiver(self) -> Receiver:
        """The sensor's receiver."""
        return Receiver(self.max_range_m, self.focus_m, self.sensitivity)

    def received(
        self, cloud: Cloud, rows: Rows, values: tuple[npt.NDArray[Any], ...], draw: Draw
    ) -> tuple[Singles, Quarters]:
        """Return the amplitudes (n,) that are left of returns, in thresholds, and the numbers (n, 4) drawn for them.

        ``rows``: (n,) of the returns. ``values``: (n,) of each reflectivity, range in metres, and share of power left.
        ``draw``: with :meth:`draw_reception`.
        """
        chance = quarters_at(draw["noise_key"], firing_of(cloud, slice(0), rows))
        reflectivity, range_m, passing = (np.asarray(value, np.float32) for value in values)
        receiver = with_sensor(self, draw["sensor"]).receiver
        return receiver.weakened(reflectivity, range_m, passing, chance)[1], chance

    def lost(self, cloud: Cloud, rows: Rows, values: tuple[npt.NDArray[Any], ...], draw: Draw) -> Mask:
        """Return which returns (n,) are lost; see :meth:`received`."""
        return np.asarray(self.received(cloud, rows, values, draw)[0] < 1.0)
