# SPDX-License-Identifier: Apache-2.0
"""Bases of mutations that change each radar of a bundle separately."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, cast

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import NoEffect, NotApplicable
from mt_nodes.base.plugins import name_of
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.radar import Radar, joined
from mt_nodes.data.radar_motion import SensorMotion, sensor_motion
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.lidar.each_cloud import EachCloud, of_cloud, same_bytes, same_kind
from mt_nodes.relations.mutations.untouched import UNTOUCHED, drawn


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


class ChangesRadars(Mutation):
    """Base of changes of the world that a radar sees, too, or that leave it untouched for a reason.

    Without :attr:`radar_reason` and without its own :meth:`draw_radar`, a bundle with a radar has no follow-up: the
    sensors would contradict each other.
    """

    #: Why radars stay as they are, with the source of it; empty: a subclass changes them.
    radar_reason: ClassVar[str] = ""

    def contradiction(self, inputs: Collection[str], sync_s: float) -> str:
        """Say that the effect on a radar is not known, where a stack takes one."""
        changed = self.radar_reason or type(self).draw_radar is not ChangesRadars.draw_radar
        return "" if changed or "radar" not in inputs else self._unknown

    @property
    def _unknown(self) -> str:
        return f"what {name_of(type(self))} does to a radar is not known"

    def draw_radar(self, rng: np.random.Generator, bundle: Bundle, radar: Radar, state: Any) -> Draw:
        """Make every random choice of one radar.

        Raises NotApplicable: there is no honest follow-up of it. NoEffect: the change does not reach it.
        """
        if self.radar_reason:
            raise NoEffect(f"{radar.topic}: {self.radar_reason}")
        raise NotApplicable(f"{radar.topic}: {self._unknown}")

    def change_radar(self, bundle: Bundle, radar: Radar, draw: Draw) -> Radar:
        """Return the changed detections."""
        return radar

    def prove_radar(self, bundle: Bundle, old: Radar, new: Radar, draw: Draw) -> str | None:
        """Check the two; return the broken promise, or None."""
        return None

    def describe_radars(self, bundle: Bundle, changed: dict[str, Radar], draws: dict[str, Draw]) -> Effects:
        """Return further effects on the world, by what radars show of it."""
        return Effects()

    def draw_radars(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Draw for every radar; where the change does not reach one, why."""
        draws: Draw = {}
        for radar in bundle.radars:
            draws |= drawn(radar.topic, partial(self.draw_radar, rng, bundle, radar, state))
        return draws

    def apply_to_radars(self, bundle: Bundle, followup: Followup, draw: Draw) -> Followup:
        """Return a follow-up of clouds and images with its radars changed, too."""
        draws = {radar.topic: of_cloud(draw, radar) for radar in bundle.radars}
        reasons = {topic: str(of_this[UNTOUCHED]) for topic, of_this in draws.items() if UNTOUCHED in of_this}
        changed = {
            r.topic: self.change_radar(bundle, r, draws[r.topic]) for r in bundle.radars if r.topic not in reasons
        }
        effects = followup.effects.merged(self.describe_radars(bundle, changed, draws))
        effects = replace(effects, unchanged={**effects.unchanged, **reasons})
        (delay_ns, first), *others = followup.bundles
        return Followup(((delay_ns, first.with_clouds(changed.values())), *others), effects)

    def prove_radars(self, source: Bundle, changed: Bundle, draw: Draw) -> str | None:
        """Prove the promise for every radar."""
        for old, new in zip(source.radars, changed.radars, strict=True):
            of_this = of_cloud(draw, old)
            if UNTOUCHED in of_this:
                broken = None if new is old else "changed, and it was drawn to stay as it is"
            else:
                broken = same_kind(old, new) or self.prove_radar(source, old, new, of_this)
            if broken is not None:
                return f"{old.topic}: {broken}"
        return None
