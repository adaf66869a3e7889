# SPDX-License-Identifier: Apache-2.0
"""What a relation changes, in a few words: ``1,000 noise points outside the region``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.params import describe
from mt_nodes.base.wording import counted

Plain = Mapping[str, Any]

#: Noun phrases of changes whose name and numbers alone read badly. In braces: a parameter; ``a_`` and one: with its
#: article; ``count_kind``: so many of the kind.
PHRASES = {
    "actor_added": "{a_kind} on the way",
    "actor_kind_changed": "{a_whose} replaced by {a_to}",
    "beams_lost": "{count} beams lost",
    "beams_miscalibrated": "miscalibrated beams",
    "brightness_changed": "brightness changed by {offset}",
    "clock_stepped": "the clock stepped by {step_s} s",
    "cloud_mirrored": "left and right swapped",
    "cloud_rotated": "the scene rotated by {yaw_rad} rad",
    "cloud_scaled": "all ranges scaled by {factor}",
    "cloud_translated": "the scene moved",
    "contrast_changed": "contrast multiplied by {gain}",
    "crosstalk": "crosstalk in {share} of the returns",
    "density_decreased": "one return in {keep_every} kept",
    "dusk": "dusk",
    "dust": "dust of {visibility_m} m visibility",
    "environment_changed": "{what} at {to}",
    "exposure_changed": "exposure changed by {stops} EV",
    "extrinsic_shifted": "a shifted mount of the sensor",
    "far_points_dropped": "points beyond {from_m} m dropped more and more",
    "field_of_view_limited": "a field of view of {width_deg}°",
    "fog": "fog of {visibility_m} m visibility",
    "fog_in_world": "fog of density {fog}",
    "frames_delayed": "frames delayed by {delay_s} s",
    "frames_dropped": "one frame in {every} dropped",
    "frames_frozen": "one frame in {every} frozen",
    "frames_reordered": "one frame in {every} sent late",
    "frames_repeated": "frames sent again",
    "gamma_changed": "a gamma of {gamma}",
    "ghost_reflections": "{ghosts} ghost reflections",
    "identity": "no change at all",
    "image_defocused": "a lens out of focus by {radius_px} pixels",
    "image_mirrored": "left and right swapped",
    "image_motion_blurred": "motion blur of {exposure_ms} ms exposure",
    "image_occluded": "{share} of the image covered",
    "image_rotated": "the image rotated by {angle_deg}°",
    "image_scaled": "the image scaled by {factor}",
    "image_translated": "the image shifted",
    "impulse_noise": "impulse noise on {share} of the pixels",
    "intensity_changed": "changed intensities",
    "jpeg_compressed": "JPEG compression at quality {quality}",
    "lens_dirt": "{blots} blots of dirt on the lens",
    "lens_drops": "{drops} drops on the lens",
    "light_added": "{a_kind} traffic light added",
    "motion_distorted": "clouds distorted by motion at {speed_mps} m/s",
    "night": "night",
    "noise_clustered_outside_roi": "{clusters} clusters of {points_each} points outside the region",
    "noise_inside_roi": "{points} noise points inside the region",
    "noise_outside_roi": "{points} noise points outside the region",
    "object_added": "{a_kind} added",
    "object_added_far": "{count_kind} added far from the way",
    "object_cut_out": "{share} of one object cut out",
    "object_echoes_lost": "{share} of one object's echoes lost",
    "object_jittered": "one object's points displaced by {size_m} m",
    "object_moved": "one object moved",
    "object_removed": "one object removed",
    "object_replaced": "one object replaced by {a_by}",
    "object_rotated": "one object rotated by {angle_deg}°",
    "object_scaled": "one object scaled by {factor}",
    "object_sheared": "one object sheared by {shear}",
    "object_smeared": "one object smeared by {speed_mps} m/s",
    "object_thinned": "{share} of one object's points dropped",
    "pedestrian_nearer": "a pedestrian nearer to the way",
    "pixels_dead": "{dead} dead and {hot} hot pixels",
    "points_dropped": "{share} of the points dropped",
    "points_duplicated": "{share} of the points duplicated",
    "points_jittered": "points displaced by {size_m} m",
    "points_permuted": "the same points in another order",
    "rain": "rain of {rain_mm_per_h} mm/h",
    "range_biased": "ranges biased by {offset_m} m",
    "range_quantised": "ranges quantised to {step_m} m",
    "range_reduced": "the range reduced to {max_range_m} m",
    "rate_reduced": "the frame rate divided by {one_of}",
    "region_cut_out": "a region cut out of the cloud",
    "returns_emptied": "{share} of the returns emptied",
    "road_painted": "paint on the road",
    "saturation_changed": "saturation multiplied by {factor}",
    "scene_shifted_along_road": "the scene shifted along the road",
    "sector_blocked": "a sector of {width_deg}° blocked",
    "sector_dropped": "{sectors} sectors of {width_deg}° dropped",
    "sensor_noise": "sensor noise",
    "sign_added": "{a_kind} sign added",
    "sign_put_up": "{a_face} sign put up",
    "signal_shows": "the light switched to {colour}",
    "smoke": "smoke of {visibility_m} m visibility",
    "snow": "snow of {snow_mm_per_h} mm/h",
    "spray": "spray of other vehicles",
    "stamps_jittered": "stamps jittered by {jitter_s} s",
    "time_shifted": "all stamps shifted by {offset_s} s",
    "vertical_resolution_reduced": "one beam in {keep_every} kept",
    "wet_ground": "wet ground",
    "white_balance_shifted": "a white balance of {temperature_k} K",
    "world_mirrored": "left and right swapped",
    "world_moved": "the whole world moved elsewhere",
}
#: Numbers that are said of a change without a phrase.
_MOST_NUMBERS = 2


def describe_change(relation: Plain) -> str:
    """Return what a relation changes, from its plain form (keys ``scenario``, ``mutate``); empty where none is known.

    Several changes are joined by "and". A change that has no phrase is said by its name and its strength.
    """
    return " and ".join(dict.fromkeys(_each(relation)))


def _each(relation: Plain) -> Iterator[str]:
    for kind, key in (("scenario_changes", "scenario"), ("mutations", "mutate")):
        for change in relation.get(key, ()):
            for name, params in change.items():
                yield _words(kind, name, params or {})


def _words(kind: str, name: str, params: Plain) -> str:
    values = {key: _percent(value) if key == "share" else _value(value) for key, value in params.items()}
    values |= {f"a_{key}": f"{'an' if value[:1] in tuple('aeiou') else 'a'} {value}" for key, value in values.items()}
    if {"count", "kind"} <= params.keys():
        values["count_kind"] = counted(params["count"], values["kind"])
    try:
        said = PHRASES.get(name, "").format(**values)
    except KeyError:  # a journal of another version
        said = ""
    return said or _by_name(kind, name, params)


def _by_name(kind: str, name: str, params: Plain) -> str:
    cls = plugins.get(kind, name)
    strengths = (row for row in describe(cls) if row["neutral"] is not None) if cls else ()
    numbers = [
        f"{_plainly(row['name'], row['unit'])} {_value(params[row['name']])}{row['unit'] and ' ' + row['unit']}"
        for row in strengths
        if params.get(row["name"]) not in (None, row["neutral"])
    ]
    return name.replace("_", " ") + (f" ({', '.join(numbers[:_MOST_NUMBERS])})" if numbers else "")


def _plainly(name: str, unit: str) -> str:
    """Return the name of a parameter without its unit."""
    words = name.split("_")
    return " ".join(words[:-1] if unit and len(words) > 1 and words[-1] in _SUFFIXES else words)


_SUFFIXES = frozenset({"m", "s", "ms", "deg", "rad", "px", "k", "e", "mm", "mps", "radps", "degps", "mm_per_h"})


def _value(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _text(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _text(value: Any) -> str:
    if isinstance(value, Iterable) and not isinstance(value, (str, Mapping)):
        return " or ".join(map(_text, value))
    return str(value).replace("_", " ")
