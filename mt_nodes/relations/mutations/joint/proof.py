# SPDX-License-Identifier: Apache-2.0
"""Proof for clouds in bad weather: power in decibels, beams, ranges and intensities of every return."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.attenuation import DARKEST, LEAST_SIGNAL, REFERENCE_REFLECTIVITY
from mt_nodes.relations.mutations.joint.fate import Fate
from mt_nodes.relations.mutations.lidar.each_cloud import without
from mt_nodes.relations.mutations.lidar.rays import Floats, Rows, pieces, proof_on_beam, ranges_m, rounding_m
from mt_nodes.relations.mutations.lidar.strength_proof import off_strength

#: Light that goes out and back through an optical depth of 1 loses 20 log10(e) dB.
_DB_PER_DEPTH = 20.0 * np.log10(np.e)
#: Tolerances for single precision, and for a table instead of the integral: absolute, and as a share of the depth.
_SLACK_DB, _SLACK_SHARE = 0.01, 0.01
#: Returns whose power is checked: each needs an integration along its beam.
_SAMPLE_SIZE = 1000
#: Irwin and Hall's normals end at 3.47.
_MOST_SIGMAS = 3.5
_NOISE_AT_FLOOR_M = 0.09 / np.sqrt(2.0)


class Air(Protocol):
    """What the proof needs of a weather; see :class:`mt_nodes.relations.mutations.joint.weather.Weather`."""

    @property
    def max_range_m(self) -> float:
        """How far the sensor sees a target of 90 %."""

    @property
    def focus_m(self) -> float:
        """Nearer echoes are no stronger."""

    @property
    def unknown_reflectivity(self) -> float:
        """Of returns without an intensity."""

    @property
    def further_noise(self) -> float:
        """Standard deviation of further range noise, as a share of the range."""

    def proof_depths(self, cloud: Cloud, rows: Rows, draw: Draw) -> npt.NDArray[np.float64]:
        """Return the optical depth (k,) to some returns."""


def proof_of_weather(weather: Air, old: Cloud, new: Cloud, fate: Fate, draw: Draw) -> str | None:
    """Return the broken promise, or None."""
    return _places(weather, old, new, fate) or _powers(weather, old, new, fate, draw)


def _places(weather: Air, old: Cloud, new: Cloud, fate: Fate) -> str | None:
    left, at = without(old, fate.rows(fate.lost)), fate.remaining_rows(old)
    if len(new) != len(left):
        return f"{len(new)} points, expected {len(old)} less {int(fate.lost.sum())}"
    broken = proof_on_beam(left, new, at, also=old.echo_names)
    if broken is not None:
        return broken
    scattered, first = fate.scattered[~fate.lost], 0
    # In blocks of some thousands: in double precision all of them would take more memory than the cloud.
    for part in pieces(at, len(left)):
        before, after = ranges_m(left, part), ranges_m(new, part)
        echoes = scattered[first : first + len(before)]
        broken = _ranges(weather, left, before, after, echoes) or _intensities(left, new, part, echoes, after)
        if broken is not None:
            return broken
        first += len(before)
    return None


def _ranges(weather: Air, cloud: Cloud, before: Floats, after: Floats, scattered: npt.NDArray[np.bool_]) -> str | None:
    slack = rounding_m(cloud, before) + 1e-5
    nearer = after < before + slack
    if not nearer[scattered].all():
        return f"{int((~nearer[scattered]).sum())} echoes of the air are not before what they hide"
    off = np.abs(after - before)[~scattered]
    sigma_m = np.hypot(_NOISE_AT_FLOOR_M, weather.further_noise * before[~scattered])
    if not (off <= _MOST_SIGMAS * sigma_m + slack[~scattered]).all():
        return f"a return moved by {off.max():.2f} m, more than noise of {sigma_m.max():.3f} m can"
    reach = np.maximum(before, weather.max_range_m) + slack
    return None if (after <= reach).all() else f"a return at {after.max():.1f} m is beyond the sensor's range"


def _intensities(
    left: Cloud, new: Cloud, at: Rows | slice, scattered: npt.NDArray[np.bool_], range_m: Floats
) -> str | None:
    for field in left.echoes.fields:
        before, after = (cloud.points[field.name][at].astype(np.float64) for cloud in (left, new))
        grain = 1.0 if left.points.dtype[field.name].kind in "iu" else 1e-6 * field.full_scale
        if (after[~scattered] > before[~scattered] + grain).any() or (after < 0.0).any():
            return f"a value of '{field.name}' rose in air that weakens"
        soft = np.maximum(after - grain, 0.0)[scattered]
        if (field.convention.decibels(soft, range_m[scattered]) > _SLACK_DB).any():
            return f"an echo of the air is stronger than a white surface in '{field.name}'"
    return None


def _powers(weather: Air, old: Cloud, new: Cloud, fate: Fate, draw: Draw) -> str | None:
    """Compare the remaining power of some returns with the noise floor, and their intensities with the law."""
    lost, remaining, at = fate.rows(fate.lost), fate.rows(~fate.lost), fate.remaining_rows(old)
    hard = np.flatnonzero(~fate.scattered[~fate.lost])
    hard = hard[:: max(1, len(hard) // _SAMPLE_SIZE)]
    lost_sample = lost[:: max(1, len(lost) // _SAMPLE_SIZE)]
    for rows, sign, says in ((lost_sample, -1.0, "lost"), (remaining[hard], 1.0, "kept")):
        depths = weather.proof_depths(old, rows, draw)
        over = sign * (_clear_db(weather, old, rows) - _DB_PER_DEPTH * depths)
        wrong = over < -_SLACK_DB - _SLACK_SHARE * _DB_PER_DEPTH * depths
        if wrong.any():
            return (
                f"{int(wrong.sum())} of {len(rows)} returns looked at were {says} on the wrong side of the noise floor"
            )
    places = hard if isinstance(at, slice) else at[hard]
    range_m, slack_db = ranges_m(old, remaining[hard]), (_SLACK_SHARE * depths + 1e-4) * _DB_PER_DEPTH
    for field in old.echoes.fields:
        before = field.convention.decibels(old.points[field.name][remaining[hard]], range_m)
        off = off_strength(field, new.points, places, before - _DB_PER_DEPTH * depths, range_m, slack_db)
        if off.any():
            return f"{int(off.sum())} values of '{field.name}' do not fall as e^(-2 depth)"
    return None


def _clear_db(weather: Air, cloud: Cloud, rows: Rows) -> Floats:
    """Return the signal (k,) of returns over the noise floor in clear air, in dB."""
    range_m, bright_db = ranges_m(cloud, rows), np.full(len(rows), 10.0 * np.log10(weather.unknown_reflectivity))
    if cloud.echoes.fields:
        field = cloud.echoes.leading
        bright_db = field.convention.decibels(cloud.points[field.name][rows], range_m)
        bright_db = np.maximum(bright_db, 10.0 * np.log10(DARKEST))
    nearer = weather.max_range_m / np.maximum(range_m, weather.focus_m)
    over = bright_db - 10.0 * np.log10(REFERENCE_REFLECTIVITY) + 20.0 * np.log10(nearer)
    return np.asarray(np.maximum(over, 10.0 * np.log10(LEAST_SIGNAL)))
