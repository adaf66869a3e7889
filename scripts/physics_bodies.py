# SPDX-License-Identifier: Apache-2.0
"""Figures of bodies for `physics.py`: how complete recorded and added cars are, at equal range, seen from behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from completeness import completeness

import mt_nodes as mt
from mt_nodes.base.errors import NotApplicable
from mt_nodes.data.messages import Cloud
from mt_nodes.data.transforms import Matrix, move
from mt_nodes.relations.mutations.objects.object_exchange import SIZES
from mt_nodes.relations.mutations.objects.object_removed import ground_around, standing_within
from mt_nodes.world.scene.nearest_object import Search, nearest_objects
from mt_nodes.world.scene.returns import lengths, places, within_cone

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

#: Ranges that are compared with each other; nearer, cars reach out of the sensor's view.
BINS_M = (6.0, 12.0, 18.0, 24.0, 30.0, 36.0)
_SEEDS, _LEAST_POINTS = 6, 30
#: An object is hidden if more than this share of the returns within its outline of directions is before it.
_HIDDEN_SHARE = 0.2


def complete_cars(frames: Sequence[mt.Frame]) -> dict[str, float]:
    """Measure recorded and added cars alike; where ranges occur in both, the means over these ranges."""
    real, added = _by_bin(_recorded(frames)), _by_bin(_added(frames))
    both = sorted(real.keys() & added.keys())
    chosen = [[found[key] for key in both or found] for found in (real, added)]
    means = [float(np.mean([np.mean(shares) for shares in of])) if of else float("nan") for of in chosen]
    return {"returns per ray, recorded": means[0], "returns per ray, added": means[1], "ratio": means[1] / means[0]}


def _by_bin(found: Iterator[tuple[float, float]]) -> dict[int, list[float]]:
    bins: dict[int, list[float]] = {}
    for range_m, share in found:
        bins.setdefault(int(np.digitize(range_m, BINS_M)), []).append(share)
    return {key: shares for key, shares in bins.items() if 0 < key < len(BINS_M) and len(shares) > 1}


def _recorded(frames: Sequence[mt.Frame]) -> Iterator[tuple[float, float]]:
    for frame in frames:
        cloud, to_ego = _cloud(frame.bundle)
        yield from (share for _, share in _cars(cloud, to_ego))


def _added(frames: Sequence[mt.Frame]) -> Iterator[tuple[float, float]]:
    """Yield cars that are added at the ranges of the bins, one a frame, and found again as recorded ones are."""
    for number, frame in enumerate(frames):
        low = BINS_M[number % (len(BINS_M) - 1)]
        for seed in range(_SEEDS):
            try:
                changed = mt.mutate(
                    frame,
                    "object_added",
                    seed=seed,
                    kind="car",
                    yaw_rad=0.0,
                    where="bearing",
                    range_m=(low, low + 6.0),
                    bearing_rad=(-1.2, 1.2),
                    frame_id="base_link",
                    clearance_m=0.6,
                )
            except NotApplicable:
                continue
            cloud, to_ego = _cloud(changed.bundle)
            center = np.array(changed.effects.added[0].center_m[:2])
            found = [
                share for middle, share in _cars(cloud, to_ego, aside_m=30.0) if np.hypot(*(middle - center)) < 2.0
            ]
            yield from found[:1]
            break


def _cloud(bundle: mt.Bundle) -> tuple[Cloud, Matrix]:
    cloud = bundle.clouds[0]
    return cloud, bundle.transforms.lookup("base_link", cloud.frame_id)


def _cars(cloud: Cloud, to_ego: Matrix, aside_m: float = 6.0) -> Iterator[tuple[Floats, tuple[float, float]]]:
    """Yield middle (2,), and range and completeness, of what is as large as a car and that nothing hides."""
    (shortest, longest), height = SIZES["car"]
    search = Search((4.0, BINS_M[-1] + 6.0), aside_m, _LEAST_POINTS, (shortest, longest), height)
    xyz = move(to_ego, cloud.xyz.astype(np.float64))
    try:
        outlines = list(nearest_objects(xyz, search))
    except NotApplicable:
        return
    for outline in outlines:
        try:
            rows = standing_within(cloud, to_ego, outline, ground_around(cloud, to_ego, outline))
            if len(rows) >= _LEAST_POINTS and not _hidden(cloud, rows):
                range_m = float(np.median(lengths(places(cloud, rows))))
                yield outline.mean(axis=0), (range_m, completeness(cloud, rows).share)
        except NotApplicable:
            continue


def _hidden(cloud: Cloud, rows: Rows) -> bool:
    """Return whether returns before an object lie amid its directions."""
    xyz = places(cloud, rows)
    range_m = lengths(xyz)
    direction = xyz / range_m[:, None]
    axis = direction.mean(axis=0) / np.linalg.norm(direction.mean(axis=0))
    around = np.setdiff1d(within_cone(cloud, axis, float((direction @ axis).min())), rows)
    other = places(cloud, around)
    nearer = lengths(other) < range_m.min() - 1.0
    up, aside = (np.cross(axis, other / lengths(other)[:, None]) @ side for side in ([0, 0, 1.0], [0, 1.0, 0]))
    own_up, own_aside = (np.cross(axis, direction) @ side for side in ([0, 0, 1.0], [0, 1.0, 0]))
    amid = (up > own_up.min()) & (up < own_up.max()) & (aside > own_aside.min()) & (aside < own_aside.max())
    return bool((nearer & amid).sum() > _HIDDEN_SHARE * len(rows))
