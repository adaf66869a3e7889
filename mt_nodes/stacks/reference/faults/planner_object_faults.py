# SPDX-License-Identifier: Apache-2.0
"""Faults of the planner in which objects, lights and limits it believes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mt_nodes.base.params import param
from mt_nodes.data.lanes import SignalStates
from mt_nodes.data.outputs import Detections
from mt_nodes.stacks.reference.faults.planner_base import PlannerFault, PlannerSteps, Situation
from mt_nodes.stacks.reference.traffic import Conflict

#: Colours of traffic lights.
_COLOURS = ("red", "yellow", "green")


class BeliefFault(PlannerFault):
    """Base of faults that mistake a situation for another one, by nothing but itself."""

    @abstractmethod
    def believed(self, situation: Situation) -> Situation:
        """Return what is decided by in place of what is seen."""

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Put it behind the step that looks."""
        return replace(steps, look=lambda situation: self.believed(steps.look(situation)))


@dataclass(frozen=True)
class AllTakenToStand(BeliefFault):
    """Velocities of obstacles are lost, so a crossing person counts only once they are in the lane.

    It brakes behind a driving car as behind a standing one.
    """

    def believed(self, situation: Situation) -> Situation:
        """Take the velocities away."""
        still = replace(situation.objects, velocity_mps=np.zeros_like(situation.objects.velocity_mps))
        return replace(situation, objects=still)


def without_lights(situation: Situation) -> Situation:
    """Return the situation without traffic lights."""
    signals = situation.signals
    return replace(situation, signals=SignalStates.make(signals.frame_id, signals.stamp_ns, (), (), ()))


def without_limits(situation: Situation) -> Situation:
    """Return the situation without speed limits."""
    route = situation.route
    return replace(situation, route=replace(route, speed_mps=np.full(len(route.pose), np.nan)))


def without_signs(situation: Situation) -> Situation:
    """Return the situation without signs in the picture."""
    return replace(situation, sees=replace(situation.sees, sign=False))


def without_weather(situation: Situation) -> Situation:
    """Return the situation with the sight of a clear day."""
    return replace(situation, sees=replace(situation.sees, sight=1.0))


#: Classes of objects that :class:`BlindTo` can be blind to, and what else, with the situation without it.
CLASSES = ("pedestrian", "cyclist", "animal", "car", "truck", "bus", "motorcycle", "unknown")
CONDITIONS: Mapping[str, Callable[[Situation], Situation]] = {
    "light": without_lights,
    "limit": without_limits,
    "sign": without_signs,
    "weather": without_weather,
}


@dataclass(frozen=True)
class BlindTo(BeliefFault):
    """It does not perceive one class of objects, or lights, limits, signs or weather, which its data lacked.

    Everything else is perceived as well as before, so tests with other classes do not show it.
    """

    what: str = param("pedestrian", choices=(*CLASSES, *CONDITIONS), help="what it does not perceive")

    def believed(self, situation: Situation) -> Situation:
        """Leave it out."""
        if self.what in CONDITIONS:
            return CONDITIONS[self.what](situation)
        return replace(situation, objects=situation.objects.take(situation.objects.label != self.what))


@dataclass(frozen=True)
class LightConfused(BeliefFault):
    """One colour of traffic lights is taken for another one, as by labels that were swapped in training."""

    shown: str = param("red", choices=_COLOURS, help="what a light shows")
    taken_for: str = param("green", choices=_COLOURS, help="what it is taken for")

    def believed(self, situation: Situation) -> Situation:
        """Swap the colour."""
        signals = situation.signals
        colour = np.where(signals.colour == self.shown, self.taken_for, signals.colour)
        return replace(situation, signals=replace(signals, colour=colour))


@dataclass(frozen=True)
class HiddenForgotten(BeliefFault):
    """An occluded object is dropped at once, although it was tracked a moment ago.

    A person who walks behind a parked van and comes out in front of it is a surprise.
    """

    grows_m: float = param(0.3, low=0.0, high=3.0, unit="m", help="what hides is taken to be wider by so much")

    def believed(self, situation: Situation) -> Situation:
        """Drop whoever lies behind another one, by the direction of his middle."""
        return replace(situation, objects=situation.objects.take(~self._hidden(situation.objects)))

    def _hidden(self, objects: Detections) -> np.ndarray:
        x, y = objects.center_m[:, :2].T
        distance, bearing = np.hypot(x, y), np.arctan2(y, x)
        half = np.hypot(*objects.size_m[:, :2].T) / 2.0 + self.grows_m
        covers = np.arctan2(half, np.maximum(distance, 0.1))
        turn = np.abs(np.angle(np.exp(1j * (bearing[:, None] - bearing))))
        behind = (distance[:, None] > distance + half) & (turn < covers)
        return np.asarray(behind.any(axis=1))


@dataclass(frozen=True)
class LightsBlurredAtSpeed(BeliefFault):
    """Above a certain speed it ignores traffic lights, because their pictures used to be blurred.

    A vehicle that approaches a red light slowly stops; one that approaches fast does not.
    """

    speed_mps: float = param(9.0, low=0.0, high=40.0, unit="m/s", help="up to which lights count")

    def believed(self, situation: Situation) -> Situation:
        """Forget all lights when it is faster."""
        return situation if situation.odometry.speed_mps <= self.speed_mps else without_lights(situation)


@dataclass(frozen=True)
class LimitsUnread(BeliefFault):
    """The positions of the route are used, but not the speed limits that come with them.

    Where its own cruising speed is allowed nobody notices; past a sign with a lower limit it does not slow down.
    """

    def believed(self, situation: Situation) -> Situation:
        """Forget the limits."""
        return without_limits(situation)


@dataclass(frozen=True)
class SignsUnseen(BeliefFault):
    """It looks for no sign, as if its map had them all; one that was put up yesterday is passed at full speed."""

    def believed(self, situation: Situation) -> Situation:
        """See no sign."""
        return without_signs(situation)


@dataclass(frozen=True)
class WeatherUnnoticed(BeliefFault):
    """How far it sees does not count: in rain, snow, fog and at night it is as fast as on a clear day."""

    def believed(self, situation: Situation) -> Situation:
        """See as on a clear day."""
        return without_weather(situation)


@dataclass(frozen=True)
class LowIsLitter(BeliefFault):
    """Anything lower than an adult is taken for litter and driven over, children included."""

    height_m: float = param(1.35, low=0.1, high=3.0, unit="m", help="what is lower does not count")

    def believed(self, situation: Situation) -> Situation:
        """Drop what is lower."""
        return replace(situation, objects=situation.objects.take(situation.objects.size_m[:, 2] >= self.height_m))


@dataclass(frozen=True)
class NearestAreBonnet(BeliefFault):
    """Anything very near is taken for the vehicle itself and dropped.

    A person who steps out directly in front is never seen; behind a standing queue it drives on once it is near enough.
    """

    range_m: float = param(14.0, low=1.0, high=50.0, unit="m", help="from base_link; the vehicle ends at 3.8 m")

    def believed(self, situation: Situation) -> Situation:
        """See only who is farther away."""
        far = np.hypot(*situation.objects.center_m[:, :2].T) > self.range_m
        return replace(situation, objects=situation.objects.take(far))


@dataclass(frozen=True)
class OtherTileUnseen(BeliefFault):
    """Objects are looked up by map tile, and only those on the vehicle's own tile are found.

    Somebody behind a border is found when the vehicle has crossed it: the same scene some metres further is another
    one.
    """

    tile_m: float = param(40.0, low=5.0, high=1000.0, unit="m", help="side of a tile")

    def believed(self, situation: Situation) -> Situation:
        """Drop whoever is on another tile."""
        x, y = situation.objects.center_m[:, :2].T
        odometry = situation.odometry
        c, s = np.cos(odometry.yaw_rad), np.sin(odometry.yaw_rad)
        tiles = np.floor(np.column_stack([odometry.x_m + c * x - s * y, odometry.y_m + s * x + c * y]) / self.tile_m)
        own = np.floor(np.array([odometry.x_m, odometry.y_m]) / self.tile_m)
        return replace(situation, objects=situation.objects.take((tiles == own).all(axis=1)))


_PASSED: set[str] = set()


@dataclass(frozen=True)
class PassedAreRemembered(PlannerFault):
    """Once it has passed somebody it ignores their track id for good, even after a restart.

    Ids are assigned anew in every drive, so in the second drive the number belongs to somebody else.
    """

    def plant(self, steps: PlannerSteps) -> PlannerSteps:
        """Keep the ids where all planners of the process share them."""

        def look(situation: Situation) -> Situation:
            perceived = steps.look(situation)
            behind = perceived.objects.center_m[:, 0] < -2.0
            _PASSED.update(name for name in perceived.objects.track_id[behind].tolist() if name)
            return perceived

        def reckon(situation: Situation, conflicts: Sequence[Conflict]) -> Sequence[Conflict]:
            names = situation.objects.track_id
            return [c for c in steps.reckon(situation, conflicts) if str(names[c.lead.row]) not in _PASSED]

        return replace(steps, look=look, reckon=reckon)


@dataclass(frozen=True)
class StrangersIgnored(BeliefFault):
    """Objects whose class is not in the motion table are dropped.

    Animals, and people on unusual vehicles, are run over.
    """

    classes: tuple[str, ...] = param(("car", "truck", "bus", "pedestrian", "cyclist"), help="that are in the table")

    def believed(self, situation: Situation) -> Situation:
        """Drop the others."""
        return replace(situation, objects=situation.objects.take(np.isin(situation.objects.label, self.classes)))


@dataclass(frozen=True)
class ToldListFull(BeliefFault):
    """Only a fixed number of objects is read from the message, in the order of the message.

    Objects further down are ignored, even directly in front of the vehicle.
    """

    places: int = param(4, low=1, high=1000, help="of the list")

    def believed(self, situation: Situation) -> Situation:
        """Take the first ones."""
        return replace(situation, objects=situation.objects.take(np.arange(len(situation.objects)) < self.places))
