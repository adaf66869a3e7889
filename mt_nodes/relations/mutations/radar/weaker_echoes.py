# SPDX-License-Identifier: Apache-2.0
"""Echoes that lose decibels: which detections remain, and how rain weakens them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.data.radar import Radar
from mt_nodes.relations.mutations.lidar.each_cloud import proof_of_change
from mt_nodes.world.scene.radar_model import front_radar

#: A weakest detection stands so far above the noise, where a sensor reports strengths on a scale of its own: the
#: threshold for a false alarm in a million cells is 10 log10(ln 10^6) = 11.4 dB.
_THRESHOLD_DB = 11.4
_SIGMAS = 6.0
#: Frequency of automotive radars in GHz.
_FREQUENCY_GHZ = 77.0
#: Coefficients of ITU-R P.838-3 for horizontal polarisation: rows a, b, c of log10 k and of alpha, then m and c.
_K = ((-5.33980, -0.10008, 1.13098), (-0.35351, 1.26970, 0.45400), (-0.23789, 0.86036, 0.15354))
_K_LAST, _K_LINE = (-0.94158, 0.64552, 0.16817), (-0.18961, 0.71147)
_ALPHA = ((-0.14318, 1.82442, -0.55187), (0.29591, 0.77564, 0.19822), (0.32177, 0.63773, 0.13164))
_ALPHA_LAST = ((-5.37610, -0.96230, 1.47828), (16.1721, -3.29980, 3.43990))
_ALPHA_LINE = (0.67849, -1.95537)


@lru_cache
def rain_db_per_km(rain_mm_per_h: float, frequency_ghz: float = _FREQUENCY_GHZ) -> float:
    """Return the specific attenuation of rain, one way: k R^alpha, ITU-R P.838-3 (equations 1 to 3)."""
    log_f = float(np.log10(frequency_ghz))

    def bells(rows: tuple[tuple[float, float, float], ...]) -> float:
        return float(sum(a * np.exp(-(((log_f - b) / c) ** 2)) for a, b, c in rows))

    k = 10.0 ** (bells((*_K, _K_LAST)) + _K_LINE[0] * log_f + _K_LINE[1])
    alpha = bells((*_ALPHA, *_ALPHA_LAST)) + _ALPHA_LINE[0] * log_f + _ALPHA_LINE[1]
    return float(k * rain_mm_per_h**alpha)


def snr_db(radar: Radar) -> Floats:
    """Return the signal-to-noise ratio (N,) of detections.

    It is the message's own ``snr``; else it follows from ``rcs`` and range for a sensor that detects a car of 10 dBsm
    at 100 m with 21 dB (assumed), at least the threshold, above which every detection was; on any other scale the
    weakest detection is taken to be at the threshold.
    """
    if field := radar.named(("snr",)):
        return radar.points[field].astype(np.float64)
    if radar.named(("rcs",)):
        return np.maximum(front_radar().snr_db(radar.strength_db, radar.polar[0]), _THRESHOLD_DB)
    strength = radar.strength_db
    return np.asarray(strength - strength.min(initial=np.inf) + _THRESHOLD_DB)


def remaining(snr: Floats, loss_db: Floats | float) -> Floats:
    """Return the probability (n,) that detections with these ratios are detected with so many decibels less."""
    detected = front_radar().detection_probability
    return np.asarray(detected(snr - loss_db) / np.maximum(detected(snr), 1e-12))


def missed(rng: np.random.Generator, radar: Radar, loss_db: Floats) -> Rows:
    """Draw which detections (n,) are missed when each (N,) loses so many decibels; 0 for none."""
    lost = rng.random(len(radar)) >= remaining(snr_db(radar), loss_db)
    return np.flatnonzero(lost & (loss_db > 0.0))


def weakened(radar: Radar, loss_db: Floats, rows: Rows) -> Radar:
    """Return a radar with each detection (N,) weaker by so many decibels, and without those missed (n,)."""
    touched = np.flatnonzero(loss_db > 0.0)
    return without_rows(radar.moved(touched, strength_db=radar.strength_db[touched] - loss_db[touched]), rows)


def without_rows(radar: Radar, rows: Rows) -> Radar:
    """Return a radar without some detections (n,)."""
    return radar.take(np.setdiff1d(np.arange(len(radar)), rows))


def proof_of_weakening(old: Radar, new: Radar, loss_db: Floats, rows: Rows) -> str | None:
    """Compare row by row, and count against the formula in its other form, exp(ln Pfa / (1 + SNR))."""
    left = np.setdiff1d(np.arange(len(old)), rows)
    kept = old.take(left)
    if len(new) != len(left):
        return f"{len(new)} detections, expected {len(left)}"
    if not (loss_db[rows] > 0.0).all():
        return "a detection that loses nothing was lost"
    broken = proof_of_change(kept, new, slice(None), old.strength_fields)
    if broken is not None:
        return broken
    rounding = 1.01 if any(old.points.dtype[name].kind in "iu" for name in old.strength_fields) else 1e-2
    off = kept.strength_db - new.strength_db - loss_db[left]
    if old.strength_fields and not (np.abs(off) <= rounding).all():
        return f"a strength is {np.abs(off).max():.2g} dB off its loss"
    return proof_of_number(len(rows), snr_db(old), loss_db)


def proof_of_number(lost: int, snr: Floats, loss_db: Floats | float) -> str | None:
    """Check how many detections are lost, of those with these ratios (n,), within six standard deviations."""
    ratio, exponent = 10.0 ** (snr / 10.0), float(np.log(front_radar().false_alarm))
    weaker = ratio * 10.0 ** (-np.asarray(loss_db) / 10.0)
    kept = np.exp(exponent / (1.0 + weaker) - exponent / (1.0 + ratio))
    expected, spread = float((1.0 - kept).sum()), float(np.sqrt((kept * (1.0 - kept)).sum()))
    if abs(lost - expected) <= _SIGMAS * spread + 1.0:
        return None
    return f"{lost} detections lost, the formula says {expected:.1f} ± {spread:.1f}"
