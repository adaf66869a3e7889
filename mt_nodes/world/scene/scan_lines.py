# SPDX-License-Identifier: Apache-2.0
"""Lines of any scan: rings where it has them, else bands of elevation; and lasers, where a field names them.

The pattern of a non-repetitive or solid-state sensor (a rosette, a raster of two mirrors) has no rings, but neighbours
all the same. Its returns are sorted into bands of elevation as wide as they are apart, and by azimuth within a band, so
that successive returns of a band are neighbours in angle.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from mt_nodes.base.arrays import Ints
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.world.scene.beams import MOST, RING_FIELDS, Beams, angles_of, beams_of, elevations_of, keep_beams

#: Fields that number the laser of each return; ``line`` is Livox's.
LASER_FIELDS = (*RING_FIELDS, "line", "laser_id", "laser", "beam_id")
BANDS = "elevation bands"
#: A band is at least this high: single precision and noise end there.
_LEAST_BAND_RAD = 1e-4
#: Edges of the field of view are those of all returns but this share: strays do not widen it.
_STRAYS = 0.005
_MOST_BANDS = 4096

_lines: WeakKeyDictionary[Cloud, Beams] = WeakKeyDictionary()
_lasers: WeakKeyDictionary[Cloud, Beams] = WeakKeyDictionary()


def scan_lines_of(cloud: Cloud) -> Beams:
    """Return the rings of a cloud (:func:`beams_of`), or bands of elevation where it has none; cached per cloud.

    A band is as high as a return's share of the field of view is wide: ``√(Ω / n)`` for n returns in a solid angle Ω.
    Raises NotApplicable: the cloud has no return.
    """
    if cloud not in _lines:
        try:
            _lines[cloud] = beams_of(cloud)
        except NotApplicable:
            _lines[cloud] = _bands(cloud)
    return _lines[cloud]


def lasers_of(cloud: Cloud) -> Beams:
    """Return the lasers of a cloud: by a field that numbers them, else its rings, which are one laser each.

    Raises NotApplicable: one laser fires everything; or neither a field nor rings tell lasers apart.
    """
    if cloud not in _lasers:
        _lasers[cloud] = _by_field(cloud) or _by_ring(cloud)
    return _lasers[cloud]


def keep_lines(cloud: Cloud, of: Cloud, lost: Ints) -> None:
    """Declare that a cloud's points are those of another except some (n,), on the same lines."""
    keep_beams(cloud, of, lost)
    _lines[cloud] = scan_lines_of(of).without(lost)


def _by_ring(cloud: Cloud) -> Beams:
    single = next((n for n in filter(cloud.single, LASER_FIELDS) if len(np.unique(cloud.points[n])) == 1), None)
    try:
        return beams_of(cloud)
    except NotApplicable as error:
        if single is not None:
            one = f"one laser fires every return of {cloud.topic}: field {single} is always {cloud.points[single][0]}"
            raise NotApplicable(one) from error
        fields = ", ".join(LASER_FIELDS)
        raise NotApplicable(f"nothing tells the lasers apart, no field of {fields}, and no rings: {error}") from error


def _by_field(cloud: Cloud) -> Beams | None:
    for name in filter(cloud.single, LASER_FIELDS):
        values = np.array(cloud.points[name])
        if len(values) and values.dtype.kind in "iu" and values.min() >= 0 and values.max() < 4 * MOST:
            number = values.astype(np.int16)
            rings = np.flatnonzero(np.bincount(number))
            if len(rings) > 1:
                angles = angles_of(cloud)
                return Beams(
                    number, angles.azimuth_rad, rings, elevations_of(number, rings, angles), f"field {name}", 1.0
                )
    return None


def _bands(cloud: Cloud) -> Beams:
    angles = angles_of(cloud)
    known = np.flatnonzero(angles.known)
    if not len(known):
        raise NotApplicable(f"{cloud.topic} has no return among {len(cloud)} points")
    elevation = angles.elevation_rad[known]
    low, high = np.quantile(elevation, (_STRAYS, 1.0 - _STRAYS)).tolist()
    left, right = np.quantile(angles.azimuth_rad[known], (_STRAYS, 1.0 - _STRAYS)).tolist()
    solid = (np.sin(high) - np.sin(low)) * (right - left)
    height = max(float(np.sqrt(max(solid, 0.0) / len(known))), _LEAST_BAND_RAD, (high - low) / _MOST_BANDS)
    number = np.clip((elevation - low) / height + 1.0, 0.0, (high - low) / height + 2.0).astype(np.int16)
    band = np.full(len(cloud), -1, dtype=np.int16)
    band[known] = number
    bands = np.flatnonzero(np.bincount(number))
    return Beams(band, angles.azimuth_rad, bands, elevations_of(band, bands, angles), BANDS, 1.0)
