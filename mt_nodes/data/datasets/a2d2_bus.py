# SPDX-License-Identifier: Apache-2.0
"""Bus signals of A2D2's sensor fusion sequences: what the driver did, and where the vehicle was.

Source: JSON schema and FAQ (answered by the A2D2 team) of https://github.com/ros-box/a2d2_to_ros. A signal is
``{"unit": …, "values": [[stamp in microseconds, value], …]}``. ``vehicle_speed`` is in km/h and never negative: there
is no reverse driving in these sequences. ``steering_angle_calculated`` is the angle of the steering wheel in degrees
without a sign (614.10: not known yet, 614.25: error); ``…_sign`` is 0 to the left and 1 to the right, directions are 0
to the north and east.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import InfrastructureError
from mt_nodes.data.datasets.recorded_topic import RecordedTopic
from mt_nodes.data.datasets.vehicle_motion import drive_topic, fix_topic

Stamps = npt.NDArray[np.int64]
_Signal = tuple[Stamps, Floats]
#: Angle of the steering wheel by that of the road wheels, of an Audi Q7 without steered rear wheels (Audi's press
#: release of 2015, "steering gear ratio of 15.8:1"); assumed constant, and that the vehicle has no steered rear wheels.
STEERING_RATIO = 15.8
_KMH_MPS, _US_NS = 1.0 / 3.6, 1000
#: Steering from here on, in degrees, says that there is no value.
_NO_STEERING_DEG = 614.05
#: Speed is interpolated between messages that are no farther apart.
_GAP_NS = 500_000_000
_DEGREES = "Unit_DegreOfArc"


def read_json(path: Path) -> Any:
    """Return the content of a file. Raises InfrastructureError: there is none, or it is no JSON object."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InfrastructureError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(content, dict):
        raise InfrastructureError(f"{path}: got a {type(content).__name__}, expected an object of JSON")
    return content


def bus_topics(path: Path, ratio: float) -> list[RecordedTopic]:
    """Return the drive, and the place where it is recorded.

    ``ratio``: angle of the steering wheel by that of the road wheels.
    Raises InfrastructureError: a signal is missing or damaged, has another unit, or no value that can be used.
    """
    signals = read_json(path)
    topics = [_drive(path, signals, ratio)]
    if "latitude_degree" in signals and "longitude_degree" in signals:
        topics.append(_fix(path, signals))
    return topics


def _drive(path: Path, signals: Any, ratio: float) -> RecordedTopic:
    """Return the drive at the stamps of the steering; the speed is interpolated, the sign is the last one before."""
    wheel = _signal(path, signals, "steering_angle_calculated", _DEGREES)
    speed = _signal(path, signals, "vehicle_speed", "Unit_KiloMeterPerHour")
    stamps_ns, degrees = wheel[0], _signed(path, signals, "steering_angle_calculated", "_sign", wheel)
    after = np.clip(np.searchsorted(speed[0], stamps_ns, side="left"), 1, max(len(speed[0]) - 1, 1))
    if len(speed[0]) < 2:
        raise InfrastructureError(f"{path}: vehicle_speed: got {len(speed[0])} values, expected 2 or more")
    inside = (stamps_ns >= speed[0][0]) & (stamps_ns <= speed[0][-1])
    known = inside & (speed[0][after] - speed[0][after - 1] <= _GAP_NS) & (wheel[1] < _NO_STEERING_DEG)
    if not known.any():
        raise InfrastructureError(f"{path}: no instant at which both speed and steering are known")
    # Relative to the first stamp, microseconds are exact in float64.
    at_mps = np.interp(stamps_ns - speed[0][0], speed[0] - speed[0][0], speed[1] * _KMH_MPS)
    return drive_topic(stamps_ns[known].tolist(), at_mps[known], np.radians(degrees[known]) / ratio)


def _fix(path: Path, signals: Any) -> RecordedTopic:
    """Return the places at the stamps of the latitude; the longitude is interpolated, the altitude unknown."""
    north = _signal(path, signals, "latitude_degree", _DEGREES)
    east = _signal(path, signals, "longitude_degree", _DEGREES)
    latitude = _signed(path, signals, "latitude_degree", "", north)
    longitude = _signed(path, signals, "longitude_degree", "", east)
    longitude = np.interp(north[0] - north[0][0], east[0] - north[0][0], longitude)
    return fix_topic(north[0].tolist(), np.column_stack([latitude, longitude, np.full(len(latitude), np.nan)]))


def _signed(path: Path, signals: Any, name: str, ending: str, magnitude: _Signal) -> Floats:
    """Return values with the sign of another signal: 0 is positive; before its first value, that holds."""
    sign_name = f"{name}{ending}" if ending else f"{name.removesuffix('_degree')}_direction"
    stamps_ns, negative = _signal(path, signals, sign_name, None)
    if not np.isin(negative, (0.0, 1.0)).all():
        raise InfrastructureError(f"{path}: {sign_name}: got values other than 0 and 1")
    last = np.maximum(np.searchsorted(stamps_ns, magnitude[0], side="right") - 1, 0)
    return np.abs(magnitude[1]) * (1.0 - 2.0 * negative[last])


def _signal(path: Path, signals: Any, name: str, unit: str | None) -> _Signal:
    """Return stamps in ns, in order, and finite values of a signal."""
    try:
        signal = signals[name]
        rows = [(int(stamp), float(value)) for stamp, value in signal["values"]]
    except (KeyError, TypeError, ValueError) as error:
        expected = f"expected {name}: {{unit, values: [[microseconds, value], …]}} of the sensor fusion sequences"
        raise InfrastructureError(f"{path}: {expected}: {error!r}") from error
    if signal.get("unit") != unit:
        raise InfrastructureError(f"{path}: {name}: got the unit {signal.get('unit')}, expected {unit}")
    rows = sorted(rows)
    stamps_ns = np.array([stamp for stamp, _ in rows], dtype=np.int64) * _US_NS
    values = np.array([value for _, value in rows], dtype=np.float64)
    if not len(rows) or not np.isfinite(values).all():
        raise InfrastructureError(f"{path}: {name}: got {len(rows)} values, expected numbers")
    return stamps_ns, values
