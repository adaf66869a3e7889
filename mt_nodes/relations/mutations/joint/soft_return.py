# SPDX-License-Identifier: Apache-2.0
"""Echo of the air itself: amplitude of the backscatter of fog or dust over range.

After M. Hahner et al., "Fog Simulation on Real LiDAR Point Clouds for 3D Object Detection in Adverse Weather", ICCV
2021: the pulse, sin² over 2 τ, is convolved with β ξ(R) e^(−2αR) / R², ξ rising from 0 at 0.9 m to 1 at 1.0 m. Unlike
there the pulse is centred on its echo, as is the one of the target behind, and powers are absolute: a target of
reflectivity ρ has ρ/π where the air has β dR (LiDAR equation), instead of a fitted ratio of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mt_nodes.base.arrays import Singles
from mt_nodes.relations.mutations.joint.attenuation import Receiver

LIGHT_M_PER_NS = 0.299792458
#: Range at which receiver and beam begin to overlap, and at which they overlap fully (Hahner et al., 2021).
OVERLAP_M = (0.9, 1.0)
STEP_M = 0.05
FARTHEST_M = 60.0


@dataclass(frozen=True)
class SoftReturn:
    """The air's mean waveform in steps of 5 cm, and its peaks: where (n,), and the amplitude (n,) there.

    ``waveform``: (n,) mean amplitude at each range. ``range_m``, ``signal``: (n,) place and amplitude of the highest
    one up to each range. ``width_m``: length of the pulse at half power, c τ.
    """

    waveform: Singles
    range_m: Singles
    signal: Singles
    width_m: float

    def before(self, target_m: Singles) -> tuple[Singles, Singles]:
        """Return range and mean amplitude (n,) of the strongest echo of the air before each target (n,).

        An echo nearer to the target than half a pulse merges with it.
        """
        free_m = np.maximum(target_m - np.float32(self.width_m / 2.0), 0.0)
        at = np.minimum(free_m * np.float32(1.0 / STEP_M), len(self.range_m) - 1.0).astype(np.int32)
        return self.range_m.take(at), self.signal.take(at)


@lru_cache(maxsize=64)
def soft_return(extinction_per_m: float, backscatter: float, pulse_ns: float, receiver: Receiver) -> SoftReturn:
    """Return the waveform for air of an extinction (1/m) and backscatter (1/(m sr)), and a pulse of τ (ns)."""
    range_m = STEP_M * np.arange(int(FARTHEST_M / STEP_M) + 1)
    width_m = LIGHT_M_PER_NS * pulse_ns
    overlap = np.clip((range_m - OVERLAP_M[0]) / (OVERLAP_M[1] - OVERLAP_M[0]), 0.0, 1.0)
    scattered = backscatter * overlap * np.exp(-2.0 * extinction_per_m * range_m)
    half = int(width_m / 2.0 / STEP_M)
    pulse = np.cos(np.pi * STEP_M * np.arange(-half, half + 1) / width_m) ** 2
    # A target of ρ at R gives ρ/π / R²; echoes nearer than the focus are not stronger.
    power = np.convolve(scattered / np.maximum(range_m, receiver.focus_m or STEP_M) ** 2, pulse, mode="same") * STEP_M
    signal = np.pi * power * receiver.max_range_m**2 * receiver.nominal / receiver.sensitivity
    signal[range_m < OVERLAP_M[1]] = 0.0
    highest = np.maximum.accumulate(signal)
    peak = np.maximum.accumulate(np.where(signal >= highest, np.arange(len(signal)), 0))
    return SoftReturn(signal.astype(np.float32), range_m[peak].astype(np.float32), highest.astype(np.float32), width_m)
