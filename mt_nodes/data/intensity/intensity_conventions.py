# SPDX-License-Identifier: Apache-2.0
"""Intensity conventions of LiDARs as data: which value a surface has, both ways, and the source of that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError, suggest

Values = npt.NDArray[Any]

#: Reflectivity of an ideal retro-reflector relative to a white diffuse surface, at the top of scales with a part for
#: retro-reflectors: assumed, as no manual publishes it. Retro-reflective sheeting has some 100 cd/(lx m²) (ASTM D4956:
#: 70 for type I, 250 for type III), a white diffuse surface 1/π.
RETRO_REFLECTOR = 300.0
#: Nine in ten returns of a street are darker than this: 0.39 in a KITTI drive (HDL-64E), 0.36 and 0.37 in generated
#: streets. The lower half of the returns differs by a factor of three, as it is ground under a grazing beam.
STREET_P90 = 0.38
_NEAREST_M = 0.01
#: Value of a scale that the data has to tell: one that no manual fixes.
FROM_DATA = float("nan")


@dataclass(frozen=True)
class IntensityConvention:
    """What the values of an intensity field mean.

    A diffuse surface of reflectivity ρ (times the cosine of incidence) has the value ``white`` · ρ, at any range if the
    sensor compensates for range, else ``white`` · ρ / R². Above ``white``, values up to ``top`` are those of
    retro-reflectors: linear in reflectivity, or logarithmic up to :data:`RETRO_REFLECTOR`.

    Attributes:
        name: in stack files and on the command line. sensors: whose it is.
        white: value of a white diffuse surface, at 1 m if range is not compensated; :data:`FROM_DATA`.
        top: largest value; infinite without a limit.
        logarithmic: whether values above ``white`` are logarithmic.
        compensated: whether values do not depend on range.
        fading_per_m: values also fall as e^(-a R), with this a (a simulator's).
        source: of these figures.
    """

    name: str
    sensors: str
    white: float
    top: float
    source: str
    logarithmic: bool = False
    compensated: bool = True
    fading_per_m: float = 0.0

    @property
    def at_any_range(self) -> bool:
        """Whether a value means the same at any range."""
        return self.compensated and not self.fading_per_m

    @property
    def proportional(self) -> bool:
        """Whether values are proportional to the received power, all of them."""
        return not self.logarithmic

    def reflectivity(self, values: Values, range_m: Values) -> Values:
        """Return reflectivities (n,) of values (n,) measured at ranges (n,) in metres; 1 is a white diffuse surface.

        The result has single precision, or double where the values have it.
        """
        found = np.asarray(values, _kind(values)) / np.float32(self.white)
        if self.logarithmic:
            bright = np.flatnonzero(found > 1.0)
            share = (found[bright] * self.white - self.white) / (self.top - self.white)
            found[bright] = np.float32(RETRO_REFLECTOR) ** share
        return self._with_range(found, range_m, 1.0)

    def values(self, reflectivity: Values, range_m: Values) -> Values:
        """Return the values (n,), not rounded, of surfaces of some reflectivity (n,) at ranges (n,) in metres."""
        found = self._with_range(np.array(reflectivity, _kind(reflectivity)), range_m, -1.0)
        if self.logarithmic:
            bright = np.flatnonzero(found > 1.0)
            share = np.log(found[bright]) / np.float32(np.log(RETRO_REFLECTOR))
            found[bright] = 1.0 + share * np.float32(self.top / self.white - 1.0)
        found *= np.float32(self.white)
        return np.minimum(found, np.float32(self.top), out=found)

    def decibels(self, values: npt.ArrayLike, range_m: npt.ArrayLike) -> Floats:
        """Return what :meth:`reflectivity` does, in decibels over white, in double precision: for proofs."""
        value, away_m = np.asarray(values, np.float64), np.asarray(range_m, np.float64)
        with np.errstate(divide="ignore"):
            over = 10.0 * (np.log10(value) - np.log10(self.white))
            if self.logarithmic:
                retro = 10.0 * np.log10(RETRO_REFLECTOR) * (value - self.white) / (self.top - self.white)
                over = np.where(value > self.white, retro, over)
            far = 0.0 if self.compensated else 20.0 * np.log10(away_m)
        return np.asarray(over + far + 10.0 * np.log10(np.e) * self.fading_per_m * away_m)

    def _with_range(self, ratio: Values, range_m: Values, sign: float) -> Values:
        """Multiply by what a value loses with range, or (sign -1) divide by it, in place."""
        if self.at_any_range:
            return ratio
        away_m = np.maximum(range_m.astype(ratio.dtype), ratio.dtype.type(_NEAREST_M))
        loss = np.square(away_m) if not self.compensated else np.exp(ratio.dtype.type(self.fading_per_m) * away_m)
        return np.asarray(np.multiply(ratio, loss, out=ratio) if sign > 0 else np.divide(ratio, loss, out=ratio))


def _kind(values: Values) -> np.dtype[Any]:
    return np.dtype(np.float64 if values.dtype == np.float64 else np.float32)


def convention(text: str, where: str = "intensities") -> IntensityConvention:
    """Return a convention by name, or by ``NAME@WHITE`` with the value of a white surface.

    Raises UsageError: there is none, or the value is no positive number.
    """
    name, _, white = text.partition("@")
    if name not in CONVENTIONS:
        raise UsageError(f"{where}: no intensity convention '{name}'{suggest(name, CONVENTIONS)}")
    if not white:
        return CONVENTIONS[name]
    try:
        value = float(white)
    except ValueError:
        value = 0.0
    if not 0.0 < value < math.inf:
        raise UsageError(f"{where}: got '{text}', expected NAME@WHITE with a positive number, such as {name}@120000")
    return replace(CONVENTIONS[name], white=value)


def read_intensities(value: Any, where: str) -> dict[str, Any]:
    """Read ``intensities``: topic -> convention, or field -> convention. Raises UsageError."""
    if not isinstance(value, Mapping):
        raise UsageError(f"{where}: got {value!r}, expected a mapping such as {{/points: ouster_signal}}")
    for topic, of_topic in value.items():
        rows = of_topic if isinstance(of_topic, Mapping) else {"": of_topic}
        for field, text in rows.items():
            at = ".".join(filter(None, (where, str(topic), str(field))))
            if not isinstance(text, str):
                raise UsageError(f"{at}: got {text!r}, expected one of {', '.join(CONVENTIONS)}")
            convention(text, at)
    return {str(topic): of_topic for topic, of_topic in value.items()}


_CALIBRATED = "0 to 100 are diffuse surfaces of 0 to 100 %, 101 to 255 retro-reflectors"
_ROWS = (
    IntensityConvention(
        "velodyne",
        "Velodyne VLP-16, VLP-32C, HDL-32E, VLS-128; nuScenes (HDL-32E), Argoverse 2 (VLP-32C)",
        *(100.0, 255.0),
        f"VLP-16 user manual 63-9243, 6.1: {_CALIBRATED}; logarithmic: assumed",
        logarithmic=True,
    ),
    IntensityConvention(
        "hdl_64e",
        "Velodyne HDL-64E, and the LiDAR of generated drives",
        *(255.0, 255.0),
        "HDL-64E S3 manual: a byte, compensated for distance; that 255 is a white surface: assumed, as KITTI's 90 % "
        "percentile is 0.39 of the scale",
    ),
    IntensityConvention(
        "kitti",
        "KITTI and what is scaled so: HDL-64E, 0 to 1",
        *(1.0, 1.0),
        "KITTI raw development kit: reflectance from 0 to 1 (in steps of 0.01); that 1 is a white surface: assumed",
    ),
    IntensityConvention(
        "velodyne_unit",
        "Velodyne's calibrated values over 255",
        *(100.0 / 255.0, 1.0),
        f"VLP-16 user manual 63-9243, 6.1: {_CALIBRATED}; over 255",
        logarithmic=True,
    ),
    IntensityConvention(
        "ouster_signal",
        "Ouster OS0, OS1, OS2: signal photons, which ouster-ros publishes as intensity",
        *(FROM_DATA, float("inf")),
        "ouster-ros issues 234 and 408: signal photons, no maximum but that of uint16; 1 / R²: LiDAR equation",
        compensated=False,
    ),
    IntensityConvention(
        "ouster_reflectivity",
        "Ouster, firmware 2.1 and later",
        *(100.0, 255.0),
        "Ouster firmware manual, calibrated reflectivity: a byte, signal scaled by range and sensitivity, to 100 "
        "linear for Lambertian targets, above logarithmic for retro-reflectors",
        logarithmic=True,
    ),
    IntensityConvention(
        "ouster_reflectivity_16",
        "Ouster, earlier firmware",
        *(FROM_DATA, 65535.0),
        "OS1 user guide: 16 bit, signal scaled by range and sensitivity, not calibrated",
    ),
    IntensityConvention(
        "hesai",
        "Hesai Pandar, XT, QT, AT",
        *(100.0, 255.0),
        "PandarXT-16 and Pandar40M user manuals: 0 to 255 are 0 to 255 %, linear by default",
    ),
    IntensityConvention(
        "robosense",
        "RoboSense RS-LiDAR-16, -32, Bpearl, Helios",
        *(100.0, 255.0),
        f"RS-Helios-16P user manual 5.3: {_CALIBRATED}; logarithmic: assumed",
        logarithmic=True,
    ),
    IntensityConvention(
        "livox",
        "Livox Mid, Avia, Horizon, Tele, HAP",
        *(150.0, 255.0),
        "Livox user manuals (Mid-360, Avia), output data: 0 to 150 are diffuse surfaces of 0 to 100 %, 151 to 255 "
        "total reflection; logarithmic: assumed",
        logarithmic=True,
    ),
    IntensityConvention(
        "innoviz",
        "InnovizOne, InnovizTwo: reflectivity in percent",
        *(100.0, 255.0),
        "assumed: the maker publishes no scale",
    ),
    IntensityConvention(
        "luminar",
        "Luminar Hydra, Iris: reflectance in percent",
        *(100.0, 255.0),
        "assumed: the maker publishes no scale",
    ),
    IntensityConvention(
        "waymo",
        "Waymo Open Dataset: unbounded, often passed through tanh",
        *(FROM_DATA, float("inf")),
        "waymo-open-dataset issues 40 and 93: raw values, up to tens of thousands, no limit promised",
    ),
    IntensityConvention(
        "carla",
        "CARLA: the transmission of its air alone, no surface",
        *(1.0 / 0.3, 1.0),
        "CARLA documentation, sensor.lidar.ray_cast: e^(-a d), a = 0.004 by default; that all surfaces are 30 %: "
        "assumed",
        fading_per_m=0.004,
    ),
    IntensityConvention(
        "words",
        "16 bits, the whole of them",
        *(65535.0, 65535.0),
        "as in ASPRS LAS 1.4, which asks for intensities normalised to 16 bits; that 65,535 is white: assumed",
    ),
    IntensityConvention(
        "linear",
        "proportional to reflectivity, of unknown scale",
        *(FROM_DATA, float("inf")),
        "assumed where values fit no other: nine in ten returns are darker than 38 %",
    ),
    IntensityConvention(
        "signal",
        "proportional to the received power, of unknown scale",
        *(FROM_DATA, float("inf")),
        "assumed where values fall with range as the LiDAR equation's 1 / R²",
        compensated=False,
    ),
)
CONVENTIONS = {row.name: row for row in _ROWS}
