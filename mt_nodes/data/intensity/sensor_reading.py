# SPDX-License-Identifier: Apache-2.0
"""What is known of the sensor of a topic: decided once, from the first cloud that tells, for the whole episode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mt_nodes.data.intensity.echo_fields import ECHO_NAMES, EchoField, EchoFields
from mt_nodes.data.intensity.firing_rows import is_dual
from mt_nodes.data.intensity.intensity_conventions import CONVENTIONS, convention

Points = npt.NDArray[Any]
C = TypeVar("C", bound="SensorCloud")

#: What the user says: topic -> convention, or field -> convention.
Intensities = Mapping[str, Mapping[str, str] | str]
#: A cloud with fewer returns decides nothing for those that follow.
_TELLING = 200
_LOOKED_AT = 2000


class SensorReading:
    """How a topic's clouds are read, recognised from one of them when first asked for.

    ``topic``: of the clouds. ``points``: (N,) of the cloud that decides. ``given``: what the user says.
    ``used``: whether anything has asked a cloud for its echoes: a run says what it assumed only then.
    """

    used = False

    def __init__(self, topic: str, points: Points, given: Mapping[str, str] | str = "") -> None:
        self._source = topic, points, given

    @classmethod
    def known(cls, topic: str, name: str, field: str = "intensity") -> SensorReading:
        """Return a reading that needs no cloud: of a field, by a convention with a scale of its own."""
        reading, row = cls(topic, np.empty(0)), convention(name)
        reading.__dict__["dual_return"] = False
        reading.__dict__["fields"] = EchoFields((EchoField(field, row, row.top),), (), f"{field}: {name}, as generated")
        return reading

    @classmethod
    def of_plain(cls, topic: str, plain: Mapping[str, Any]) -> SensorReading:
        """Return the reading that :meth:`as_plain` described. Raises LookupError, TypeError, ValueError: it is none."""
        reading, fields = cls(topic, np.empty(0)), []
        for row in plain["fields"]:
            white, fading = float(row["white"]), float(row["fading_per_m"])
            form = replace(CONVENTIONS[row["convention"]], white=white, fading_per_m=fading)
            fields.append(EchoField(str(row["name"]), form, float(row["full_scale"])))
        words = (str(plain[name]) for name in ("assumption", "doubt"))
        reading.__dict__["fields"] = EchoFields(tuple(fields), tuple(plain["ambient"]), *words)
        reading.__dict__["dual_return"] = bool(plain["dual_return"])
        return reading

    def as_plain(self) -> dict[str, Any]:
        """Return it as JSON has it, to the last digit."""
        fields = [
            {
                "name": field.name,
                "convention": field.convention.name,
                "white": field.convention.white,
                "fading_per_m": field.convention.fading_per_m,
                "full_scale": field.full_scale,
            }
            for field in self.fields.fields
        ]
        known = {"ambient": list(self.fields.ambient), "dual_return": self.dual_return}
        return {"fields": fields, **known, "assumption": self.fields.assumption, "doubt": self.fields.doubt}

    @cached_property
    def fields(self) -> EchoFields:
        """The echo fields."""
        from mt_nodes.data.intensity.intensity_recognition import recognise  # for those who look at intensities

        return recognise(*self._source)

    @cached_property
    def dual_return(self) -> bool:
        """Whether the sensor reports several returns of one firing."""
        return is_dual(self._source[1])


class SensorCloud:
    """The part of a cloud that its intensities are understood by.

    A reading goes on to clouds of the same layout that are made of this one (``with_raw``), so that what a mutation
    does to values never changes what they mean.
    """

    topic: str
    points: Points

    def single(self, name: str) -> bool:
        """Whether there is a field of this name with one number a point."""
        return name in (self.points.dtype.names or ()) and not self.points.dtype[name].shape

    @property
    def intensity_field(self) -> str | None:
        """Name of the intensity-like field, None when there is none."""
        return next(filter(self.single, ECHO_NAMES), None)

    @property
    def echo_names(self) -> tuple[str, ...]:
        """Names of all fields with the strength of an echo."""
        return tuple(filter(self.single, ECHO_NAMES))

    @property
    def echoes(self) -> EchoFields:
        """All fields with the strength of an echo, and what their values mean."""
        self.reading.used = True
        return self.reading.fields

    @cached_property
    def reading(self) -> SensorReading:
        """How its intensities are read: as the episode's first cloud says; by itself, if it is of none."""
        return SensorReading(self.topic, self.points)

    def read_as(self: C, reading: SensorReading) -> C:
        """Set how intensities are read, and return this cloud."""
        self.__dict__["reading"] = reading
        return self


class SensorBook:
    """Gives all clouds of an episode the reading of the first one on their topic that tells.

    ``given``: what the user says.
    """

    def __init__(self, given: Intensities | None = None) -> None:
        self._given = dict(given or {})
        self._readings: dict[str, SensorReading] = {}

    def read(self, cloud: C) -> C:
        """Have a cloud read as the first one of its topic, and return it."""
        reading = self._readings.get(cloud.topic)
        if reading is None:
            reading = SensorReading(cloud.topic, cloud.points, self._given.get(cloud.topic, ""))
            if _returns(cloud.points) >= _TELLING:
                self._readings[cloud.topic] = reading
        return cloud.read_as(reading)


def _returns(points: Points) -> int:
    """Return about how many of some points (N,) are returns."""
    step = max(1, len(points) // _LOOKED_AT)
    away = sum(np.abs(points[::step][name].astype(np.float64)) for name in "xyz")
    return int(np.count_nonzero((away > 0.0) & (away < np.inf))) * step
