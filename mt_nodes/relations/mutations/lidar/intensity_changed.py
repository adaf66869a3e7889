# SPDX-License-Identifier: Apache-2.0
"""Intensities scaled, shifted, noisy or saturated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.intensity.echo_fields import EchoField
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.keyed_draws import cut_normals, new_key
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, proof_of_change
from mt_nodes.relations.mutations.lidar.rays import At, at_rows, returns

_CUT = 5.0


@dataclass(frozen=True)
class IntensityChanged(EachCloud):
    """Scales, shifts, blurs and saturates intensities, within the sensor's scale.

    ``i' = scale * i + S * (shift + noise * n)``, cut to 0 … S. S is the full scale of the sensor's intensity convention
    (:mod:`mt_nodes.data.intensity`), n is standard normal, cut at five. From ``saturate_at`` S on, an intensity reads
    S. A convention without an end (photons) has the value of the brightest return in a thousand for S, and is cut at 0
    alone, unless ``saturate_at`` is below 1. Gain ages and differs between units, an offset is what calibration leaves,
    and receivers clip: one formula for what one sensor differs from another by. Fields of whole numbers are rounded.
    Several fields with the strength of an echo change together, each by the formula on its own scale, with one n.

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
        _refuse_unreadable(cloud)
        return {} if self.noise == 0.0 else {"noise_key": new_key(rng)}

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Write the new values of every field with the strength of an echo."""
        raw, at = cloud.raw.copy(), at_rows(cloud, returns(cloud))
        points = raw.view(cloud.points.dtype)
        for field in cloud.echoes.fields:
            values = cloud.points[field.name][at].astype(np.float64)
            points[field.name][at] = field.as_field(points, self.changed(values, field, draw))
        return cloud.with_raw(raw, height=cloud.height)

    def changed(self, values: Floats, field: EchoField, draw: Draw) -> Floats:
        """Return the new values (n,) of a field of returns, not yet rounded to its type."""
        full = field.full_scale
        new = values * self.scale + self.shift * full
        if self.noise:
            new += _noise(len(new), draw) * np.float32(self.noise * full)
        if self._saturates(field):
            new[new >= self.saturate_at * full] = full
        return np.asarray(np.clip(new, 0.0, _limit(self._saturates(field), field), out=new))

    def prove_cloud(self, bundle: Bundle, old: Cloud, new: Cloud, draw: Draw) -> str | None:
        """Compare the two values of every return in each field, and check that nothing else changed."""
        at = at_rows(old, returns(old))
        broken = proof_of_change(old, new, at, old.echo_names)
        for field in old.echoes.fields:
            broken = broken or self._prove_field(old, new, at, field, draw)
        return broken

    def _prove_field(self, old: Cloud, new: Cloud, at: At, field: EchoField, draw: Draw) -> str | None:
        before, after = (cloud.points[field.name][at].astype(np.float64) for cloud in (old, new))
        whole, full, saturates = new.points.dtype[field.name].kind in "iu", field.full_scale, self._saturates(field)
        limit = min(_limit(saturates, field), float(np.iinfo(new.points.dtype[field.name]).max) if whole else np.inf)
        if not ((after >= 0.0) & (after <= limit)).all():
            return f"'{field.name}' from {after.min():g} to {after.max():g} leaves 0 to {limit:g}"
        grain = (0.5 if whole else 0.0) + 1e-6 * np.maximum(full, after)
        share = self.scale * before / full + self.shift + self.noise * _noise(len(before), draw).astype(np.float64)
        expected, saturated = np.clip(share * full, 0.0, limit), share * full >= self.saturate_at * full - grain
        off, at_full = np.abs(after - expected) > grain, after >= full - grain
        if (off & ~(saturates & saturated & at_full)).any():
            return f"a value of '{field.name}' does not follow the formula"
        dull = saturates & (share * full > self.saturate_at * full + grain) & ~at_full
        return f"a value of '{field.name}' did not saturate" if dull.any() else None

    def _saturates(self, field: EchoField) -> bool:
        """Whether a field has an end of the scale: of its own, or by ``saturate_at``."""
        return self.saturate_at < 1.0 or bool(np.isfinite(field.convention.top))


def _limit(saturates: bool, field: EchoField) -> float:
    return field.full_scale if saturates else np.inf


def _noise(count: int, draw: Draw) -> Singles:
    """Return the noise (count,) of returns; zeros if there is none."""
    return cut_normals(draw["noise_key"], count, _CUT) if "noise_key" in draw else np.zeros(count, np.float32)


def _refuse_unreadable(cloud: Cloud) -> None:
    """Refuse a cloud without intensities, with one that is no number, or whose convention is in doubt."""
    if not cloud.echo_names:
        raise NotApplicable(f"{cloud.topic} has no intensity; its fields are {', '.join(cloud.fields)}")
    at = at_rows(cloud, returns(cloud))
    for name in cloud.echo_names:
        if cloud.points.dtype[name].kind == "f" and not np.isfinite(cloud.points[name][at]).all():
            raise NotApplicable(f"an intensity of {cloud.topic} is not a finite number")
    cloud.echoes.refuse_doubt()
