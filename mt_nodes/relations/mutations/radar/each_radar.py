# SPDX-License-Identifier: Apache-2.0
"""Bases of mutations that change each radar of a bundle separately."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar, joined
from mt_nodes.data.radar_motion import SensorMotion, sensor_motion
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, same_bytes

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]


class EachRadar(EachCloud):
    """Draws, changes and proves radar by radar; all other messages stay."""

    sensors: ClassVar[tuple[str, ...]] = ("radar",)
    part: ClassVar[str] = "radars"

    def refuse_unfit(self, cloud: Cloud) -> None:
        """Refuse messages without a detection, and those with numbers that are none."""
        radar = as_radar(cloud)
        if not len(radar):
            raise NotApplicable(f"{radar.topic} has no detection")
        columns = (*radar.polar, radar.doppler_mps, radar.strength_db)
        if not all(np.isfinite(column).all() for column in columns):
            raise NotApplicable(f"{radar.topic} has detections whose place, speed or strength is no number")


class DetectionsAdded(EachRadar):
    """Base: adds the detections of a draw behind the old ones: a place, range rate and strength each.

    ``like`` (n,) are old detections whose other fields (validity, ambiguity, time) the new ones get. Tracks have an
    identity and a history, so none is added to ``RadarTracks``.
    """

    def refuse_unfit(self, cloud: Cloud) -> None:
        """Also refuse tracks."""
        super().refuse_unfit(cloud)
        if as_radar(cloud).tracks:
            raise NotApplicable(f"{cloud.topic} has tracks, to which none can be added without a history")

    def change_cloud(self, bundle: Bundle, cloud: Cloud, draw: Draw) -> Cloud:
        """Add the detections."""
        return with_detections(as_radar(cloud), draw)

    def describe_change(self, bundle: Bundle, clouds: Mapping[str, Cloud], draws: Mapping[str, Draw]) -> Effects:
        """Report how many were added, and where."""
        added = {topic: clouds[topic].xyz[-len(draw["range_m"]) :] for topic, draw in draws.items()}
        return Effects(numbers={"detections_added": float(sum(map(len, added.values())))}, added_points=added)


def as_radar(cloud: Cloud) -> Radar:
    """Return a message of :attr:`EachRadar.part` as what it is."""
    return cast(Radar, cloud)


def with_detections(radar: Radar, draw: Draw, onto: Radar | None = None) -> Radar:
    """Return a radar, or what is left of it (``onto``), with the detections of a draw behind its own.

    See :class:`DetectionsAdded`.
    """
    rows = np.arange(len(draw["range_m"]))
    place = draw["range_m"], draw["azimuth_rad"], draw["elevation_rad"]
    new = radar.take(draw["like"].astype(np.int64)).moved(rows, place, draw["doppler_mps"], draw["strength_db"])
    return joined(onto or radar, new)


def added_draw(place: tuple[Floats, Floats, Floats], doppler_mps: Floats, strength_db: Floats, like: Rows) -> Draw:
    """Return the draw of added detections; see :class:`DetectionsAdded`."""
    parts = dict(zip(("range_m", "azimuth_rad", "elevation_rad"), place, strict=True))
    return {**parts, "doppler_mps": doppler_mps, "strength_db": strength_db, "like": like}


def added_part(old: Radar, new: Radar, count: int) -> Radar | str:
    """Return the detections that a follow-up has more, or what is wrong: the old ones must be there, byte for byte."""
    if len(new) != len(old) + count:
        return f"{len(new)} detections, expected {len(old)} and {count} more"
    if not same_bytes(old.raw, new.raw[: len(old)]):
        return "an old detection changed"
    return new.take(np.arange(len(old), len(new)))


def motion_of(radar: Radar) -> SensorMotion:
    """Return the sensor's motion by its own detections. Raises NotApplicable: too few detections agree on one."""
    motion = sensor_motion(radar)
    if motion is None:
        raise NotApplicable(f"the {len(radar)} detections of {radar.topic} do not agree on a motion of the sensor")
    return motion


def near(some: Any, others: Any, slack: npt.ArrayLike) -> bool:
    """Return whether two arrays (n,) are the same up to a bound."""
    return bool((np.abs(np.asarray(some) - np.asarray(others)) <= slack).all())
