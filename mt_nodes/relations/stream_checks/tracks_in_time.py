# SPDX-License-Identifier: Apache-2.0
"""Checks of tracks from instant to instant: they do not blink, and they move as boxes on a road can."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.params import param
from mt_nodes.data.ego.ego_motion import EgoMotion
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import Detections
from mt_nodes.data.regions import Region, RegionGiven, RegionUnavailable, load_region
from mt_nodes.data.transforms import move
from mt_nodes.relations.stream_checks.base import (
    Breach,
    StreamCheck,
    StreamFinding,
    StreamMemory,
    WatchedInstant,
    nothing_watched,
)
from mt_nodes.relations.stream_checks.scene_facts import returns_in, tracks_of

_EPSILON_NS = 1_000_000


@dataclass(frozen=True)
class TracksDoNotBlink(RegionGiven, StreamCheck):
    """A track does not vanish and come back within ``gap_s`` while the LiDAR goes on getting returns from it.

    A track counts once it has been published for ``settled_s``, in the keep zone: ``keep_inset_m`` inside the region
    and within ``within_m`` of the ego. While it is missing, returns are counted in its last box, moved on at its last
    speed. Those in the box of another track do not count: what is published in two parts and then in one has not
    ceased to exist. Where they are fewer than ``returns_share`` of the most that it had in the last ``recent_s``, or
    than ``least_returns``, it may be hidden, and nothing is demanded: a tracker goes on for a while with what is being
    hidden. It comes back under its own id, or as a new one within ``same_place_m`` of it.
    Without a cloud nothing says that it is not hidden, so nothing is watched.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("tracks", "detections"), ("lidar",))
    because: ClassVar[str] = "What is in plain sight does not cease to exist for a moment."

    gap_s: float = param(
        0.3, low=0.01, high=5.0, unit="s", help="a track that is back after so long or less has blinked"
    )
    settled_s: float = param(0.3, low=0.0, high=60.0, unit="s", help="a track counts once it was there for so long")
    region: Region = param("front_40m", convert=load_region, help="where tracks matter")
    keep_inset_m: float = param(2.0, low=0.0, high=50.0, unit="m", help="the keep zone lies this far inside the region")
    within_m: float = param(
        35.0, low=0.0, high=500.0, unit="m", help="the keep zone ends at this distance from the ego"
    )
    returns_share: float = param(0.6, low=0.0, high=1.0, help="of its returns that must still come from its place")
    recent_s: float = param(1.0, low=0.0, high=10.0, unit="s", help="its returns are the most of so long before")
    least_returns: int = param(8, low=1, high=10_000, help="so many must come from its place")
    same_place_m: float = param(1.5, low=0.0, high=20.0, unit="m", help="a new id so near is the same object")

    def begin(self) -> StreamMemory:
        """Return a memory without tracks."""
        return _BlinkMemory(self)

    def kept(self, tracks: Detections, bundle: Bundle) -> Mask | str:
        """Return which tracks (M,) of ``base_link`` are in the keep zone, or why that is not known."""
        try:
            region = self.region.resolve(bundle)
            to_region = bundle.transforms.lookup(region.frame_id, tracks.frame_id)
        except (RegionUnavailable, LookupError) as error:
            return str(error)
        near = np.hypot(*tracks.center_m[:, :2].T) <= self.within_m
        return np.asarray(
            near & (region.signed_distance(move(to_region, tracks.center_m)[:, :2]) <= -self.keep_inset_m)
        )


@dataclass(eq=False)
class _TrackSighting:
    """One track: when it came, where it was lately, its speed there, and instants in which it was missing since."""

    first_ns: int
    #: Stamp, box and clouds, the oldest first; returns are counted once the track is missing.
    seen: deque[tuple[int, Detections, Bundle]]
    speed_mps: Floats = field(default_factory=lambda: np.zeros(3))
    missing: int = 0
    returns: int | None = None

    @property
    def last_ns(self) -> int:
        return self.seen[-1][0]

    @property
    def box(self) -> Detections:
        return self.seen[-1][1]

    def most_returns(self) -> int:
        """Return how many it had at best; 0 where no cloud could tell."""
        counts = [returns_in(b, box.center_m[0], box.size_m[0], float(box.yaw_rad[0])) for _, box, b in self.seen]
        return max((count for count in counts if count is not None), default=0)

    def expected(self, stamp_ns: int) -> Floats:
        return np.asarray(self.box.center_m[0] + self.speed_mps * (stamp_ns - self.last_ns) * 1e-9)


class _BlinkMemory(StreamMemory):
    def __init__(self, check: TracksDoNotBlink) -> None:
        self._check = check
        self._tracks: dict[str, _TrackSighting] = {}

    def look(self, instant: WatchedInstant) -> StreamFinding:
        if not instant.bundle.known_clouds:
            return nothing_watched("no cloud, which would tell whether a missing track is hidden")
        tracks = tracks_of(instant)
        kept = tracks if isinstance(tracks, str) else self._check.kept(tracks, instant.bundle)
        if isinstance(tracks, str) or isinstance(kept, str):
            return nothing_watched(str(kept))
        stamp_ns, names = instant.stamp_ns, tracks.track_id.tolist()
        rows = {name: row for row, name in enumerate(names) if kept[row]}
        breaches = self._returned(instant, tracks, rows)
        self._miss(instant, tracks)
        watched = []
        for name, row in rows.items():
            self._see(name, tracks.take(np.array([row])), instant)
            if stamp_ns - self._tracks[name].first_ns >= self._check.settled_s * 1e9:
                watched.append(float(np.hypot(*tracks.center_m[row, :2])))
        return StreamFinding(tuple(watched), tuple(breaches), "" if watched else "no settled track in the keep zone")

    def _returned(self, instant: WatchedInstant, tracks: Detections, rows: dict[str, int]) -> list[Breach]:
        """Return what was missing and is there again, under its id or another one; take that into its old place."""
        new = [name for name in rows if name not in self._tracks]
        breaches = []
        for name, before in [(name, track) for name, track in self._tracks.items() if track.missing]:
            back = name if name in rows else self._at(before.expected(instant.stamp_ns), tracks, rows, new)
            if back is None:
                continue
            breaches.append(self._breach(before, name, back, (instant.stamp_ns - before.last_ns) * 1e-9))
            del self._tracks[name]
            self._tracks[back] = before
            before.missing = 0
            if back in new:
                new.remove(back)
        return breaches

    def _at(self, place_m: Floats, tracks: Detections, rows: dict[str, int], new: list[str]) -> str | None:
        apart = {name: float(np.hypot(*(tracks.center_m[rows[name]] - place_m)[:2])) for name in new}
        nearest = min(apart, key=lambda name: apart[name], default=None)
        return nearest if nearest is not None and apart[nearest] <= self._check.same_place_m else None

    def _breach(self, before: _TrackSighting, name: str, back: str, absent_s: float) -> Breach:
        range_m = float(np.hypot(*before.box.center_m[0, :2]))
        under = "" if back == name else f" as {back}"
        reason = (
            f"track {name} ({before.box.label[0]}) at {range_m:.1f} m was missing in {before.missing} outputs while "
            f"the LiDAR had {before.returns} returns from it, and came back{under} after {absent_s:.2f} s"
        )
        return Breach(back, range_m, round(absent_s, 3), 0.0, "s", reason, before.last_ns)

    def _miss(self, instant: WatchedInstant, tracks: Detections) -> None:
        """Note who is missing; forget who may be hidden, has been away for too long, or is out of the zone."""
        longest_ns, there = round(self._check.gap_s * 1e9) + _EPSILON_NS, set(tracks.track_id.tolist())
        for name, track in [(name, track) for name, track in self._tracks.items() if name not in there]:
            settled = track.last_ns - track.first_ns >= self._check.settled_s * 1e9
            age_ns = instant.stamp_ns - track.last_ns
            if not settled or age_ns >= longest_ns or not self._in_sight(track, instant, tracks):
                del self._tracks[name]
                continue
            track.missing += 1

    def _in_sight(self, track: _TrackSighting, instant: WatchedInstant, tracks: Detections) -> bool:
        """Tell whether the LiDAR still gets returns from where a track must be, which are no other track's."""
        size, yaw = track.box.size_m[0], float(track.box.yaw_rad[0])
        track.returns = returns_in(instant.bundle, track.expected(instant.stamp_ns), size, yaw, tracks)
        if track.returns is None or track.returns < self._check.least_returns:
            return False
        return track.returns >= self._check.returns_share * track.most_returns()

    def _see(self, name: str, box: Detections, instant: WatchedInstant) -> None:
        now = instant.stamp_ns, box, replace(instant.bundle, images=())
        before = self._tracks.get(name)
        if before is None:
            self._tracks[name] = _TrackSighting(instant.stamp_ns, deque([now]))
            return
        before.speed_mps = (box.center_m[0] - before.box.center_m[0]) / (1e-9 * (instant.stamp_ns - before.last_ns))
        before.seen.append(now)
        while instant.stamp_ns - before.seen[0][0] > self._check.recent_s * 1e9:
            before.seen.popleft()
        before.missing = 0


@dataclass(frozen=True)
class BoxesAgreeWithEgoMotion(StreamCheck):
    """A track moves over the ground as it says, or as it did before: ego motion and boxes tell of one world.

    The place of each track over the ground is compared with where it must be, from ``over_s`` before: by its own
    velocity where ``velocities`` says what that is relative to, else by its own way over the time before that, which is
    twice as uncertain. Allowed for are ``most_mps2``, ``slack_m`` for the middle of a box that comes into sight, and
    half of what its size changed by. A box that does not move by the ego's motion stands in another world. What is of
    one of the classes ``ignored`` is not taken for a road user: of a hedge or a wall, other parts come into sight as
    the ego passes, and the middle of what is seen moves without bound.
    """

    needs: ClassVar[tuple[tuple[str, ...], ...]] = (("tracks", "detections"),)
    because: ClassVar[str] = "Nothing on a road jumps: what the ego's motion does not explain, an object must drive."

    over_s: float = param(0.5, low=0.05, high=5.0, unit="s", help="time over which a way is compared")
    velocities: str = param(
        "unused", choices=("unused", "ground", "relative"), help="what the stack's velocities are relative to"
    )
    slack_m: float = param(1.5, low=0.0, high=20.0, unit="m", help="what the middle of a box may be off")
    most_mps2: float = param(10.0, low=0.1, high=50.0, unit="m/s²", help="what a road user accelerates at most")
    settled_s: float = param(1.0, low=0.0, high=60.0, unit="s", help="a track counts once it was there for so long")
    within_m: float = param(35.0, low=0.0, high=500.0, unit="m", help="tracks so near to the ego count")
    ignored: tuple[str, ...] = param(("unknown",), help="classes that say nothing of how something may move")

    @property
    def bound_m(self) -> float:
        """How far a track may be from where it must be."""
        # Of p2 - 2 p1 + p0 each place may be off, and the speed before is that of a whole step before.
        return (2.0 if self.velocities == "unused" else 1.0) * (self.slack_m + 0.5 * self.most_mps2 * self.over_s**2)

    def begin(self) -> StreamMemory:
        """Return a memory without tracks."""
        return _MotionMemory(self)


class _PlaceOnWay(NamedTuple):
    """Stamp, place (3,) and velocity (3,) of a track over the ground, in the world frame, and its size (3,)."""

    stamp_ns: int
    place_m: Floats
    velocity_mps: Floats
    size_m: Floats


#: Of one track, the oldest first.
Way = deque[_PlaceOnWay]


class _MotionMemory(StreamMemory):
    def __init__(self, check: BoxesAgreeWithEgoMotion) -> None:
        self._check, self._since = check, -1
        self._ways: dict[str, Way] = {}

    def look(self, instant: WatchedInstant) -> StreamFinding:
        found, motion = tracks_of(instant), instant.bundle.motion
        if isinstance(found, str):
            return nothing_watched(found)
        tracks = found.take(~np.isin(found.label, self._check.ignored))
        if motion is None or motion.pose is None:
            reason = instant.bundle.track.reason if instant.bundle.track is not None else ""
            return nothing_watched(f"no ego motion{f': {reason}' if reason else ''}")
        if motion.since != self._since:
            self._ways, self._since = {}, motion.since
        places = move(motion.pose, tracks.center_m)
        speeds = self._over_ground(tracks, motion)
        ranges, breaches, ways = [], [], {}
        for row, name in enumerate(tracks.track_id.tolist()):
            way = ways[name] = self._ways.get(name, deque())
            range_m = float(np.hypot(*tracks.center_m[row, :2]))
            now = _PlaceOnWay(instant.stamp_ns, places[row], speeds[row], tracks.size_m[row])
            off = self._off_m(way, now)
            if off is not None and range_m <= self._check.within_m:
                ranges.append(range_m)
                if off > self._check.bound_m:
                    breaches.append(self._breach(tracks, row, off, instant.stamp_ns))
            way.append(now)
        self._ways = ways
        why = "no track for long enough" if len(tracks) or not len(found) else "no track of a class that counts"
        return StreamFinding(tuple(ranges), tuple(breaches), "" if ranges else why)

    def _over_ground(self, tracks: Detections, motion: EgoMotion) -> Floats:
        """Return velocities (M, 3) over the ground, in the world frame; NaN where they say nothing."""
        assert motion.pose is not None
        velocity = tracks.velocity_mps
        if self._check.velocities == "unused":
            return np.full(velocity.shape, np.nan)
        velocity = np.where(np.isfinite(velocity), velocity, [np.nan, np.nan, 0.0])
        if self._check.velocities == "relative":
            if motion.velocity_mps is None:
                return np.full(velocity.shape, np.nan)
            rate = motion.yaw_rate_radps or 0.0
            turning = rate * np.column_stack([-tracks.center_m[:, 1], tracks.center_m[:, 0], np.zeros(len(tracks))])
            velocity = velocity + motion.velocity_mps + turning
        return np.asarray(velocity @ motion.pose[:3, :3].T)

    def _off_m(self, way: Way, now: _PlaceOnWay) -> float | None:
        """Return how far a track is from where it must be; None where that is not known (yet)."""
        check, own = self._check, self._check.velocities == "unused"
        over_ns, settled_ns = round(check.over_s * 1e9) - _EPSILON_NS, round(check.settled_s * 1e9) - _EPSILON_NS
        needed_ns = max(settled_ns, 2 * over_ns if own else over_ns)
        while len(way) > 1 and now.stamp_ns - way[1].stamp_ns >= needed_ns:
            way.popleft()
        if not way or now.stamp_ns - way[0].stamp_ns < needed_ns:
            return None
        then = next(each for each in reversed(way) if now.stamp_ns - each.stamp_ns >= over_ns)
        first = next((each for each in reversed(way) if then.stamp_ns - each.stamp_ns >= over_ns), way[0])
        step_ns, step_before_ns = now.stamp_ns - then.stamp_ns, then.stamp_ns - first.stamp_ns
        if own and step_before_ns == 0:
            return None
        by_way = (then.place_m - first.place_m) * step_ns / max(step_before_ns, 1)
        moved = by_way if own else 0.5e-9 * step_ns * (now.velocity_mps + then.velocity_mps)
        grown = max(float(np.hypot(*(now.size_m - each.size_m)[:2])) for each in (then, *([first] if own else [])))
        off = float(np.hypot(*(now.place_m - then.place_m - moved)[:2])) - 0.5 * grown
        return max(off, 0.0) if np.isfinite(off) else None

    def _breach(self, tracks: Detections, row: int, off_m: float, now_ns: int) -> Breach:
        name, range_m = str(tracks.track_id[row]), float(np.hypot(*tracks.center_m[row, :2]))
        by = "its way before" if self._check.velocities == "unused" else "its velocity"
        reason = (
            f"track {name} ({tracks.label[row]}) at {range_m:.1f} m is {off_m:.1f} m from where {by} and the ego's "
            f"motion over {self._check.over_s:g} s put it"
        )
        since_ns = now_ns - round(self._check.over_s * 1e9)
        return Breach(name, range_m, round(off_m, 3), round(self._check.bound_m, 3), "m", reason, since_ns)
