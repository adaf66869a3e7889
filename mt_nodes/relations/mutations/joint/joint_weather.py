# SPDX-License-Identifier: Apache-2.0
"""Weather that LiDARs and cameras see together."""

from __future__ import annotations

from dataclasses import dataclass

from mt_nodes.data.messages import Bundle
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.joint.every_sensor import EverySensor
from mt_nodes.relations.mutations.joint.weather import Weather


@dataclass(frozen=True)
class JointWeather(EverySensor, Weather):
    """Weather (see :class:`Weather`) in LiDAR clouds and camera images."""

    def apply_to_clouds(self, bundle: Bundle, draw: Draw) -> Followup:
        """Change every cloud as its weather does."""
        return Weather.apply(self, bundle, draw)
