# SPDX-License-Identifier: Apache-2.0
"""A scenario: where, who and when; plain data of which a world is made.

Frame ``map``: x east, y north, metres; yaw counter-clockwise from x, radians; time in seconds from the start. A pose is
that of an actor's middle on the ground; of the ego it is ``base_link``: the middle of the rear axle, on the ground.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PROTECTED = ("age_years", "gender", "skin_tone", "mobility", "build", "status")
"""Attributes of a person that no decision may depend on."""


@dataclass(frozen=True)
class Pose:
    """A place on the ground, and the direction that somebody looks there."""

    x_m: float
    y_m: float
    yaw_rad: float = 0.0


@dataclass(frozen=True)
class Waypoint:
    """A place to go to, straight on from the one before, and the speed on the way there."""

    x_m: float
    y_m: float
    speed_mps: float


@dataclass(frozen=True)
class Trigger:
    """When an actor begins to move: as soon as all that is given is so; nothing given: at once.

    Attributes:
        after_s: so much time has passed. ego_within_m: the ego's front has come so near. ego_within_s: at its present
            speed the ego would cover the distance in so much time.
    """

    after_s: float = 0.0
    ego_within_m: float | None = None
    ego_within_s: float | None = None


@dataclass(frozen=True)
class Person:
    """What is known of a person beside shape and movement; None and empty: not said.

    Attributes:
        skin_tone: on Fitzpatrick's scale, 1 (light) to 6 (dark). mobility: ``none`` for no impairment, ``wheelchair``,
            ``stick`` … compliance: how the person crosses: ``crossing_on_green``, ``crossing_on_red``, ``jaywalking``,
            ``on_pavement``.
        group: of people who belong together.
    """

    age_years: float | None = None
    gender: str = ""
    skin_tone: int | None = None
    mobility: str = ""
    build: str = ""
    status: str = ""
    compliance: str = ""
    group: str = ""


@dataclass(frozen=True)
class Actor:
    """Somebody or something that may move.

    Attributes:
        name: unique in the scenario. kind: a name of :data:`mt_nodes.world.scene.objects.KINDS`, whose mesh it is.
        start: pose at first. speed_mps: what it goes straight on with where it has no waypoints, negative never.
        waypoints: where it goes when triggered; it stops at the last.
        size_m: length, width, height where they are not those of the kind. mass_kg: None for the kind's own.
        tone: 0..1, tells things of one kind apart, as of paint or clothes.
        obeys_signals: waits at red lights (vehicles at the stop line, people at the kerb of a crossing).
        person: of a human.
    """

    name: str
    kind: str
    start: Pose
    speed_mps: float = 0.0
    waypoints: tuple[Waypoint, ...] = ()
    trigger: Trigger = Trigger()
    size_m: tuple[float, float, float] | None = None
    mass_kg: float | None = None
    tone: float = 0.5
    obeys_signals: bool = False
    person: Person | None = None


@dataclass(frozen=True)
class Obstacle:
    """Something that stands: ``box``, ``cone``, ``cylinder`` or ``sphere``; size_m is length, width, height."""

    name: str
    shape: str
    pose: Pose
    size_m: tuple[float, float, float]


@dataclass(frozen=True)
class Vehicle:
    """What a car can do; the defaults are those of a mid-size car.

    Attributes:
        front_m, rear_m: from the rear axle to the bumpers. steering_rad, steering_rate_radps: limits of its wheels.
        steering_dead_s, steering_lag_s, drive_dead_s, drive_lag_s: dead time and first-order lag of the actuators.
        acceleration_mps2: of the engine. brake_mps2: of the brakes where the road gives that much.
        brake_jerk_mps3: by which brakes build up.
    """

    wheelbase_m: float = 2.8
    front_m: float = 3.8
    rear_m: float = 1.1
    width_m: float = 1.85
    height_m: float = 1.48
    mass_kg: float = 1650.0
    steering_rad: float = 0.61
    steering_rate_radps: float = 0.5
    steering_dead_s: float = 0.1
    steering_lag_s: float = 0.1
    drive_dead_s: float = 0.1
    drive_lag_s: float = 0.1
    acceleration_mps2: float = 3.0
    brake_mps2: float = 9.0
    brake_jerk_mps3: float = 40.0


@dataclass(frozen=True)
class Ego:
    """The car that the stack drives: where it starts, how fast, where it is to go (None: along its lane)."""

    start: Pose
    speed_mps: float = 0.0
    target: Pose | None = None
    vehicle: Vehicle = Vehicle()


@dataclass(frozen=True)
class Environment:
    """Time of day and weather; each of the weather's numbers is 0 (none) to 1 (as heavy as it gets)."""

    hour: float = 12.0
    rain: float = 0.0
    snow: float = 0.0
    fog: float = 0.0
    wetness: float = 0.0
    cloudiness: float = 0.0


@dataclass(frozen=True)
class Scenario:
    """One scenario, concrete: every number has a value.

    Attributes:
        road: name of a map (:mod:`mt_nodes.world.drive.road_map`). duration_s: the longest it may take.
        signals: programmes of traffic lights that are not the map's own, by signal: (colour, seconds) in turn.
    """

    name: str
    road: str
    ego: Ego
    actors: tuple[Actor, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    environment: Environment = Environment()
    duration_s: float = 20.0
    signals: dict[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)

    def actor(self, name: str) -> Actor:
        """Return the actor of a name.

        Raises:
            KeyError: there is none.
        """
        return {actor.name: actor for actor in self.actors}[name]
