# SPDX-License-Identifier: Apache-2.0
"""Footprints of bodies on the ground."""

from __future__ import annotations

from math import cos, sin

import numpy as np
import shapely

from mt_nodes.base.arrays import Floats
from mt_nodes.world.drive.scenario import Obstacle, Pose, Vehicle

_DISC_CORNERS = 24


def box(length_m: float, width_m: float, middle_x_m: float = 0.0) -> Floats:
    """Return (4, 2) the corners of a rectangle in a body's own frame, counter-clockwise."""
    x, y = length_m / 2.0, width_m / 2.0
    return np.array([(middle_x_m + x, -y), (middle_x_m + x, y), (middle_x_m - x, y), (middle_x_m - x, -y)])


def disc(across_m: float) -> Floats:
    """Return (24, 2) the corners of a polygon with the area of a disc."""
    angles = 2.0 * np.pi * np.arange(_DISC_CORNERS) / _DISC_CORNERS
    # With the disc's area, corners lie outside of it and the centres of edges inside.
    radius = across_m / 2.0 * float(np.sqrt(2.0 * np.pi / _DISC_CORNERS / np.sin(2.0 * np.pi / _DISC_CORNERS)))
    return radius * np.column_stack([np.cos(angles), np.sin(angles)])


def of_vehicle(vehicle: Vehicle) -> Floats:
    """Return (4, 2) the corners of the ego in ``base_link``."""
    return box(vehicle.front_m + vehicle.rear_m, vehicle.width_m, (vehicle.front_m - vehicle.rear_m) / 2.0)


def of_obstacle(obstacle: Obstacle) -> Floats:
    """Return (K, 2) the corners of an obstacle in its own frame: of a box, else of a disc as wide as it is long."""
    length, width, _ = obstacle.size_m
    return box(length, width) if obstacle.shape == "box" else disc(length)


def placed(corners_m: Floats, x_m: float, y_m: float, yaw_rad: float) -> shapely.Polygon:
    """Return the polygon of a body's corners at its pose."""
    c, s = cos(yaw_rad), sin(yaw_rad)
    return shapely.Polygon(corners_m @ np.array([[c, s], [-s, c]]) + (x_m, y_m))


def at_pose(corners_m: Floats, pose: Pose) -> shapely.Polygon:
    """Return :func:`placed` at a pose."""
    return placed(corners_m, pose.x_m, pose.y_m, pose.yaw_rad)
