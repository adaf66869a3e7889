# SPDX-License-Identifier: Apache-2.0
"""Satellite navigation, inertial sensors and odometry that drift: messages which no bundle decodes, and worlds' own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import MtError, NotApplicable, UsageError
from mt_nodes.base.params import param
from mt_nodes.data.cdr import codec
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle, Odometry, Wire
from mt_nodes.relations.mutations.base import Draw, Followup
from mt_nodes.relations.mutations.keyed_draws import generator_of
from mt_nodes.relations.mutations.stream.drift import DURATION, OVER, Drifting

#: WGS 84 (EPSG 7030): semi-major axis in metres, and first eccentricity squared.
_A_M, _E2 = 6_378_137.0, 6.694_379_990_14e-3
_G_MPS2 = 9.80665


class NavigationDrifted(Drifting):
    """Base of mutations that change serialized messages of one type, on a topic or all of them."""

    about_wires = True
    type: ClassVar[str]
    topic: str

    @abstractmethod
    def error(self, bundle: Bundle, state: Any) -> Floats:
        """Return the error of this bundle's messages."""

    @abstractmethod
    def change(self, message: Any, error: Floats) -> None:
        """Write an error into a decoded message."""

    @abstractmethod
    def wrong(self, old: Any, new: Any, error: Floats) -> str | None:
        """Compare two decoded messages with the error, by another formula."""

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Determine the error at this instant."""
        if not any(self._mine(wire) for wire in bundle.wires):
            raise NotApplicable(f"bundle {bundle.index} has no {self.type}{f' on {self.topic}' if self.topic else ''}")
        error = self.error(bundle, state)
        if not error.any():
            raise NotApplicable("the drift begins here: the error is still 0")
        return {"error": error}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Encode the messages anew."""
        wires = tuple(self._changed(w, draw["error"]) if self._mine(w) else w for w in bundle.wires)
        return Followup(((0, replace(bundle, wires=wires)),), Effects(numbers=_numbers(draw["error"])))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Decode both and compare; everything else must be the same object."""
        if [delay for delay, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        new = followup.first
        if new.changed_topics(source) or len(new.wires) != len(source.wires):
            return "more changed than those messages"
        for old, now in zip(source.wires, new.wires, strict=True):
            if not self._mine(old):
                if now is not old:
                    return f"{old.topic} changed, too"
                continue
            if (now.topic, now.type, now.stamp_ns, now.changed) != (old.topic, old.type, old.stamp_ns, True):
                return f"{old.topic}: topic, type or stamp changed, or it is not marked as changed"
            before, after = (codec.decode(wire.type, wire.cdr) for wire in (old, now))
            if broken := self.wrong(before, after, draw["error"]):
                return f"{old.topic}: {broken}"
        return None

    def _mine(self, wire: Wire) -> bool:
        return wire.type == self.type and self.topic in ("", wire.topic)

    def _changed(self, wire: Wire, error: Floats) -> Wire:
        try:
            message = codec.decode(wire.type, bytes(wire.cdr))
        except MtError as reason:
            raise NotApplicable(f"{wire.topic}: {reason}") from reason
        self.change(message, error)
        return replace(wire, cdr=codec.encode(wire.type, message), changed=True)


def _numbers(error: Floats) -> dict[str, float]:
    return {f"error_{i}": float(value) for i, value in enumerate(error)}


@dataclass(frozen=True)
class GnssDrifted(NavigationDrifted):
    """Displaces the fixes of satellite navigation: a bias, a walk of the solution, and jumps by multipath.

    A position of a phone under open sky is off by some 4.9 m (F. van Diggelen, P. Enge, "The World's First GPS MOOC and
    Worldwide Laboratory using Smartphones", ION GNSS+ 2015, as quoted on GPS.gov), which the default is half of. A jump
    is a displacement in a random direction for one second in ``jump_every_s``, as by a reflected signal; its size is an
    assumption. The error east, north and up becomes latitude, longitude and altitude by the radii of curvature of
    WGS 84. Covariances and status stay: a receiver does not know of it. Guaranteed: in earth-centred coordinates each
    fix is displaced by the error, within a ten-thousandth of it; nothing else changes.
    """

    type = "sensor_msgs/msg/NavSatFix"
    sensors = ("gnss",)

    east_m: float = param(2.0, low=-100.0, high=100.0, unit="m", neutral=0.0, help="error to the east")
    north_m: float = param(1.5, low=-100.0, high=100.0, unit="m", neutral=0.0, help="error to the north")
    up_m: float = param(0.0, low=-100.0, high=100.0, unit="m", neutral=0.0, help="error of the altitude")
    jump_m: float = param(0.0, low=0.0, high=100.0, unit="m", neutral=0.0, help="size of a jump by multipath")
    jump_every_s: float = param(
        10.0, low=2.0, high=3600.0, unit="s", aspect="fixed", help="one jump of a second in so long"
    )
    over: str = param("constant", **OVER)
    duration_s: float = param(60.0, **DURATION)
    topic: str = param("", help="topic; empty: every topic of the type")

    def __post_init__(self) -> None:
        if not (self.east_m or self.north_m or self.up_m or self.jump_m):
            raise UsageError("got no error and no jump, expected one of them")

    @property
    def random(self) -> bool:  # type: ignore[override]
        """A walk and jumps are left to chance."""
        return self.over == "walk" or self.jump_m > 0.0

    def error(self, bundle: Bundle, state: Any) -> Floats:
        """Return the error east, north and up (3,) in metres."""
        error = np.array([self.east_m, self.north_m, self.up_m]) * self.shares(bundle, state, 3)
        elapsed_s = 0.0 if state is None else (bundle.stamp_ns - state["start_ns"]) / 1e9
        number, since_s = divmod(max(elapsed_s, 0.0), self.jump_every_s)
        chance = generator_of((state["key"] if state else 0) + int(number))
        begins_s, bearing = chance.uniform(0.0, self.jump_every_s - 1.0), chance.uniform(-np.pi, np.pi)
        if self.jump_m and begins_s <= since_s < begins_s + 1.0:
            error[:2] += self.jump_m * np.array([np.cos(bearing), np.sin(bearing)])
        return error

    def change(self, message: Any, error: Floats) -> None:
        """Move along the ellipsoid by its radii of curvature."""
        latitude = np.radians(message.latitude)
        across = _A_M / np.sqrt(1.0 - _E2 * np.sin(latitude) ** 2)
        along = across * (1.0 - _E2) / (1.0 - _E2 * np.sin(latitude) ** 2)
        east, north, up = error.tolist()
        message.longitude += float(np.degrees(east / ((across + message.altitude) * np.cos(latitude))))
        message.latitude += float(np.degrees(north / (along + message.altitude)))
        message.altitude += up

    def wrong(self, old: Any, new: Any, error: Floats) -> str | None:
        """Compare in earth-centred coordinates, turned to east, north and up."""
        if not _alike(old, new, ("status", "position_covariance", "position_covariance_type", "header")):
            return "status, covariance or header changed"
        (a, b), latitude, longitude = (
            (_earth_centred(m) for m in (old, new)),
            *np.radians([old.latitude, old.longitude]),
        )
        s, c, t, d = np.sin(latitude), np.cos(latitude), np.sin(longitude), np.cos(longitude)
        axes = np.array([[-t, d, 0.0], [-s * d, -s * t, c], [c * d, c * t, s]])
        off = float(np.linalg.norm(axes @ (b - a) - error))
        return f"the fix is {off:.4f} m off the error" if off > 1e-4 * float(np.linalg.norm(error)) + 1e-5 else None


def _earth_centred(message: Any) -> Floats:
    """Return x, y, z (3,) in metres of a fix."""
    latitude, longitude = np.radians([message.latitude, message.longitude])
    across = _A_M / np.sqrt(1.0 - _E2 * np.sin(latitude) ** 2)
    ground = (across + message.altitude) * np.cos(latitude)
    up = (across * (1.0 - _E2) + message.altitude) * np.sin(latitude)
    return np.array([ground * np.cos(longitude), ground * np.sin(longitude), up])


@dataclass(frozen=True)
class ImuDrifted(NavigationDrifted):
    """Adds a bias to the rates and accelerations of an inertial sensor, in a direction that is drawn once.

    Biases by grade (N. El-Sheimy, A. Youssef, "Inertial sensors technologies for navigation applications", Satellite
    Navigation 1:2, 2020, table 1): gyroscopes 0.1 °/s commercial, 1 to 10 °/h tactical, below 0.01 °/h navigation;
    accelerometers 1 to 5 mg tactical, below 0.1 mg navigation. The defaults are those of a commercial gyroscope and of
    5 mg. Orientation and covariances stay: the sensor does not know of it. Guaranteed: rates and accelerations differ
    by exactly the bias; nothing else changes.
    """

    type = "sensor_msgs/msg/Imu"
    sensors = ("imu",)

    gyro_degps: float = param(0.1, low=0.0, high=50.0, unit="deg/s", neutral=0.0, help="size of the rates' bias")
    accelerometer_mg: float = param(
        5.0, low=0.0, high=1000.0, unit="mg", neutral=0.0, help="size of the accelerations'"
    )
    over: str = param("constant", **OVER)
    duration_s: float = param(600.0, **DURATION)
    topic: str = param("", help="topic; empty: every topic of the type")

    random = True

    def __post_init__(self) -> None:
        if not (self.gyro_degps or self.accelerometer_mg):
            raise UsageError("got no bias, expected one of gyro_degps and accelerometer_mg")

    def error(self, bundle: Bundle, state: Any) -> Floats:
        """Return the bias (6,) in rad/s and m/s²."""
        ways = generator_of((state["key"] if state else 0) + 1).standard_normal((2, 3))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        sizes = np.array([np.radians(self.gyro_degps), self.accelerometer_mg * 1e-3 * _G_MPS2])
        return np.asarray((ways * sizes[:, None]).ravel() * self.shares(bundle, state, 6))

    def change(self, message: Any, error: Floats) -> None:
        """Add the bias."""
        for vector, bias in ((message.angular_velocity, error[:3]), (message.linear_acceleration, error[3:])):
            vector.x, vector.y, vector.z = (
                float(v + b) for v, b in zip((vector.x, vector.y, vector.z), bias, strict=True)
            )

    def wrong(self, old: Any, new: Any, error: Floats) -> str | None:
        """Subtract both messages and compare sizes and direction."""
        rest = ("header", "orientation", "orientation_covariance", "angular_velocity_covariance")
        if not _alike(old, new, (*rest, "linear_acceleration_covariance")):
            return "orientation, covariances or header changed"
        for name, bias in (("angular_velocity", error[:3]), ("linear_acceleration", error[3:])):
            a, b = (np.array([getattr(getattr(m, name), axis) for axis in "xyz"]) for m in (old, new))
            if not np.allclose(b - a, bias, rtol=1e-9, atol=1e-9):
                return f"{name} is off by {np.abs(b - a - bias).max():.3g} from the bias"
        return None


@dataclass(frozen=True)
class OdometryDrifted(Drifting):
    """Displaces and turns the pose that a simulated world tells, while sensors, speeds and the world stay as they are.

    The pose of its ``nav_msgs/Odometry`` moves by ``ahead_m`` and ``left_m`` in the vehicle's own frame and turns by
    ``yaw_deg``, as by a localisation that is off. How much a stack must bear is its own claim: the default is assumed.
    Velocities stay: wheels measure them. Guaranteed: each pose differs by the error in the vehicle's frame; nothing
    else changes.
    """

    sensors = ("odometry",)

    ahead_m: float = param(0.0, low=-100.0, high=100.0, unit="m", neutral=0.0, help="error along the vehicle's x axis")
    left_m: float = param(0.1, low=-100.0, high=100.0, unit="m", neutral=0.0, help="error along its y axis")
    yaw_deg: float = param(0.0, low=-45.0, high=45.0, unit="deg", neutral=0.0, help="error of its yaw")
    over: str = param("constant", **OVER)
    duration_s: float = param(60.0, **DURATION)

    def __post_init__(self) -> None:
        if not (self.ahead_m or self.left_m or self.yaw_deg):
            raise UsageError("got no error, expected one of ahead_m, left_m and yaw_deg")

    def draw(self, rng: np.random.Generator, bundle: Bundle, state: Any) -> Draw:
        """Determine the error at this instant: (3,) ahead and left in metres, yaw in radians."""
        if not any(m.role == "odometry" for m in bundle.world_messages):
            raise NotApplicable(f"bundle {bundle.index} tells no odometry of a world")
        full = np.array([self.ahead_m, self.left_m, np.radians(self.yaw_deg)])
        error = full * self.shares(bundle, state, 3)
        if not error.any():
            raise NotApplicable("the drift begins here: the error is still 0")
        return {"error": error}

    def apply(self, bundle: Bundle, draw: Draw) -> Followup:
        """Move the pose."""
        messages = tuple(
            replace(m, data=_displaced(m.data, draw["error"])) if isinstance(m.data, Odometry) else m
            for m in bundle.world_messages
        )
        numbers = dict(zip(("ahead_m", "left_m", "yaw_rad"), draw["error"].tolist(), strict=True))
        return Followup(((0, replace(bundle, world_messages=messages)),), Effects(numbers=numbers))

    def guarantee(self, source: Bundle, followup: Followup, draw: Draw) -> str | None:
        """Compare poses as complex numbers, and the rest as it is."""
        if [delay for delay, _ in followup.bundles] != [0]:
            return f"{len(followup.bundles)} bundles, expected one at once"
        topics = {m.topic for m in source.world_messages if isinstance(m.data, Odometry)}
        if others := followup.first.changed_topics(source) - topics:
            return f"{', '.join(sorted(others))} changed, too"
        pairs = zip(source.world_messages, followup.first.world_messages, strict=True)
        return next(
            (broken for a, b in pairs if a.topic in topics and (broken := _misplaced(a, b, draw["error"]))), None
        )


def _displaced(pose: Odometry, error: Floats) -> Odometry:
    ahead, left, yaw = error.tolist()
    c, s = np.cos(pose.yaw_rad), np.sin(pose.yaw_rad)
    x, y = pose.x_m + c * ahead - s * left, pose.y_m + s * ahead + c * left
    return replace(pose, x_m=float(x), y_m=float(y), yaw_rad=float(pose.yaw_rad + yaw))


def _misplaced(old: Any, new: Any, error: Floats) -> str | None:
    a, b = old.data, new.data
    same = ("frame_id", "stamp_ns", "speed_mps", "yaw_rate_radps", "child_frame_id")
    if any(getattr(a, name) != getattr(b, name) for name in same) or (old.stamp_ns, old.role) != (
        new.stamp_ns,
        new.role,
    ):
        return f"{old.topic}: more changed than the pose"
    moved = ((b.x_m - a.x_m) + 1j * (b.y_m - a.y_m)) * np.exp(-1j * a.yaw_rad)
    off = abs(moved - (error[0] + 1j * error[1])) + abs(b.yaw_rad - a.yaw_rad - error[2])
    return (
        f"{old.topic}: the pose is off by {off:.3g} from the error"
        if off > 1e-9 * (1.0 + abs(a.x_m) + abs(a.y_m))
        else None
    )


def _alike(old: Any, new: Any, names: Iterable[str]) -> bool:
    """Return whether fields of two decoded messages are the same."""
    return all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        for a, b in ((getattr(old, n), getattr(new, n)) for n in names)
    )
