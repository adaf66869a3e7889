# SPDX-License-Identifier: Apache-2.0
"""Shared code of mutations that add an object: its place, the rays that hit it, the proof."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from mt_nodes.base.arrays import Floats, Rows
from mt_nodes.base.errors import UsageError
from mt_nodes.data.effects import Volume
from mt_nodes.data.firings import return_pairs
from mt_nodes.data.messages import Bundle, Cloud
from mt_nodes.data.transforms import Matrix, UnknownTransform, move
from mt_nodes.relations.mutations.base import Draw
from mt_nodes.relations.mutations.joint.attenuation import THRESHOLD_TO_NOISE, Receiver, reflectivities
from mt_nodes.relations.mutations.lidar.placement import intensity_from, intensity_of, rounded
from mt_nodes.relations.mutations.lidar.rays import smallest
from mt_nodes.relations.mutations.objects.changed_returns import proof_of_rays
from mt_nodes.world.scene.enclosed_rays import enclosing_m
from mt_nodes.world.scene.returns import within_box
from mt_nodes.world.scene.shadow import shadow
from mt_nodes.world.scene.sight import Hits, RaycastBody


def one_echo_a_firing(cloud: Cloud, draw: Draw) -> Draw:
    """Return a draw in which an object that hides several returns of a firing answers that firing once.

    All hits of a firing have the fate of its first one. If that is detected, the others are lost; a sensor that reports
    a single echo twice (Velodyne's, where strongest and last are one: VLP-16 user manual, 6.2.2) repeats it instead.
    ``draw``: ``rows``, rising, with ``range_m`` and perhaps ``intensity``, and ``lost``.
    """
    firings = return_pairs(cloud)
    if not firings.dual:
        return draw
    rows, lost = (draw[name].astype(np.int64) for name in ("rows", "lost"))
    hit = np.sort(np.concatenate([rows, lost]))
    _, first, inverse = np.unique(firings.head[hit], return_index=True, return_inverse=True)
    leader = hit[first][inverse]
    at = np.searchsorted(rows, leader)
    detected = np.isin(leader, rows)
    stays = detected & (firings.repeats | (hit == leader))
    source = at[stays]
    fields: Draw = {name: draw[name][source] for name in ("range_m", "intensity") if name in draw}
    return {**draw, "rows": smallest(hit[stays]), "lost": smallest(hit[~stays]), **fields}


SURROUNDINGS_M = 3.0
#: Range noise is cut at so many standard deviations, so that the proof has a bound.
CUT = 3.0
SURFACE_M = 1e-3
#: Nearer echoes are no stronger: the spot is out of focus, and the laser's power is turned down (the HDL-64E has eight
#: levels of it, by its manual). Fitted, with the transmission of glass, to interiors of recorded cars.
FOCUS_M = 15.0
#: Standard deviation of the logarithm of what comes back through glass: tint, dirt and trim differ from place to place.
#: Fitted, with the transmission of glass, to the windows of recorded cars.
GLASS_SPREAD = 1.0
#: Reflectivity of returns of a cloud without intensities (assumed: asphalt, foliage).
_UNKNOWN = 0.2


@dataclass(frozen=True)
class Sensor:
    """A sensor's measurement: noise along the ray in metres, largest range in metres, and weakest echo.

    ``sensitivity`` is the brightness (:mod:`mt_nodes.world.scene.materials`) at the detection threshold at
    ``max_range_m``; at range R it is ``sensitivity * (R / max_range_m)**2``, because the power of an echo falls with
    the square of the range. An echo of s thresholds is detected as :class:`Receiver` says: with probability
    ``Φ(TNR (s - 1))``, since its noise is normal and 1 / TNR of the threshold. 0.2 at 120 m fits the recorded HDL-64E:
    its road (asphalt of 0.15 at glancing incidence) ends at 60 m; the data sheet promises 0.1 at 50 m. Nearer than
    :data:`FOCUS_M` echoes get no stronger.
    """

    sigma_m: float
    max_range_m: float
    sensitivity: float

    def signal(self, brightness: Floats, range_m: Floats) -> Floats:
        """Return the echoes (n,) in multiples of the threshold."""
        return Receiver(self.max_range_m, FOCUS_M, self.sensitivity).signal(brightness, range_m)

    def probability_through_glass(self, signal: Floats, range_m: Floats) -> Floats:
        """Return the same for echoes through glass, whose strength is lognormal around ``signal`` (n,)."""
        with np.errstate(divide="ignore"):
            return np.where(range_m < self.max_range_m, ndtr(np.log(signal) / GLASS_SPREAD), 0.0)

    def detection_probability(self, signal: Floats, range_m: Floats) -> Floats:
        """Return the probability (n,) that echoes are detected; 0 beyond the sensor's range."""
        return np.where(range_m < self.max_range_m, ndtr(THRESHOLD_TO_NOISE * (signal - 1.0)), 0.0)


def ego_from(bundle: Bundle, frame_id: str, ego_frame_id: str, owner: str) -> Matrix:
    """Return the 4×4 matrix from a frame to the ego's. Raises UsageError: no transform joins the two."""
    try:
        return bundle.transforms.lookup(ego_frame_id, frame_id)
    except UnknownTransform as error:
        raise UsageError(f"{owner}: {error}") from error


def surroundings(cloud: Cloud, to_ego: Matrix, center_m: tuple[float, float], reach_m: float) -> tuple[Rows, Floats]:
    """Return the points in a cube of half side ``reach_m`` around a place of the ego's ground.

    Returns:
        Their rows (n,), rising, and their coordinates (n, 3) in the ego's frame.
    """
    middle = move(np.asarray(np.linalg.inv(to_ego), dtype=np.float64), np.array([[*center_m, 0.0]]))[0]
    rows, xyz = within_box(cloud, middle - reach_m, middle + reach_m)
    return rows, move(to_ego, xyz)


@dataclass(frozen=True, eq=False)
class ObjectVisibility:
    """Rays that hit an object: those with a return, those without, and the directions (n, 3) of the latter."""

    hits: Hits
    silent: Hits
    direction: Floats

    @property
    def count(self) -> int:
        """Number of rays that meet the object before anything else."""
        return int(self.hits.visible.sum() + self.silent.visible.sum())

    @property
    def share(self) -> float:
        """Share of the rays towards the object that meet it before anything else."""
        return self.count / max(1, len(self.hits.rows) + len(self.silent.rows))

    def expected(self, sensor: Sensor) -> float:
        """Return the expected number of returns from the object."""
        return sum(float(_echoes(side, sensor).probability.sum()) for side in (self.hits, self.silent))


def look_at(cloud: Cloud, body: RaycastBody, pose: Matrix) -> ObjectVisibility:
    """Cast all rays of a cloud to an object; ``pose`` (4, 4) is object to cloud.

    A ray without a return that ends within a nearer object of the cloud, at its glass or dark paint, stays so.
    """
    silent, direction = body.cast_silent(body.silent_around(cloud, pose), pose)
    return ObjectVisibility(body.cast(cloud, pose), enclosed(cloud, silent, direction), direction)


def enclosed(cloud: Cloud, silent: Hits, direction: Floats) -> Hits:
    """Return hits of rays without a return, in directions (n, 3), that end within a nearer object of the cloud."""
    return replace(silent, own_m=np.minimum(silent.own_m, enclosing_m(cloud, direction)))


@dataclass(frozen=True, eq=False)
class _Echoes:
    """The strongest echo of the object on each ray: range (n,), brightness (n,), and the probability of detection."""

    range_m: Floats
    brightness: Floats
    signal: Floats
    probability: Floats


def _echoes(hits: Hits, sensor: Sensor) -> _Echoes:
    """Return the strongest echo of each ray: of its first surface, or of what is behind the glass there.

    Light passes the pane on its way out and back. A return of the cloud that lies before that is not the object's.
    """
    inner = hits.behind * np.square(hits.transmission)
    first = sensor.signal(hits.brightness, hits.range_m)
    # Without anything behind, its range is infinite, and its signal 0.
    second = np.where(hits.behind_m < hits.own_m, sensor.signal(inner, hits.behind_m), 0.0)
    deeper = second > first
    range_m, signal = np.where(deeper, hits.behind_m, hits.range_m), np.maximum(first, second)
    plain, through = (f(signal, range_m) for f in (sensor.detection_probability, sensor.probability_through_glass))
    probability = np.where(hits.visible, np.where(deeper, through, plain), 0.0)
    return _Echoes(range_m, np.where(deeper, inner, hits.brightness), signal, probability)


def draw_hits(rng: np.random.Generator, cloud: Cloud, look: ObjectVisibility, sensor: Sensor) -> Draw:
    """Return the draw of one cloud: the effect of the object on its rays.

    ``rows`` with ``range_m`` and ``intensity`` are returns that it replaces, ``lost`` those whose echo is too weak;
    ``new_rows`` with ``new_xyz`` and ``new_intensity`` are returns on rays that had none; ``dimmed`` with
    ``dimmed_intensity`` are returns that are seen through two panes of it.
    """
    hits, silent = look.hits, look.silent
    beyond = _beyond_glass(cloud, hits, sensor)
    echoes, silent_echoes = _echoes(hits, sensor), _echoes(silent, sensor)
    # The receiver reports the strongest echo.
    dims = beyond.signal > echoes.signal
    probability = np.where(dims, beyond.probability, echoes.probability)
    reported = hits.visible & (rng.random(len(hits.rows)) < probability)
    detected, dimmed = reported & ~dims, reported & dims
    range_m = _measured(rng, hits, echoes, sensor)[detected]
    echo = rng.random(len(silent.rows)) < silent_echoes.probability
    silent_m = _measured(rng, silent, silent_echoes, sensor)[echo]
    draw: Draw = {
        "rows": smallest(hits.rows[detected]),
        "range_m": range_m.astype(np.float32),
        "lost": smallest(hits.rows[hits.visible & ~reported]),
        "new_rows": smallest(silent.rows[echo]),
        "new_xyz": rounded(cloud, look.direction[echo] * silent_m[:, None]).astype(cloud.xyz.dtype),
    }
    if (intensity := intensity_of(cloud, echoes.brightness[detected], range_m)) is not None:
        draw["intensity"] = intensity
        draw["new_intensity"] = intensity_of(cloud, silent_echoes.brightness[echo], silent_m)
        rows = hits.rows[dimmed]
        draw["dimmed"] = smallest(rows)
        draw["dimmed_intensity"] = intensity_from(cloud, rows, hits.own_m[dimmed], hits.transmission[dimmed] ** 4)
    return one_echo_a_firing(cloud, draw)


def _beyond_glass(cloud: Cloud, hits: Hits, sensor: Sensor) -> _Echoes:
    """Return the echoes (n,) of the cloud's own returns through two panes of the object, in and out of it."""
    share = np.where(hits.own_m < hits.behind_m, hits.transmission**4, 0.0)
    through = np.flatnonzero(share)
    bright = np.zeros(len(share))
    if len(through):
        rows = hits.rows[through]
        range_m = hits.own_m[through].astype(np.float32)
        bright[through] = share[through] * reflectivities(cloud, rows, range_m, _UNKNOWN)
    signal = sensor.signal(bright, hits.own_m)
    return _Echoes(hits.own_m, bright, signal, sensor.probability_through_glass(signal, hits.own_m))


def _measured(rng: np.random.Generator, hits: Hits, echoes: _Echoes, sensor: Sensor) -> Floats:
    """Return the ranges (n,) that the sensor measures."""
    noise = np.clip(rng.standard_normal(len(hits.rows)), -CUT, CUT) * sensor.sigma_m
    # A measured range never exceeds the old one: that return was farther away.
    return np.minimum(echoes.range_m + noise, hits.own_m * (1.0 - 1e-6))


def proof_of_hits(old: Cloud, new: Cloud, draw: Draw, body: RaycastBody, pose: Matrix, sensor: Sensor) -> str | None:
    """Prove that only drawn returns changed, that these are on their rays and on the object, and none lies beyond.

    Distances to the surface are measured to the nearest triangle in space, not along a ray. A return may stay behind
    glass, no brighter than before.
    """
    drawn, broken = proof_of_rays(old, new, draw)
    if broken is not None:
        return broken
    off = body.off_surface_m(drawn, pose)
    if not (off <= CUT * sensor.sigma_m + SURFACE_M).all():
        return f"a return of the object is {off.max():.3f} m off its surface"
    behind = body.hides(new, pose, 2 * CUT * sensor.sigma_m + SURFACE_M)
    return f"{len(behind)} returns are left behind the object" if len(behind) else None


def volume_of(body: RaycastBody, pose: Matrix, frame_id: str, label: str) -> Volume:
    """Return the box around an object; ``pose`` is object to frame."""
    x, y, z = move(pose, body.center_m[None])[0].tolist()
    yaw = float(np.arctan2(pose[1, 0], pose[0, 0]))
    return Volume(frame_id, (x, y, z), body.size_m, yaw, label)


def shadow_of(body: RaycastBody, pose: Matrix, to_ego: Matrix, frame_id: str, to_m: float) -> Volume:
    """Return the wedge behind an object; ``pose`` is object to ego, ``to_ego`` is sensor to ego."""
    low, high = body.low_m, body.high_m
    corners = np.array([[x, y, 0.0] for x in (low[0], high[0]) for y in (low[1], high[1])])
    return shadow(move(pose, corners)[:, :2], to_ego[:2, 3], frame_id, to_m)
