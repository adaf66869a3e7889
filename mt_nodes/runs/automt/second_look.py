# SPDX-License-Identifier: Apache-2.0
"""A second look at a follow-up, which shares no code with the mutation that made it: is the change to be seen?

Of things that were added: does a cloud have more returns in the room that they take, or did the picture change where
they are shown? Of light and air: what scene analysis says of the follow-up's picture. A look that cannot tell says
nothing.

How much of a picture must have changed is an assumption: less than 16 of 255 may be the sensor's noise, and a thing
that covers less than a tenth of the box around it would be none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import ImageBox, Volume
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.relations.facts.scene_facts import Fact
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.rules.scene_light import light_in_pictures

#: What scene analysis says of pictures of these elements, if it says anything.
_LIGHT: dict[str, tuple[str, object]] = {
    "night": ("time_of_day", "night"),
    **dict.fromkeys(("fog", "poor_visibility", "heavy_smoke", "dust_storm"), ("visibility_good", False)),
}
_CHANGED, _LEAST_SHARE = 16, 0.1
Look = tuple["bool | None", str]
"""Whether the change is seen, None where nobody could tell; and what was looked at."""


def second_look(source: Bundle, followup: Followup, element: str) -> Look:
    """Return whether any look finds the change of an element."""
    looks = [look for look in _looks(source, followup, element) if look[0] is not None]
    if not looks:
        return None, ""
    return any(visible for visible, _ in looks), "; ".join(dict.fromkeys(what for _, what in looks))


def _looks(source: Bundle, followup: Followup, element: str) -> Iterator[Look]:
    changed, effects = followup.first, followup.effects
    if element in _LIGHT:
        name, expected = _LIGHT[element]
        fact: Fact = light_in_pictures([changed])[name]
        yield (fact.value == expected if fact.known else None), f"{name} by scene analysis"
    for volume in effects.added:
        for before in source.clouds:
            after = next((cloud for cloud in changed.clouds if cloud.topic == before.topic), None)
            if after is not None:
                yield _more_returns(source, before, after, volume), "returns of the cloud where it stands"
    for box in effects.image_boxes:
        yield _region_changed(source, changed, box), "pixels of the picture where it is shown"


def _more_returns(bundle: Bundle, before: Cloud, after: Cloud, volume: Volume) -> bool | None:
    try:
        to_volume = bundle.transforms.lookup(volume.frame_id, before.frame_id)
    except UnknownTransform:
        return None
    return _inside(after, to_volume, volume) > _inside(before, to_volume, volume)


def _inside(cloud: Cloud, to_volume: Floats, volume: Volume) -> int:
    with np.errstate(invalid="ignore", over="ignore"):
        points = move(to_volume, cloud.xyz.astype(np.float64)) - volume.center_m
        cos, sin = np.cos(volume.yaw_rad), np.sin(volume.yaw_rad)
        along, across = cos * points[:, 0] + sin * points[:, 1], cos * points[:, 1] - sin * points[:, 0]
        half = np.asarray(volume.size_m) / 2.0
        within = (np.abs(along) <= half[0]) & (np.abs(across) <= half[1]) & (np.abs(points[:, 2]) <= half[2])
    return int(np.count_nonzero(within))


def _region_changed(source: Bundle, changed: Bundle, box: ImageBox) -> bool | None:
    pictures = [next((one for one in bundle.images if one.topic == box.topic), None) for bundle in (source, changed)]
    if None in pictures:
        return None
    try:
        before, after = (decode(one).rgb8().astype(np.int16) for one in pictures if one is not None)
    except UsageError:
        return None
    x0, y0 = (max(0, int(np.floor(edge))) for edge in box.box_px[:2])
    x1, y1 = (int(np.ceil(edge)) + 1 for edge in box.box_px[2:])
    step = np.abs(after - before)[y0:y1, x0:x1].max(axis=2, initial=0)
    return bool(step.size) and float(np.mean(step > _CHANGED)) >= _LEAST_SHARE * box.visible
