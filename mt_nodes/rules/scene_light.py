# SPDX-License-Identifier: Apache-2.0
"""Light and weather from pictures: where they are plain to see, unknown otherwise.

Day or night follows from the brightness of the upper third of the picture, where the sky is: a day's sky is bright
whatever is below it. Fog and smoke follow from the dark channel around the horizon, the darkest of red, green and blue
nearby: in clear air most places are dark in at least one colour, and particles in the air brighten that (K. He, J. Sun,
X. Tang, "Single Image Haze Removal Using Dark Channel Prior", CVPR 2009). A blue sky means no rain.

The bounds are assumptions. They were set on 26 recorded frames by day, on follow-ups of those (night, dusk, fog, dust,
smoke, rain, snow) and on pictures of the drive world at all hours and weathers, with a gap of unknown between the
classes. Rain and snow veil the distance as thin fog does and have no unique mark, so that nothing is said of a veil
that they may be, and only a thicker one is fog. A tunnel looks like night.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import UsageError
from mt_nodes.data.images.codecs import Picture, decode
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.facts.scene_facts import Fact, Facts, unknown

_SKY_BY_NIGHT, _SKY_BY_DAY = 0.1, 0.33
#: The drive world's heaviest rain, snow, or both brighten the darkest to at most 0.31, 0.37 and 0.43.
_VEIL_CLEAR, _VEIL_THICK = 0.22, 0.45
#: A blue sky: least excess of blue over red, least brightness, and least share of the picture's upper half.
_BLUER, _SKY_LEAST, _BLUE_SHARE = 0.06, 0.35, 0.2
_WIDE_PX, _AROUND_PX = 320, 5
_HORIZON = (0.4, 0.55)
#: Number of pictures used, spread over the case: frames within one second look alike.
_PICTURES_READ = 3
NAMES = ("time_of_day", "visibility_good", "weather_clear", "weather")


def light_in_pictures(bundles: Sequence[Bundle]) -> Facts:
    """Return the facts :data:`NAMES` from pictures: the median of up to three, of the first camera."""
    with_images = [bundle for bundle in bundles if bundle.images]
    if not with_images:
        return dict.fromkeys(NAMES, unknown("there is no picture"))
    rows = np.linspace(0, len(with_images) - 1, min(_PICTURES_READ, len(with_images))).round().astype(int)
    try:
        looks = [_measured(decode(with_images[row].images[0])) for row in rows]
    except UsageError as error:
        return dict.fromkeys(NAMES, unknown(str(error)))
    sky, veil, blue = np.median(looks, axis=0).tolist()
    return _classified(sky, veil, blue)


def _classified(sky: float, veil: float, blue: float) -> Facts:
    light = f"pictures: their upper third is {100 * sky:.0f} % bright"
    air = f"pictures: the darkest around the horizon is {100 * veil:.0f} % bright"
    day = sky >= _SKY_BY_DAY
    time = "day" if day else "night" if sky <= _SKY_BY_NIGHT else None
    # Without daylight nothing illuminates particles in the air.
    good = None if not day else True if veil <= _VEIL_CLEAR else False if veil >= _VEIL_THICK else None
    clear = True if day and good and blue >= _BLUE_SHARE else None
    sky_says = f"pictures: {100 * blue:.0f} % of the upper half is blue sky"
    weather = Fact("clear", sky_says) if clear else Fact("fog", air) if good is False else unknown(sky_says)
    return {
        "time_of_day": Fact(time, light),
        "visibility_good": Fact(good, air if day else light),
        "weather_clear": Fact(clear, sky_says),
        "weather": weather,
    }


def _measured(picture: Picture) -> tuple[float, float, float]:
    """Return brightness of the upper third, dark channel around the horizon, and share of blue sky, 0 to 1."""
    height, width = picture.size
    small = cv2.resize(
        picture.rgb8(), (_WIDE_PX, max(6, round(_WIDE_PX * height / width))), interpolation=cv2.INTER_AREA
    )
    rows = len(small)
    dark = cv2.erode(small.min(axis=2), np.ones((_AROUND_PX, _AROUND_PX), np.uint8))
    band = dark[round(_HORIZON[0] * rows) : round(_HORIZON[1] * rows)]
    luma = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY)
    return float(luma[: rows // 3].mean()) / 255.0, float(np.percentile(band, 5)) / 255.0, _blue(small[: rows // 2])


def _blue(upper: npt.NDArray[np.uint8]) -> float:
    shares = upper.astype(np.float32) / 255.0
    return float(((shares[..., 2] - shares[..., 0] > _BLUER) & (shares.mean(axis=2) > _SKY_LEAST)).mean())
