# SPDX-License-Identifier: Apache-2.0
"""Proof for clouds in bad weather: chance of detection by decibels, beams, ranges and intensities of every return."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.data.messages import Cloud
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.attenuation import DARKEST, Receiver, all_returns
from mt_nodes.relations.mutations.joint.beam_parts import firing_of, is_last_of_several
from mt_nodes.relations.mutations.joint.chance import shares_at
from mt_nodes.relations.mutations.joint.empty_proof import (
    Fate,
    RowMap,
    SeenEchoes,
    blocks_of_rest,
    proof_of_empty_beams,
)
from mt_nodes.relations.mutations.lidar.placement import empty_returns
from mt_nodes.relations.mutations.lidar.rays import At, proof_on_beam, ranges_m, rounding_m
from mt_nodes.relations.mutations.lidar.strength_proof import off_strength

#: Light that goes out and back through an optical depth of 1 loses 20 log10(e) dB.
_DB_PER_DEPTH = 20.0 * np.log10(np.e)
#: Tolerances for single precision, and for a table instead of the integral: absolute, and as a share of the depth.
_SLACK_DB, _SLACK_SHARE = 0.01, 0.01
#: Returns whose power is checked: each needs an integration along its beam.
_SAMPLE_SIZE = 1000
#: More than any echo of the air has.
_ANY_AIR = 1e6
#: Normal numbers from 16 bits end at 4.32.
_MOST_SIGMAS = 4.35


class Air(Protocol):
    """What the proof needs of a weather; see :class:`mt_nodes.relations.mutations.joint.weather.Weather`."""

    @property
    def max_range_m(self) -> float:
        """No noise takes a return beyond it."""

    @property
    def receiver(self) -> Receiver:
        """The sensor's receiver, of which the numbers count here, not the formulas."""

    @property
    def unknown_reflectivity(self) -> float:
        """Of returns without an intensity."""

    @property
    def noise_at_threshold_m(self) -> float:
        """Standard deviation of the range of an echo at the threshold."""

    @property
    def further_noise(self) -> float:
        """Standard deviation of further range noise, as a share of the range."""

    def proof_depths(self, cloud: Cloud, rows: Rows, draw: Draw) -> Floats:
        """Return the optical depth (k,) to some returns."""

    def proof_of_air(self, old: Cloud, seen: SeenEchoes, draw: Draw) -> str | None:
        """Check that the air permits the echoes seen, and no others."""


def proof_of_weather(weather: Air, old: Cloud, new: Cloud, fate: Fate, draw: Draw) -> str | None:
    """Return the broken promise, or None."""
    rows_of = RowMap.of(old, fate)
    if len(new) != len(old) + rows_of.growth:
        return f"{len(new)} points, expected {len(old)} and {rows_of.growth} more"
    return (
        proof_of_empty_beams(old, new, rows_of)
        or _places(weather, old, new, fate, rows_of)
        or _powers(weather, old, new, fate, rows_of, draw)
        or weather.proof_of_air(old, SeenEchoes.of(old, new, fate, rows_of), draw)
    )


def _places(weather: Air, old: Cloud, new: Cloud, fate: Fate, rows_of: RowMap) -> str | None:
    """Check every return; in blocks of some thousands: all at once would take more memory than the cloud."""
    for block, left, rest in blocks_of_rest(old, new, rows_of):
        is_return = ~empty_returns(left)
        at: At = slice(None) if is_return.all() else np.flatnonzero(is_return)
        broken = proof_on_beam(left, rest, at, also=old.echo_names)
        if broken is not None:
            return broken
        index = block if isinstance(fate.at, slice) else slice(*np.searchsorted(fate.at, [block.start, block.stop]))
        echoes = fate.scattered[index][~fate.lost[index]]
        before, after = ranges_m(left, at), ranges_m(rest, at)
        broken = _ranges(weather, left, before, after, echoes) or _intensities(old, left, rest, at, echoes, after)
        if broken is not None:
            return broken
    return None


def _ranges(weather: Air, cloud: Cloud, before: Floats, after: Floats, scattered: Mask) -> str | None:
    slack = rounding_m(cloud, before) + 1e-5
    nearer = after < before + slack
    if not nearer[scattered].all():
        return f"{int((~nearer[scattered]).sum())} echoes of the air are not before what they hide"
    off = np.abs(after - before)[~scattered]
    sigma_m = np.hypot(weather.noise_at_threshold_m, weather.further_noise * before[~scattered])
    if not (off <= _MOST_SIGMAS * sigma_m + slack[~scattered]).all():
        return f"a return moved by {off.max():.2f} m, more than noise of {sigma_m.max():.3f} m can"
    reach = np.maximum(before, weather.max_range_m) + slack
    return None if (after <= reach).all() else f"a return at {after.max():.1f} m is beyond the sensor's range"


def _intensities(old: Cloud, left: Cloud, new: Cloud, at: Rows | slice, scattered: Mask, range_m: Floats) -> str | None:
    for field in old.echoes.fields:
        before, after = (cloud.points[field.name][at].astype(np.float64) for cloud in (left, new))
        grain = 1.0 if left.points.dtype[field.name].kind in "iu" else 1e-6 * field.full_scale
        if (after[~scattered] > before[~scattered] + grain).any() or (after < 0.0).any():
            return f"a value of '{field.name}' rose in air that weakens"
        soft = np.maximum(after - grain, 0.0)[scattered]
        if (field.convention.decibels(soft, range_m[scattered]) > _SLACK_DB).any():
            return f"an echo of the air is stronger than a white surface in '{field.name}'"
    return None


def _powers(weather: Air, old: Cloud, new: Cloud, fate: Fate, rows_of: RowMap, draw: Draw) -> str | None:
    """Compare the chance of detection with the number drawn for it, and intensities with the law."""
    hard, lost = (np.flatnonzero(mask) for mask in (~fate.lost & ~fate.scattered, fate.lost))
    hard, lost = (some[:: max(1, len(some) // _SAMPLE_SIZE)] for some in (hard, lost))
    for index, sign, says in ((lost, 1.0, "lost"), (hard, -1.0, "kept")):
        rows = index if isinstance(fate.at, slice) else fate.at[index]
        depths, firings = weather.proof_depths(old, rows, draw), firing_of(old, fate.at, index)
        passing_db = -_DB_PER_DEPTH * depths - sign * (_SLACK_DB + _SLACK_SHARE * _DB_PER_DEPTH * depths)
        clear_db = _clear_db(weather.receiver, _bright_db(weather, old, rows), ranges_m(old, rows))
        wrong = _wrong_side(weather.receiver, clear_db, passing_db, shares_at(draw["noise_key"], firings), sign)
        if wrong.any():
            return (
                f"{int(wrong.sum())} of {len(rows)} returns looked at were {says} on the wrong side of the noise floor"
            )
    range_m, slack_db = ranges_m(old, rows), (_SLACK_SHARE * depths + 1e-4) * _DB_PER_DEPTH
    for field in old.echoes.fields:
        before = field.convention.decibels(old.points[field.name][rows], range_m)
        off = off_strength(field, new.points, rows_of.moved(rows), before - _DB_PER_DEPTH * depths, range_m, slack_db)
        if off.any():
            return f"{int(off.sum())} values of '{field.name}' do not fall as e^(-2 depth)"
    return None


def proof_of_losses(
    receiver: Receiver,
    cloud: Cloud,
    rows: Rows,
    decibels: tuple[Floats, Floats],
    lost: Mask,
    noise_key: int,
    slack_db: Floats | float = 0.0,
) -> str | None:
    """Compare the chance of detection of weakened returns (n,) with the numbers drawn for them.

    Args:
        rows: (n,) of the returns. lost: (n,) which of them are.
        decibels: (n,) each: the surfaces of the returns over white ones, and what is left of their power.
        slack_db: (n,) or one for all: how far off the second may be.
    """
    range_m, number = ranges_m(cloud, rows), shares_at(noise_key, firing_of(cloud, slice(0), rows))
    clear_db = _clear_db(receiver, decibels[0], range_m)
    for which, sign in ((lost, 1.0), (~lost, -1.0)):
        passing_db = (decibels[1] - sign * (_SLACK_DB + np.asarray(slack_db)))[which]
        if _wrong_side(receiver, clear_db[which], passing_db, number[which], sign).any():
            return "a return above the noise floor was lost, or one below it stayed"
    return None


def _wrong_side(receiver: Receiver, clear_db: Floats, passing_db: Floats, number: Floats, sign: float) -> Mask:
    """Return which returns (k,) are lost (``sign`` 1) or kept (-1) against the chance of it.

    That is the share of reported returns of these mean amplitudes that are detected when weakened: the tail of the
    amplitudes beyond what detection takes.
    ``number``: (k, 2 or more) drawn: share of such returns with a larger amplitude, and of firings with less noise.
    """
    from scipy import special  # for those who meet bad air

    passing, nominal = 10.0 ** (passing_db / 10.0), 10.0 ** (clear_db / 10.0)
    needed = (1.0 - (1.0 - passing) * special.ndtri(number[:, 1]) / receiver.threshold_to_noise) / passing
    # Log-logistic tail of shape ½ beyond needed, by that beyond 1.
    tail, all_of_it = (1.0 / (1.0 + np.square(a / nominal)) for a in (np.maximum(needed, 1.0), np.ones(1)))
    chance = tail / all_of_it
    return np.asarray(sign * (number[:, 0] - chance) < -2e-3 * chance)


def _bright_db(weather: Air, cloud: Cloud, rows: Rows) -> Floats:
    """Return the brightness (k,) of returns over a white surface, in dB."""
    if not cloud.echoes.fields:
        return np.full(len(rows), 10.0 * np.log10(weather.unknown_reflectivity))
    field = cloud.echoes.leading
    return np.asarray(field.convention.decibels(cloud.points[field.name][rows], ranges_m(cloud, rows)))


def _clear_db(receiver: Receiver, bright_db: Floats, range_m: Floats) -> Floats:
    """Return the mean amplitude (k,) of returns over the threshold in clear air by their brightness, in dB."""
    from scipy import special  # for those who meet bad air

    at_most = 1.0 + special.ndtri(receiver.detection_probability) / receiver.threshold_to_noise
    over = np.maximum(bright_db, 10.0 * np.log10(DARKEST)) + 10.0 * np.log10(at_most / receiver.sensitivity)
    return np.asarray(over + 20.0 * np.log10(receiver.max_range_m / np.maximum(range_m, receiver.focus_m)))


def amplitude_of(receiver: Receiver, reflectivity: Floats, range_m: Floats) -> Floats:
    """Return the amplitude (k,) that reads as a surface of a reflectivity (k,) at a range (k,): LiDAR equation."""
    from scipy import special  # for those who meet bad air

    most = 1.0 + special.ndtri(receiver.detection_probability) / receiver.threshold_to_noise
    of_white = most / receiver.sensitivity * np.square(receiver.max_range_m / np.maximum(range_m, receiver.focus_m))
    return np.asarray(np.minimum(reflectivity * of_white, 1e6))


def weakened_amplitude(weather: Air, old: Cloud, index: Rows, draw: Draw) -> Floats:
    """Return the amplitude (k,) in the weather of some returns, counted among the returns: by the numbers drawn."""
    from scipy import special  # for those who meet bad air

    at = all_returns(old)
    rows = index if isinstance(at, slice) else at[index]
    larger, noise = shares_at(draw["noise_key"], firing_of(old, at, index))[:, :2].T
    nominal = 10.0 ** (_clear_db(weather.receiver, _bright_db(weather, old, rows), ranges_m(old, rows)) / 10.0)
    # The amplitude beyond which lies this share of the tail beyond 1.
    tail = larger / (1.0 + np.square(1.0 / nominal))
    clear = nominal * np.sqrt(1.0 / tail - 1.0)
    passing = 10.0 ** (-_DB_PER_DEPTH * weather.proof_depths(old, rows, draw) / 10.0)
    found = passing * clear + (1.0 - passing) * special.ndtri(noise) / weather.receiver.threshold_to_noise
    # The last of several reports of a firing is its target, however strong the air is.
    last = is_last_of_several(old, rows)
    return np.asarray(found if last is None else np.where(last & (found >= 1.0), _ANY_AIR, found))
