# SPDX-License-Identifier: Apache-2.0
"""Named LiDARs as data: beams, range, accuracy, and the source of the figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError, suggest

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rosette:
    """Two counter-rotating wedge prisms: a pattern that fills its circle without repetition.

    The deflections of thin prisms add up, so at time t the beam leaves the x axis by
    ``(half_angle / 2) * (cos w1 t + cos w2 t, sin w1 t + sin w2 t)`` to the side and up. Several lasers fire in turn,
    in directions that are ``line_deg`` apart.
    """

    half_angle_deg: float
    prisms_rpm: tuple[float, float]
    points_per_s: int
    lines: int = 1
    line_deg: float = 0.0


@dataclass(frozen=True)
class Raster:
    """Two mirrors, or a matrix of pixels: rows of a field of view, from the top, each from left to right.

    Attributes:
        width_deg, height_deg: field of view. columns, rows: rays of one frame.
        back_and_forth: every other row runs from right to left, as a mirror that swings does.
        bow_deg: how far the ends of a row lie above its middle: a second mirror sees the first one's swing at an angle.
    """

    width_deg: float
    height_deg: float
    columns: int
    rows: int
    back_and_forth: bool = False
    bow_deg: float = 0.0


@dataclass(frozen=True)
class SensorModel:
    """A LiDAR as its maker describes it.

    Attributes:
        elevations_deg: angle of each ring from the lowest up; none for a sensor without rings.
        azimuth_step_deg: between two columns at 10 revolutions per second; 0 without rings.
        range_min_m, range_max_m: limits of reported ranges. accuracy_m: standard deviation or stated accuracy.
        source: of the figures.
    """

    name: str
    elevations_deg: tuple[float, ...]
    azimuth_step_deg: float
    range_min_m: float
    range_max_m: float
    accuracy_m: float
    source: str
    rosette: Rosette | None = None
    raster: Raster | None = None

    def directions(self, start_s: float = 0.0, duration_s: float = 0.1) -> Floats:
        """Return unit vectors (N, 3) of the beams, x ahead, y left, z up, in the order of firing.

        A spinning sensor gives one revolution clockwise from straight ahead, column by column, at any time; a raster
        one frame; a rosette the beams of ``duration_s`` from ``start_s`` on.
        """
        if self.raster is not None:
            return _raster(self.raster)
        if self.rosette is not None:
            return _rosette(self.rosette, start_s, duration_s)
        columns = round(360.0 / self.azimuth_step_deg)
        azimuth = -2.0 * np.pi * np.arange(columns)[:, None] / columns
        return _unit(azimuth, np.radians(self.elevations_deg)[None, :])


def sensor_model(name: str) -> SensorModel:
    """Return a model by name.

    Raises:
        UsageError: there is none; suggests the nearest.
    """
    if name not in SENSORS:
        raise UsageError(f"no sensor model '{name}'{suggest(name, SENSORS)}")
    return SENSORS[name]


def _unit(azimuth_rad: Floats, elevation_rad: Floats) -> Floats:
    x, y = np.cos(elevation_rad) * np.cos(azimuth_rad), np.cos(elevation_rad) * np.sin(azimuth_rad)
    return np.stack([x, y, np.broadcast_to(np.sin(elevation_rad), x.shape)], axis=-1).reshape(-1, 3)


def _rosette(rosette: Rosette, start_s: float, duration_s: float) -> Floats:
    time_s = start_s + np.arange(round(duration_s * rosette.points_per_s)) / rosette.points_per_s
    first, second = (2.0 * np.pi / 60.0 * rpm * time_s for rpm in rosette.prisms_rpm)
    half = np.radians(rosette.half_angle_deg) / 2.0
    line = np.radians(rosette.line_deg) * (np.arange(len(time_s)) % rosette.lines - (rosette.lines - 1) / 2.0)
    return _unit(half * (np.cos(first) + np.cos(second)), half * (np.sin(first) + np.sin(second)) + line)


def _raster(raster: Raster) -> Floats:
    share = np.linspace(0.5, -0.5, raster.columns)
    azimuth = np.tile(np.radians(raster.width_deg) * share, (raster.rows, 1))
    if raster.back_and_forth:
        azimuth[1::2] = azimuth[1::2, ::-1]
    level = np.radians(raster.height_deg) * np.linspace(0.5, -0.5, raster.rows)
    bow = np.radians(raster.bow_deg) * np.square(2.0 * azimuth / np.radians(raster.width_deg))
    return _unit(azimuth, level[:, None] + bow)


def _even(low_deg: float, high_deg: float, beams: int) -> tuple[float, ...]:
    return tuple(np.linspace(low_deg, high_deg, beams).round(4).tolist())


_MODELS = (
    SensorModel(
        "hdl_64e",
        _even(-24.33, -8.83, 32) + _even(-8.33, 2.0, 32),
        0.1728,
        0.9,
        120.0,
        0.02,
        "Velodyne HDL-64E: +2° to -8.33° by 1/3°, -8.83° to -24.33° by 1/2°, 0.1728° at 10 Hz (S2), 0.9 m (S3 manual); "
        "2 cm and 120 m are assumed, of the order of its class",
    ),
    SensorModel(
        "hdl_32e",
        _even(-30.67, 10.67, 32),
        0.16,
        1.0,
        100.0,
        0.02,
        "Velodyne HDL-32E manual: -30.67° to +10.67° in steps of 1.33°; 1 to 100 m; 2 cm is assumed, as of its class",
    ),
    SensorModel(
        "vlp_16",
        _even(-15.0, 15.0, 16),
        0.2,
        0.5,
        100.0,
        0.03,
        "Velodyne VLP-16: ±15° in steps of 2°, 0.2° at 10 Hz (0.1° to 0.4° by rate); 3 cm; 100 m; 0.5 m assumed",
    ),
    SensorModel(
        "os1_128",
        _even(-22.5, 22.5, 128),
        360.0 / 1024,
        0.8,
        120.0,
        0.03,
        "OS1 data sheet: 128 beams over ±22.5°, 512, 1024 or 2048 columns, 0.8 to 120 m; 1.5 to 10 cm (1 sigma)",
    ),
    SensorModel(
        "livox_mid_40",
        (),
        0.0,
        1.0,
        260.0,
        0.02,
        "Livox Mid-40: circle of 38.4°, 100,000 points/s; two prisms, as R. G. Brazeal et al. model it (A Rigorous "
        "Observation Model for the Risley Prism-Based Livox Mid-40 Lidar Sensor, Sensors 21(14), 2021); their speeds, "
        "2 cm and 260 m are assumed: speeds of no small common measure, so that the pattern does not repeat",
        Rosette(19.2, (7294.0, -4664.0), 100_000),
    ),
    SensorModel(
        "livox_avia",
        (),
        0.0,
        1.0,
        320.0,
        0.02,
        "Livox Avia: six lines, 240,000 points/s, 70.4° x 77.2° in its non-repetitive mode, here a circle of 70.4°; "
        "2 cm; 320 m; prism speeds, and 0.9° between lines, are assumed",
        Rosette(33.0, (7294.0, -4664.0), 240_000, 6, 0.9),
    ),
    SensorModel(
        "innoviz_one",
        (),
        0.0,
        1.0,
        250.0,
        0.03,
        "InnovizOne: a MEMS mirror, 115° x 25°, 0.1° x 0.1°, 250 m; 3 cm and 1 m are assumed",
        raster=Raster(115.0, 25.0, 1150, 250),
    ),
    SensorModel(
        "luminar_iris",
        (),
        0.0,
        1.0,
        250.0,
        0.02,
        "Luminar Iris: two mirrors, 1550 nm, 120° x 26°, 250 m at 10 %; lines swing back and forth and bend by 1° "
        "(assumed), 200 lines of 1,000 points a frame are assumed, of its 0.05° grid in the region of interest",
        raster=Raster(120.0, 26.0, 1000, 200, back_and_forth=True, bow_deg=1.0),
    ),
    SensorModel(
        "flash_spad",
        (),
        0.0,
        0.5,
        200.0,
        0.03,
        "A matrix of single-photon pixels without moving parts, 128 x 80, as the ibeoNEXT has; 60° x 30°, 200 m and "
        "3 cm are assumed",
        raster=Raster(60.0, 30.0, 128, 80),
    ),
)
SENSORS = {model.name: model for model in _MODELS}
