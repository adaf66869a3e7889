# SPDX-License-Identifier: Apache-2.0
"""Places of lost and gained objects, from the detail of a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

#: Objects that a text names; of more it says how many.
_NAMED = 5


class Place(NamedTuple):
    """Centre of an object in metres, in the frame of the region that the check judges in, and its class."""

    x_m: float
    y_m: float
    label: str = "unknown"

    def __str__(self) -> str:
        return f"{self.label} at x {self.x_m:.1f} m, y {self.y_m:.1f} m"


class ImagePlace(NamedTuple):
    """Left, upper, right and lower edge of an object in an image, in pixels, and its class."""

    x0_px: float
    y0_px: float
    x1_px: float
    y1_px: float
    label: str = "unknown"

    def __str__(self) -> str:
        return f"{self.label} at {self.x0_px:.0f}, {self.y0_px:.0f} to {self.x1_px:.0f}, {self.y1_px:.0f} px"


AnyPlace = Place | ImagePlace


def places_of(detail: Mapping[str, Any]) -> tuple[tuple[AnyPlace, ...], tuple[AnyPlace, ...]]:
    """Return the lost and the gained objects that a verdict's detail names."""
    return _places(detail, "lost"), _places(detail, "gained")


def with_places(reason: str, lost: Sequence[AnyPlace], gained: Sequence[AnyPlace]) -> str:
    """Return the reason of a verdict, with the lost and gained objects if it does not name them itself."""
    named = [_named(what, places) for what, places in (("lost", lost), ("gained", gained)) if what not in reason]
    return "; ".join(filter(None, (reason, *named)))


def _named(what: str, places: Sequence[AnyPlace]) -> str:
    more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return f"{what} {', '.join(map(str, places[:_NAMED]))}{more}" if places else ""


def _places(detail: Mapping[str, Any], what: str) -> tuple[AnyPlace, ...]:
    on_ground = (Place(float(x), float(y), *_label(more)) for x, y, *more in detail.get(f"{what}_at", ()))
    boxes = ((map(float, row[:4]), row[4:]) for row in detail.get(f"{what}_px", ()))
    in_image = (ImagePlace(x0, y0, x1, y1, *_label(more)) for (x0, y0, x1, y1), more in boxes)
    return (*on_ground, *in_image)


def _label(more: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(str, more[:1]))
