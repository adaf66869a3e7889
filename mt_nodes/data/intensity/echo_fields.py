# SPDX-License-Identifier: Apache-2.0
"""The fields of a cloud that say how strong its echoes are, each on its own convention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.intensity.intensity_conventions import IntensityConvention

Points = npt.NDArray[Any]
At = npt.NDArray[np.int64] | slice

#: Fields with the strength of an echo, the most usual name first.
ECHO_NAMES = ("intensity", "i", "reflectivity", "signal", "reflectance")
#: Fields with the light that is there without the sensor's own: no strength of an echo.
AMBIENT_NAMES = ("near_ir", "ambient", "noise")


@dataclass(frozen=True)
class EchoField:
    """One field, and what its values mean.

    ``full_scale``: the largest value of its convention; where that has none, that of the brightest return in a
    thousand.
    """

    name: str
    convention: IntensityConvention
    full_scale: float

    def as_field(self, points: Points, values: Points) -> Points:
        """Return values (n,) in the type of the field: for integers rounded, and within their limits."""
        kind = points.dtype[self.name].newbyteorder("=")
        if kind.kind == "f":
            return np.asarray(values.astype(kind))
        limits = np.iinfo(kind)
        return np.clip(np.rint(values), limits.min, limits.max).astype(kind)

    def reflectivity(self, points: Points, at: At, range_m: Points) -> Points:
        """Return the reflectivities (n,) of some points at ranges (n,) in metres."""
        return self.convention.reflectivity(points[self.name][at], range_m)

    def values(self, points: Points, reflectivity: Points, range_m: Points) -> Points:
        """Return the values (n,) of surfaces of some reflectivity (n,) at ranges (n,), in the type of the field."""
        return self.as_field(points, self.convention.values(reflectivity, range_m))

    def weakened(self, points: Points, at: At, share: Points, range_m: Points) -> Points:
        """Return the values (n,) of some points of whose light a share (n,) is left, in the type of the field."""
        values = points[self.name][at]
        if self.convention.proportional:
            return self.as_field(points, values * share)
        left = self.convention.reflectivity(values, range_m) * share
        return self.as_field(points, self.convention.values(left, range_m))


@dataclass(frozen=True)
class EchoFields:
    """All fields of a topic's clouds with the strength of an echo.

    What changes an echo changes all of them together. Ambient light (``near_ir``, ``ambient``) is none of them: an echo
    that is weakened or replaced keeps the ambient light that its ray had, because no mutation knows that of another
    surface.

    Attributes:
        fields: the one that reflectivities are read from first.
        ambient: names of the fields with ambient light.
        assumption: for people: what was assumed, and from what.
        doubt: why no assumption is safe, and what to type; empty where one is.
    """

    fields: tuple[EchoField, ...] = ()
    ambient: tuple[str, ...] = ()
    assumption: str = ""
    doubt: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields."""
        return tuple(field.name for field in self.fields)

    @property
    def leading(self) -> EchoField:
        """The field that reflectivities are read from."""
        return self.fields[0]

    def field(self, name: str) -> EchoField:
        """Return a field by name."""
        return next(field for field in self.fields if field.name == name)

    def refuse_doubt(self) -> None:
        """Refuse values that cannot be understood. Raises NotApplicable: saying what to type."""
        if self.doubt:
            raise NotApplicable(self.doubt)

    def reflectivity(self, points: Points, at: At, range_m: Points) -> Points:
        """Return the reflectivities (n,) of some points at ranges (n,) in metres: 1 is a white diffuse surface.

        Raises NotApplicable: their convention is in doubt.
        """
        self.refuse_doubt()
        return self.leading.reflectivity(points, at, range_m)

    def values(self, points: Points, reflectivity: Points, range_m: Points) -> dict[str, Points]:
        """Return the values (n,) of surfaces of some reflectivity (n,) at ranges (n,), by field, in its type.

        Raises NotApplicable: their convention is in doubt.
        """
        self.refuse_doubt()
        return {field.name: field.values(points, reflectivity, range_m) for field in self.fields}

    def weakened(self, points: Points, at: At, share: Points, range_m: Points) -> dict[str, Points]:
        """Return the values (n,) of some points of whose light a share (n,) is left, by field, in its type.

        Raises NotApplicable: their convention is in doubt.
        """
        self.refuse_doubt()
        return {field.name: field.weakened(points, at, share, range_m) for field in self.fields}

    def relit(self, points: Points, at: At, reflectivity: Points, range_m: Points) -> dict[str, Points]:
        """Return the values (n,) of some points whose surfaces become ones of another reflectivity (n,), by field.

        Where they become darker, other fields than the leading one change by the same factor, so that they keep what
        they know more exactly; a return that the leading field rounds to 0 keeps them.
        Raises NotApplicable: their convention is in doubt.
        """
        values = self.values(points, reflectivity, range_m)
        if len(self.fields) > 1:
            before = self.leading.reflectivity(points, at, range_m)
            darker = reflectivity <= before * (1.0 + 1e-6)
            share = np.divide(reflectivity, before, out=np.ones(len(before)), where=darker & (before > 0.0))
            for field in self.fields[1:]:
                scaled = field.weakened(points, at, share, range_m)
                values[field.name] = np.where(darker, scaled, values[field.name])
        return values


def echo_names(points: Points) -> tuple[str, ...]:
    """Return the names of the fields with the strength of an echo, as far as names tell."""
    return tuple(name for name in ECHO_NAMES if name in (points.dtype.names or ()) and not points.dtype[name].shape)


def write_values(points: Points, at: At, values: dict[str, Points]) -> None:
    """Write values (n,) by field into some points."""
    for name, column in values.items():
        points[name][at] = column
