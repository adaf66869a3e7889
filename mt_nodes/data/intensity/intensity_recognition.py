# SPDX-License-Identifier: Apache-2.0
"""Which intensity convention a cloud follows: from its fields, their types, and robust figures of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles
from mt_nodes.base.errors import UsageError
from mt_nodes.data.intensity.echo_fields import AMBIENT_NAMES, EchoField, EchoFields, echo_names
from mt_nodes.data.intensity.intensity_conventions import CONVENTIONS, STREET_P90, IntensityConvention, convention

Points = npt.NDArray[Any]

#: Returns that are looked at, at most, spread evenly over the cloud.
_SAMPLE = 20_000
#: Ranges between which dependence on range is fitted, m; the bins of that; returns that a bin needs.
_FIT_M, _BINS, _IN_BIN = (4.0, 50.0), 10, 20
#: Exponents of range: steeper is not compensated (ideal: -2), flatter is (ideal: 0), between is in doubt.
_STEEP, _FLAT = -1.4, -1.0
#: Fog of this extinction, 1/m (visibility 100 m by Koschmieder's law), tells whether two readings differ in severity.
_FOG_PER_M = 0.03
#: A target of 90 % is just seen so far away, m: as of :class:`~mt_nodes.relations.mutations.joint.weather.Weather`.
_SEEN_M = 120.0
_MOST_APART = 2.0
#: The largest value that anything but glare has, and how much brighter than the rest glare may be.
_MOST, _GLARE = 65_535, 1000.0
#: Readings in which nine in ten returns are darker than something between these are plausible.
_PLAUSIBLE = STREET_P90 / 2.2, STREET_P90 * 2.2


@dataclass(frozen=True, eq=False)
class IntensitySample:
    """Some returns of a cloud: their ranges (n,) and the values (n,) of each echo field, finite all of them."""

    range_m: Singles
    values: Mapping[str, Floats]
    whole: Mapping[str, bool]

    @classmethod
    def of(cls, points: Points, names: tuple[str, ...]) -> IntensitySample:
        """Take a sample of a cloud's points."""
        some = points[:: max(1, len(points) // _SAMPLE)]
        squares = sum(np.square(some[name].astype(np.float64)) for name in "xyz")
        range_m = np.sqrt(squares)
        columns = {name: some[name].astype(np.float64) for name in names}
        good = np.isfinite(range_m) & (range_m > 0.0)
        for column in columns.values():
            good &= np.isfinite(column)
        whole = {name: points.dtype[name].kind in "iu" for name in names}
        return cls(range_m[good].astype(np.float32), {n: c[good] for n, c in columns.items()}, whole)


def recognise(topic: str, points: Points, given: Mapping[str, str] | str = "") -> EchoFields:
    """Return the echo fields of a cloud with their conventions.

    ``points``: (N,) of the cloud. ``given``: by the user: a convention for the field that the topic's clouds have, or
    field -> convention.
    """
    names = echo_names(points)
    ambient = tuple(name for name in AMBIENT_NAMES if name in (points.dtype.names or ()))
    if not names:
        return EchoFields((), ambient, f"{topic} has no intensity")
    chosen = _given(topic, names, given)
    sample = IntensitySample.of(points, names)
    if not len(sample.range_m):
        return EchoFields(
            tuple(EchoField(n, CONVENTIONS["hdl_64e"], 255.0) for n in names), ambient, doubt=_nothing(topic)
        )
    readings = {name: _Reading.given(chosen[name], sample, name) for name in chosen}
    for name in sorted(set(names) - set(chosen), key=lambda n: (n != "reflectivity", names.index(n))):
        readings[name] = _read(name, frozenset(points.dtype.names or ()), sample, readings)
    order = sorted(names, key=lambda n: (readings[n].fitted, names.index(n)))
    doubt = next((readings[n].doubt for n in order if readings[n].doubt), "")
    says = "; ".join(f"{n}: {readings[n].words}" for n in order)
    fields = tuple(EchoField(n, readings[n].convention, _full_scale(readings[n].convention, sample, n)) for n in order)
    text = (
        f"{topic}: {doubt}; say what they are: intensities: {{{topic}: NAME}} in the stack file, --set "
        f"intensities.{topic}=NAME, or `mt mutate --intensities {topic}=NAME`; NAME: {', '.join(CONVENTIONS)}"
    )
    return EchoFields(fields, ambient, says, doubt and text)


_GIVEN = "as given"


@dataclass(frozen=True)
class _Reading:
    """A convention with its scale, why, and what is doubtful about it; ``fitted`` if the scale is from the data."""

    convention: IntensityConvention
    why: str
    doubt: str = ""

    @classmethod
    def given(cls, name: str, sample: IntensitySample, field: str) -> _Reading:
        """Return what the user says, with its scale."""
        return cls(_scaled(convention(name), sample, field), _GIVEN)

    @property
    def fitted(self) -> bool:
        """Whether the scale came from the data."""
        return bool(np.isnan(CONVENTIONS[self.convention.name].white)) and self.why != _GIVEN

    @property
    def words(self) -> str:
        """One line for people."""
        row = self.convention
        range_words = "range compensated" if row.compensated else "range not compensated"
        scale = f"{row.white:.4g} at 1 m" if not row.compensated else f"{row.white:.4g}"
        return f"{row.name} ({range_words}, white is {scale}), {self.why}"


def _given(topic: str, names: tuple[str, ...], given: Mapping[str, str] | str) -> dict[str, str]:
    chosen = {names[0]: given} if isinstance(given, str) and given else dict(given or {})
    if unknown := sorted(set(chosen) - set(names)):
        raise UsageError(
            f"intensities: {topic} has no field {', '.join(unknown)}; it has {', '.join(names) or 'no intensity'}"
        )
    return chosen


def _full_scale(row: IntensityConvention, sample: IntensitySample, name: str) -> float:
    return row.top if np.isfinite(row.top) else float(np.quantile(sample.values[name], 0.999))


def _nothing(topic: str) -> str:
    return f"no intensity of {topic} is a finite number"


def _read(name: str, layout: frozenset[str], sample: IntensitySample, before: Mapping[str, _Reading]) -> _Reading:
    """Return how a field is read, from the layout if that tells, else from its values."""
    values = sample.values[name]
    if senseless := _senseless(name, values):
        return _Reading(CONVENTIONS["linear"], "", senseless)
    ouster = {"t", "reflectivity", "ring"} <= layout or {"signal", "reflectivity"} <= layout
    if ouster and name == "reflectivity":
        return _of_ouster(sample, name)
    if ouster and "reflectivity" in before:
        return _beside(sample, name, before["reflectivity"])
    if {"tag", "line"} <= layout:
        return _Reading(CONVENTIONS["livox"], "from the fields tag and line")
    if "elongation" in layout:
        return _by_range(sample, name, "waymo", "from the field elongation")
    return _by_values(sample, name, layout)


def _senseless(name: str, values: Floats) -> str:
    """Return what is wrong with values that no sensor gives; empty for others."""
    low, most, high = float(values.min()), float(np.quantile(values, 0.999)), float(values.max())
    if low >= 0.0 and most <= _MOST and high <= _GLARE * max(most, 1.0):
        return ""
    return f"values of {name} from {low:g} to {high:g} fit none of the scales, from 0 to 1, 255 or {_MOST:,}"


def _of_ouster(sample: IntensitySample, name: str) -> _Reading:
    calibrated = CONVENTIONS["ouster_reflectivity"]
    if np.quantile(sample.values[name], 0.9) <= calibrated.white and sample.values[name].max() <= calibrated.top:
        return _Reading(calibrated, "from the fields t, ring and reflectivity")
    return _Reading(_scaled(CONVENTIONS["ouster_reflectivity_16"], sample, name), "from the fields and values over 255")


def _beside(sample: IntensitySample, name: str, calibrated: _Reading) -> _Reading:
    """Return how a field beside a calibrated reflectivity is read: a signal falls with range relative to that."""
    rho = calibrated.convention.reflectivity(sample.values["reflectivity"], sample.range_m)
    values = sample.values[name]
    if np.array_equal(values, sample.values["reflectivity"]):
        return _Reading(calibrated.convention, "as it equals reflectivity")
    seen = (values > 0.0) & (rho > 0.02) & (rho < 1.0)
    slope = _slope(sample.range_m[seen], values[seen] / rho[seen])
    form = CONVENTIONS["linear" if slope is not None and slope > _STEEP else "ouster_signal"]
    if not seen.any():
        return _Reading(_scaled(form, sample, name), "from the fields")
    at_1_m = values[seen] / rho[seen] * (1.0 if form.compensated else np.square(sample.range_m[seen].astype(float)))
    return _Reading(replace(form, white=float(np.median(at_1_m))), "from the fields, scaled by reflectivity beside it")


def _by_values(sample: IntensitySample, name: str, layout: frozenset[str]) -> _Reading:
    """Return how a field is read that its layout does not tell."""
    values, most = sample.values[name], float(sample.values[name].max())
    if most > 255.0:
        return _by_range(sample, name, "linear", "from values over 255")
    if most > 1.0 or sample.whole[name]:
        return _nearest(sample, name, _byte_names(layout, values), "0 to 255")
    if (fading := _fading(sample, values)) is not None:
        return _Reading(replace(CONVENTIONS["carla"], fading_per_m=fading), "as values are e^(-a R)")
    if _in_steps(values, 0.01):
        return _Reading(CONVENTIONS["kitti"], "from 0 to 1 in steps of 0.01")
    return _nearest(sample, name, ("kitti", "velodyne_unit"), "0 to 1")


def _byte_names(layout: frozenset[str], values: Floats) -> tuple[str, ...]:
    """Return the conventions of 0 to 255 that a layout admits, the likeliest first."""
    if {"ring", "timestamp"} <= layout:
        return "hesai", "robosense"
    if "laser_number" in layout:
        return ("velodyne",)
    return ("velodyne", "hdl_64e") if np.quantile(values, 0.9) <= 100.0 else ("hdl_64e",)


def _nearest(sample: IntensitySample, name: str, names: tuple[str, ...], span: str) -> _Reading:
    """Return the convention that makes the street as bright as streets are; in doubt if another differs in severity."""
    values = sample.values[name]
    p90 = max(float(np.quantile(values, 0.9)), 1e-9)
    rows = sorted((CONVENTIONS[n] for n in names), key=lambda row: abs(np.log(p90 / row.white / STREET_P90)))
    chosen, likely = rows[0], [r for r in rows if _PLAUSIBLE[0] <= p90 / r.white <= _PLAUSIBLE[1]]
    doubt = ""
    for other in likely[1:]:
        if (times := _apart(sample, values, chosen, other)) > _MOST_APART:
            doubt = f"{name} from {span} may be {chosen.name} or {other.name}, by which fog differs {times:.1f} times"
    why = f"from {span}: nine in ten returns below {p90 / chosen.white:.2f} of white"
    return _Reading(chosen, why, doubt)


def _by_range(sample: IntensitySample, name: str, compensated: str, why: str) -> _Reading:
    """Return how a field of unknown scale is read, by its dependence on range."""
    values = sample.values[name]
    if sample.whole[name] and np.quantile(values, 0.9) > 0.1 * CONVENTIONS["words"].white:
        return _Reading(CONVENTIONS["words"], "as values fill 16 bits")
    slope = _slope(sample.range_m[values > 0.0], values[values > 0.0])
    if slope is None:
        return _Reading(_scaled(CONVENTIONS[compensated], sample, name), f"{why}; too few returns to fit range")
    row = CONVENTIONS["signal" if slope < _STEEP else compensated]
    doubt = f"{name} falls as R^{slope:.1f}, neither R^0 nor R^-2" if _STEEP <= slope < _FLAT else ""
    return _Reading(_scaled(row, sample, name), f"{why}, which go as R^{slope:.1f}", doubt)


def _scaled(row: IntensityConvention, sample: IntensitySample, name: str) -> IntensityConvention:
    """Return a convention with its scale: nine in ten returns are darker than :data:`STREET_P90`."""
    if not np.isnan(row.white):
        return row
    values, range_m = sample.values[name], sample.range_m.astype(np.float64)
    p90 = float(np.quantile(values if row.compensated else values * np.square(range_m), 0.9))
    return replace(row, white=max(p90, 1e-9) / STREET_P90)


def _slope(range_m: Singles, values: npt.NDArray[Any]) -> float | None:
    """Return the exponent of range in values (n,), from the medians of bins; None with too few returns."""
    bins = np.geomspace(*_FIT_M, _BINS + 1)
    which = np.searchsorted(bins, range_m)
    rows = [np.flatnonzero(which == i) for i in range(1, _BINS + 1)]
    found = [(np.log(np.median(range_m[r])), np.log(np.quantile(values[r], 0.75))) for r in rows if len(r) >= _IN_BIN]
    if len(found) < _BINS // 2:
        return None
    x, y = np.transpose(found)
    return float(np.polyfit(x, y, 1)[0])


def _fading(sample: IntensitySample, values: Floats) -> float | None:
    """Return a of values that are e^(-a R) alone, as a simulator's are; None for others."""
    if len(values) < _IN_BIN or values.min() <= 0.0:
        return None
    loss, range_m = -np.log(values), sample.range_m.astype(np.float64)
    rate = float((loss * range_m).sum() / np.square(range_m).sum())
    return rate if 1e-4 <= rate <= 0.2 and np.abs(loss - rate * range_m).max() <= 0.02 * loss.max() else None


def _in_steps(values: Floats, step: float) -> bool:
    steps = values / step
    return bool(np.abs(steps - np.rint(steps)).max() < 1e-4)


def _apart(sample: IntensitySample, values: Floats, one: IntensityConvention, other: IntensityConvention) -> float:
    """Return how many times more returns fog takes by one reading than by the other."""
    first, second = (_lost(row.reflectivity(values, sample.range_m), sample.range_m) + 0.01 for row in (one, other))
    return max(first / second, second / first)


def _lost(rho: Singles, range_m: Singles) -> float:
    """Return the share of returns that fog takes: of power ρ / R² what light leaves out and back, over the floor."""
    power = rho / 0.9 * np.square(_SEEN_M / np.maximum(range_m, 1.0))
    seen = power >= 1.0
    left = power * np.exp(-2.0 * _FOG_PER_M * range_m)
    return float((left[seen] < 1.0).mean()) if seen.any() else 0.0
