# SPDX-License-Identifier: Apache-2.0
"""Reference detectors find once what is in a cloud or a picture, and a world is seen once in each of its states.

What they find depends on the cloud or picture and their parameters alone, however many faults are planted around that
step; what rays meet, on where everything is. A matrix asks for it thousands of times, half of them for what it has
asked before: each run has its source, its control and its sham.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mt_nodes.data.outputs import Detections
from mt_nodes.data.transforms import Matrix
from mt_nodes.runs.loop.lidar_sweep import Sweep
from mt_nodes.stacks.reference import camera
from mt_nodes.stacks.reference.detector import Detector
from mt_nodes.world.drive.picture import Camera
from mt_nodes.world.drive.solids import Solids

#: A drive of five seconds and somewhat more; a picture takes five megabytes.
_INSTANTS = 64


@contextmanager
def obstacles_found_once() -> Iterator[None]:
    """Find the obstacles in each cloud once for each set of a :class:`Detector`'s parameters but its faults."""
    search, known = Detector.found_in, dict[tuple[Any, ...], Detections]()

    def found_in(self: Detector, cloud: npt.NDArray[Any], min_points: int, stamp_ns: int | None) -> Detections:
        params = tuple(getattr(self, field.name) for field in fields(self) if field.name != "faults")
        key = (type(self), params, min_points, stamp_ns, *_contents(cloud))
        if key not in known:
            known[key] = search(self, cloud, min_points, stamp_ns)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Detector, "found_in", found_in)
        yield


@contextmanager
def people_found_once() -> Iterator[None]:
    """Search each picture for people once."""
    search, known = camera._windows, dict[tuple[Any, ...], npt.NDArray[np.float64]]()

    def windows(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        key = _contents(grey)
        if key not in known:
            known[key] = search(grey)
        return known[key].copy()  # whoever asks writes into them

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(camera, "_windows", windows)
        yield


@contextmanager
def worlds_seen_once() -> Iterator[None]:
    """Have rays meet a world once in each of its states: all arms of a run see the same ones until they part."""
    met, rendered, swept, shot = Sweep.surfaces, Camera.render, _Remembered(), _Remembered()

    def surfaces(self: Sweep) -> Any:
        key = (*_solids(self.moving), self.mount.tobytes(), pickle.dumps(self.weather.wet))
        return swept.found(key, (self.scenery, self.lidar, *self.moving.bodies), lambda: met(self))

    def render(self: Camera, moving: Solids, ego: Matrix, lights: Any) -> Any:
        own = (self.sensor, pickle.dumps(self.light), self.extinction_per_m, self.white, self.wet)
        paints = dict(sorted(lights.items()))
        key = (*own, *_solids(moving), ego.tobytes(), *paints)
        things = (self.scenery, *moving.bodies, *paints.values())
        return shot.found(key, things, lambda: rendered(self, moving, ego, lights))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Sweep, "surfaces", surfaces)
        patch.setattr(Camera, "render", render)
        yield


class _Remembered:
    """The last results, by values and by the identity of things."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[Any, ...], tuple[Any, Any]] = OrderedDict()

    def found(self, values: tuple[Any, ...], things: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        key = (*values, *map(id, things))
        # Things are kept as long as their identity counts.
        self._known[key] = found = self._known.pop(key, None) or (make(), things)
        if len(self._known) > _INSTANTS:
            self._known.popitem(last=False)
        return found[0]


def _solids(moving: Solids) -> tuple[bytes, bytes]:
    return moving.poses.tobytes(), moving._shift_m.tobytes()


def _contents(array: npt.NDArray[Any]) -> tuple[tuple[int, ...], str, bytes]:
    return array.shape, array.dtype.str, sha256(np.ascontiguousarray(array)).digest()
