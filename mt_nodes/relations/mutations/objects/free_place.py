# SPDX-License-Identifier: Apache-2.0
"""Looks in one cloud whether an object can stand at a place: on ground, with free space around, in sight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.cloud import Cloud
from mt_nodes.data.transforms import Matrix, inverse
from mt_nodes.relations.mutations.objects.in_scene import (
    SURROUNDINGS_M,
    ObjectVisibility,
    Sensor,
    look_at,
    surroundings,
)
from mt_nodes.relations.mutations.objects.world_place import is_in_ego
from mt_nodes.world.scene.placement_solver import Footprint, NoRoom, Place, ground_plane, solve, stand, stand_on
from mt_nodes.world.scene.sight import RaycastBody

#: Places that are looked at, the most promising first, and how many of the free ones are compared.
TRIALS, _COMPARED = 64, 8


@dataclass(frozen=True, eq=False)
class FreePlace:
    """The demands of an object on its place, in a cloud.

    Attributes:
        to_ego: (4, 4) cloud to the ego's frame. clearance_m: free space around it.
        least_visible: share of its rays that must meet it. least_points: returns it must give.
        what: the object and where it is to be, for people.
    """

    body: RaycastBody
    sensor: Sensor
    cloud: Cloud
    to_ego: Matrix
    clearance_m: float
    least_visible: float
    least_points: int
    what: str

    @property
    def footprint(self) -> Footprint:
        """Footprint of the object."""
        (x, y, _), (length, width, _) = self.body.center_m.tolist(), self.body.size_m
        return Footprint((x, y), (length / 2, width / 2), float(self.body.high_m[2]))

    def among(self, places: Sequence[Place]) -> Iterator[int]:
        """Yield the numbers of places that are free. Raises NotApplicable: none is free."""
        start = 0
        while start < len(places):
            try:
                start += 1 + solve(places[start:], self.stand, self.what)[0]
            except NotApplicable:
                if not start:
                    raise
                return
            yield start - 1

    def longest(self, places: Sequence[Place], foreseen_s: Floats, lasts_s: Callable[[int], float]) -> int:
        """Return the number of the free place at which the object lasts longest, of those that are looked at.

        Raises NotApplicable: none is free.
        ``places``: the most promising first. ``foreseen_s``: (n,) how long it may last there, in seconds. ``lasts_s``:
        how long it does last at a place of a number.
        """
        best, longest_s = -1, -1.0
        for number in islice(self.among(places[:TRIALS]), _COMPARED):
            if foreseen_s[number] <= longest_s:
                break
            if (seconds := lasts_s(number)) > longest_s:
                best, longest_s = number, seconds
        return best

    def stand(self, place: Place, known: bool = False) -> tuple[Matrix, ObjectVisibility]:
        """Return pose (4, 4) in the ego's frame on the ground of the cloud, and visibility.

        ``known``: whether the ground there is known from an earlier cloud: then a few points of it around are enough.
        Raises NoRoom: it cannot stand there.
        """
        footprint, points = self.footprint, self._near(place)
        if is_in_ego(place, footprint.half_m, footprint.center_m):
            raise NoRoom("in the ego's own place")
        try:
            pose = stand(points, footprint, place, self.clearance_m)
        except NoRoom:
            if not known:
                raise
            pose = stand_on(points, footprint, place, self.clearance_m, ground_plane(points, place[:2]))
        look = look_at(self.cloud, self.body, inverse(self.to_ego) @ pose)
        if look.expected(self.sensor) < self.least_points:
            raise NoRoom(f"with fewer than {self.least_points} returns from it")
        if look.share < self.least_visible:
            raise NoRoom("hidden")
        return pose, look

    def _near(self, place: Place) -> Floats:
        """Return the points (n, 3) around a place, in the ego's frame."""
        reach = self.footprint.radius_m + self.clearance_m + SURROUNDINGS_M
        return surroundings(self.cloud, self.to_ego, place[:2], reach)[1]
