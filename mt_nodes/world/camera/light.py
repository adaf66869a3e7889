# SPDX-License-Identifier: Apache-2.0
"""Sample values and light, by the transfer function of sRGB (IEC 61966-2-1).

Both are shares of full scale. A camera's own tone curve is unknown: sRGB's is assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Singles

#: Red, green and blue.
Colour = tuple[float, float, float]
#: Rows that are mapped at a time, so that their planes fit the processor's cache.
_STRIPE_PX = 128
Curve = Callable[[Floats], Floats]


def light_of(values: npt.ArrayLike) -> Floats:
    """Return the light, 0 to 1, of sample values, 0 to 1."""
    v = np.asarray(values, dtype=np.float64)
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def values_of(light: npt.ArrayLike) -> Floats:
    """Return the sample values, 0 to 1, of light; light above full scale is clipped."""
    x = np.clip(np.asarray(light, dtype=np.float64), 0.0, 1.0)
    return np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1.0 / 2.4) - 0.055)


def table(curve: Curve, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a curve from values to values, both 0 to 1, as a table over all samples of a type (256,) or (65536,)."""
    top = int(np.iinfo(dtype).max)
    return np.asarray(np.rint(np.clip(curve(np.arange(top + 1) / top), 0.0, 1.0) * top).astype(dtype))


def mapped_by_table(
    pixels: npt.NDArray[Any], *tables: npt.NDArray[Any], out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    """Map pixels (H, W) or (H, W, 3) by one table, or by one per channel.

    ``out``: C-contiguous, of the same shape and type; written instead of a new array where one table maps bytes.
    """
    if pixels.dtype != np.uint8 or byte_translation() is None:
        return np.asarray(cv2.LUT(pixels, tables[0] if len(tables) == 1 else np.stack(tables, axis=-1)[None]))
    if len(tables) == 1:
        return _translated(pixels, tables[0], out)
    new = np.empty(pixels.shape, np.uint8)
    for first in range(0, len(pixels), _STRIPE_PX):
        planes = cv2.split(pixels[first : first + _STRIPE_PX])
        cv2.merge(
            [_translated(*pair) for pair in zip(planes, tables, strict=True)], dst=new[first : first + _STRIPE_PX]
        )
    return new


def _translated(
    pixels: npt.NDArray[Any], table_of_bytes: npt.NDArray[Any], out: npt.NDArray[Any] | None = None
) -> npt.NDArray[Any]:
    new, translate = np.empty(pixels.shape, np.uint8) if out is None else out, byte_translation()
    assert translate is not None
    translate(np.ascontiguousarray(pixels).reshape(-1).data, table_of_bytes.tobytes(), out=new.reshape(-1))
    return new


@lru_cache
def byte_translation() -> Callable[..., Any] | None:
    """Return StringZilla's translation of bytes by a table, ten times as fast as OpenCV's; None if not installed."""
    try:
        from stringzilla import translate
    except ImportError:
        return None
    return cast("Callable[..., Any]", translate)


@lru_cache(maxsize=64)
def colour_of_temperature(temperature_k: float) -> Colour:
    """Return the red, green and blue light (of a sum of 3) of a black body, in the primaries of sRGB.

    Chromaticity by the cubic splines of Y. Kim et al. (US patent 7,024,034), 1,667 to 25,000 K.
    """
    t = 1e3 / temperature_k
    if temperature_k <= 4000.0:
        x = np.polyval([-0.2661239, -0.2343589, 0.8776956, 0.179910], t)
    else:
        x = np.polyval([-3.0258469, 2.1070379, 0.2226347, 0.240390], t)
    if temperature_k <= 2222.0:
        y = np.polyval([-1.1063814, -1.34811020, 2.18555832, -0.20219683], x)
    elif temperature_k <= 4000.0:
        y = np.polyval([-0.9549476, -1.37418593, 2.09137015, -0.16748867], x)
    else:
        y = np.polyval([3.0817580, -5.87338670, 3.75112997, -0.37001483], x)
    xyz = np.array([x / y, 1.0, (1.0 - x - y) / y])
    rgb = np.clip(_RGB_OF_XYZ @ xyz, 1e-3, None)
    red, green, blue = (3.0 * rgb / rgb.sum()).tolist()
    return red, green, blue


#: IEC 61966-2-1: linear red, green, blue of CIE 1931 tristimulus values, white D65.
_RGB_OF_XYZ = np.array(
    [[3.2406255, -1.5372080, -0.4986286], [-0.9689307, 1.8757561, 0.0415175], [0.0557101, -0.2040211, 1.0569959]]
)


def quantile(values: Singles, share: float) -> float:
    """Return a quantile of values (n,), linear between neighbours as NumPy's, which is slow for many values."""
    place = share * (values.size - 1)
    least = int(place)
    parted = np.partition(values, least)
    above = float(parted[least + 1 :].min(initial=parted.dtype.type(np.inf))) if place > least else 0.0
    low = float(parted[least])
    return low + (above - low) * (place - least) if place > least else low
