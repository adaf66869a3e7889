# SPDX-License-Identifier: Apache-2.0
"""How the air, and what is in it, has moved past a sensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import UnknownTransform
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.ego_speed import SOURCE, EgoSpeed

#: Speed of the ego in m/s where its motion is unknown (assumed: town traffic).
DEFAULT_MPS = 10.0


@dataclass(frozen=True, eq=False)
class AirDrift:
    """Displacement of the air in a sensor's frame, z up if its mount is unknown.

    Attributes:
        moved_m: (3,) since an episode began, along the axes that the sensor had then. turned_rad: how far it has turned
            to the left since: a place seen now, turned by that and less ``moved_m``, is the place in the air.
        along_m: (3,) the same always along the sensor's own axes, for what needs no exact place.
        ego_motion: where the ego's motion comes from, for people; empty if its speed was given.
    """

    moved_m: Floats
    turned_rad: float
    along_m: Floats
    ego_motion: str = ""

    def source(self) -> Draw:
        """Return the part of a draw that says where the ego's motion comes from."""
        return {SOURCE: self.ego_motion} if self.ego_motion else {}

    def draw(self) -> Draw:
        """Return the part of a draw that holds the turn, and where the ego's motion comes from."""
        return {"turned_rad": self.turned_rad, **self.source()} if self.ego_motion else {}

    @classmethod
    def of(cls, bundle: Bundle, cloud: Cloud, ego_speed_mps: float | None, air_mps: Floats) -> AirDrift:
        """Return the drift at a cloud.

        ``ego_speed_mps``: as given; None: by the bundle's motion. ``air_mps``: (3,) velocity of the air, or of what
        falls in it, over ground, along the ego's axes at first.
        """
        axes, seconds = _axes(bundle, cloud), cloud.stamp_ns * 1e-9
        motion = bundle.motion
        if ego_speed_mps is not None or motion is None or motion.pose is None:
            speed = EgoSpeed.of(bundle, ego_speed_mps, DEFAULT_MPS)
            moved = axes @ (air_mps - np.array([speed.speed_mps, 0.0, 0.0])) * seconds
            return cls(moved, 0.0, moved, "" if ego_speed_mps is not None else speed.source)
        turn, air_m = axes @ motion.pose[:3, :3] @ axes.T, air_mps * seconds
        moved = axes @ (air_m - motion.pose[:3, 3])
        along = axes @ (air_m - np.array(motion.travelled_m))
        return cls(moved, float(np.arctan2(turn[1, 0], turn[0, 0])), along, motion.source)


def _axes(bundle: Bundle, cloud: Cloud) -> Floats:
    """Return the rotation (3, 3) from ``base_link`` to a sensor."""
    try:
        return np.asarray(bundle.transforms.lookup(cloud.frame_id, "base_link")[:3, :3])
    except UnknownTransform:
        return np.eye(3)
