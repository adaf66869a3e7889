# SPDX-License-Identifier: Apache-2.0
"""Intensities scaled, shifted, noisy or saturated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.keyed_draws import cut_normals, new_key
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, proof_of_change
from mt_nodes.relations.mutations.lidar.intensity_scale import full_scale
from mt_nodes.relations.mutations.lidar.placement import finite_range
from mt_nodes.relations.mutations.lidar.rays import Floats, at_rows, returns

_CUT = 5.0


@dataclass(frozen=True)
class IntensityChanged(EachCloud):
    """Scales, shifts, blurs and saturates intensities, within the sensor's scale.

    ``i' = scale * i + S * (shift + noise * n)``, cut to 0 … S. S is the full scale of the sensor (1, 255 or 65,535, the
    smallest that holds the frame's own intensities), n is standard normal, cut at five. From ``saturate_at`` S on, an
    intensity reads S. Gain ages and differs between units, an offset is what calibration leaves, and receivers clip:
    one formula for what one sensor differs from another by. Fields of whole numbers are rounded.

    Guaranteed: intensities are within 0 … S and follow the formula; coordinates and all other fields do not change.
    """

    scale: float = param(1.0, low=0.0, high=10.0, neutral=1.0, help="gain")
    shift: float = param(0.0, low=-1.0, high=1.0, neutral=0.0, help="added, as a share of full scale")
    noise: float = param(
        0.02, low=0.0, high=1.0, neutral=0.0, help="standard deviation of what is added at random, same unit"
    )
    saturate_at: float = param(
        1.0, low=0.01, high=1.0, neutral=1.0, help="from this share of full scale on, full scale"
    )

    def __post_init__(self) -> None:
        if (self.scale, self.shift, self.noise, self.saturate_at) == (1.0, 0.0, 0.0, 1.0):
            raise UsageError("scale 1, shift 0, noise 0 and saturate_at 1 change nothing")

    def draw_cloud(self, rng: np.random.Generator, bundle: Bundle, cloud: Cloud, state: Any) -> Draw:
        """Draw the key of the noise of all returns."""
        full = _scale(cloud)[2]
        return {"full_scale": full} if self.noise == 0.0 else {"full_scale": full, "noise_key": new_key(rng)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Write the new intensities."""
        at, values, _ = _scale(cloud)
        raw, name = cloud.raw.copy(), str(cloud.intensity_field)
        new = self.changed(values, draw)
        raw.view(cloud.points.dtype)[name][at] = new if cloud.points.dtype[name].kind == "f" else np.rint(new)
        return cloud.with_raw(raw, height=cloud.height)

    def changed(self, values: npt.NDArray[Any], draw: Draw) -> Floats:
        """Return the new intensities (n,) of returns, not yet rounded to the field's type."""
        full = draw["full_scale"]
        new = values * self.scale + self.shift * full
        if self.noise:
            new += _noise(len(new), draw) * np.float32(self.noise * full)
        new[new >= self.saturate_at * full] = full
        return np.asarray(np.clip(new, 0.0, full, out=new))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Compare the two intensities of every return, and check that nothing else changed."""
        at, before, full = _scale(old)
        name = str(old.intensity_field)
        broken = proof_of_change(old, new, at, (name,))
        if broken is not None:
            return broken
        after = new.points[name][at].astype(np.float64)
        if not ((after >= 0.0) & (after <= full)).all():
            return f"intensities from {after.min():g} to {after.max():g} leave 0 to {full:g}"
        grain = (0.5 if new.points.dtype[name].kind in "iu" else 0.0) + 1e-6 * full
        share = self.scale * before / full + self.shift + self.noise * _noise(len(before), draw).astype(np.float64)
        expected, saturated = np.clip(share, 0.0, 1.0) * full, share * full >= self.saturate_at * full - grain
        off = np.abs(after - expected) > grain
        if (off & ~(saturated & (after >= full - grain))).any():
            return "an intensity does not follow the formula"
        dull = (share * full > self.saturate_at * full + grain) & (after < full - grain)
        return "an intensity did not saturate" if dull.any() else None


def _noise(count: int, draw: Draw) -> npt.NDArray[np.float32]:
    """Return the noise (count,) of returns; zeros if there is none."""
    return cut_normals(draw["noise_key"], count, _CUT) if "noise_key" in draw else np.zeros(count, np.float32)


def _scale(cloud: Cloud) -> tuple[npt.NDArray[np.int64] | slice, Floats, float]:
    """Return the returns of a cloud, their intensities (n,) and the full scale.

    Raises:
        NotApplicable: the cloud has no intensities, or they fit no known scale.
    """
    name, at = cloud.intensity_field, at_rows(cloud, returns(cloud))
    if name is None:
        raise NotApplicable(f"{cloud.topic} has no intensity; its fields are {', '.join(cloud.fields)}")
    values = cloud.points[name][at].astype(np.float64)
    found = finite_range(values)
    if found is None or not np.isfinite(values).all():
        raise NotApplicable(f"an intensity of {cloud.topic} is not a finite number")
    return at, values, full_scale(*found, cloud.points.dtype[name], cloud.topic)
