# SPDX-License-Identifier: Apache-2.0
"""A scenario: road, actors, times; plain data from which a world is made.

Frame ``map``: x east, y north, metres; yaw counter-clockwise from x, radians; time in seconds from the start. The pose
of an actor is that of its centre on the ground; that of the ego is ``base_link``: the centre of the rear axle, on the
ground.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PROTECTED = ("age_years", "gender", "skin_tone", "mobility", "build", "status")
"""Attributes of a person that no decision may depend on."""


@dataclass(frozen=True)
class Pose:
    """A place on the ground, and a heading."""

    x_m: float
    y_m: float
    yaw_rad: float = 0.0


@dataclass(frozen=True)
class Waypoint:
    """A place to go to, in a straight line from the previous one, and the speed on the way there."""

    x_m: float
    y_m: float
    speed_mps: float


@dataclass(frozen=True)
class Trigger:
    """When an actor begins to move: as soon as all given conditions hold; without any, at once.

    ``after_s``: time since the start. ``ego_within_m``: distance of the ego's front. ``ego_within_s``: time in which
    the ego at its present speed would cover the distance.
    """

    after_s: float = 0.0
    ego_within_m: float | None = None
    ego_within_s: float | None = None


@dataclass(frozen=True)
class Person:
    """Attributes of a person beside shape and movement; None and empty: not specified.

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
    """A body that may move.

    Attributes:
        name: unique in the scenario. kind: a name of :data:`mt_nodes.world.scene.objects.KINDS`, which gives its mesh.
        start: initial pose. speed_mps: constant speed straight ahead without waypoints, never negative.
        waypoints: its way after the trigger; it stops at the last.
        size_m: length, width, height if they differ from the kind's. mass_kg: None for the kind's own.
        tone: 0..1, varies the colour of paint or clothes.
        obeys_signals: waits at red lights (vehicles at the stop line, pedestrians at the kerb of a crossing).
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
    """A standing obstacle: ``box``, ``cone``, ``cylinder`` or ``sphere``; size_m is length, width, height."""

    name: str
    shape: str
    pose: Pose
    size_m: tuple[float, float, float]


@dataclass(frozen=True)
class Vehicle:
    """Parameters of a car; the defaults are those of a mid-size car.

    Attributes:
        front_m, rear_m: from the rear axle to the bumpers. steering_rad, steering_rate_radps: limits of its wheels.
        steering_dead_s, steering_lag_s, drive_dead_s, drive_lag_s: dead time and first-order lag of the actuators.
        acceleration_mps2: of the engine. brake_mps2: of the brakes if the road has enough grip.
        brake_jerk_mps3: rate at which brakes build up.
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
    """The car that the stack drives: start, speed, and target (None: along its lane)."""

    start: Pose
    speed_mps: float = 0.0
    target: Pose | None = None
    vehicle: Vehicle = Vehicle()


@dataclass(frozen=True)
class Environment:
    """Time of day and weather; each weather value is 0 (none) to 1 (maximum)."""

    hour: float = 12.0
    rain: float = 0.0
    snow: float = 0.0
    fog: float = 0.0
    wetness: float = 0.0
    cloudiness: float = 0.0


@dataclass(frozen=True)
class TraceClaim:
    """A claim about the trace of a drive: its place in the script, and its formula, without names of the script."""

    line: int = field(compare=False)
    column: int = field(compare=False)
    formula: str


EGO_NAME = "ego"
"""What conditions of events call the ego."""


@dataclass(frozen=True)
class EventCondition:
    """A condition under which an event begins.

    Attributes:
        quantity: ``time_s`` since the start; of two, between middles, ``distance_m``, ``headway_s`` at the speed of the
            first, ``ttc_s`` at which they close in; ``place_m`` from a place; ``speed_mps``, ``acceleration_mps2``,
            ``travelled_m``, ``standing_s`` of one; ``begun`` and ``ended``: all of some events have; ``light``: one
            shows a colour.
        of, to: names of those it is about; ``ego`` for the ego. rule: ``<``, ``>`` or ``=``. value: compared with it.
        less_m: taken off the distance of two, for what lies between their middles and bumpers.
        names: of events, or of the light. colour: of the light.
        edge: it must have become true (``rising``), false (``falling``) or either (``risingOrFalling``) just then;
            ``none``: it is true.
        delay_s: so much later.
    """

    quantity: str
    of: str = ""
    to: str = ""
    rule: str = "<"
    value: float = 0.0
    less_m: float = 0.0
    place: Pose | None = None
    names: tuple[str, ...] = ()
    colour: str = ""
    edge: str = "none"
    delay_s: float = 0.0


@dataclass(frozen=True)
class StoryEvent:
    """What an actor does, or a light shows, from a moment on; once.

    Attributes:
        when: groups of conditions, of which one must hold as a whole; none: at once.
        actor: whose speed and way it is; empty for lights alone.
        speed_mps: its new speed, times ``factor`` that of ``relative_to`` is added; None: as before. continuous: and so
            from then on, whatever the other one does.
        aside_m: how far to the left of its way it goes from then on; None: as before.
        over: how long it takes: ``over_unit`` is s, m (driven meanwhile) or rate (m/s², m/s aside). 0: at once.
        shape: how it goes aside: linear, sinusoidal, cubic or step.
        lights: colours, by signal.
    """

    name: str
    when: tuple[tuple[EventCondition, ...], ...] = ()
    actor: str = ""
    speed_mps: float | None = None
    relative_to: str = ""
    factor: float = 1.0
    continuous: bool = False
    aside_m: float | None = None
    over: float = 0.0
    over_unit: str = "s"
    shape: str = "linear"
    lights: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """A concrete scenario: every number has a value.

    Attributes:
        road: name of a map (:mod:`mt_nodes.world.drive.road_map`). duration_s: the longest duration.
        signals: programmes of traffic lights that replace the map's own, by signal: (colour, seconds) in turn.
        claims: what is claimed of a drive through it; it changes nothing about the drive.
        events: what actors and lights do besides, from moments on that depend on the drive.
    """

    name: str
    road: str
    ego: Ego
    actors: tuple[Actor, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    environment: Environment = Environment()
    duration_s: float = 20.0
    signals: dict[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    claims: tuple[TraceClaim, ...] = ()
    events: tuple[StoryEvent, ...] = ()

    def actor(self, name: str) -> Actor:
        """Return the actor of a name. Raises KeyError: there is none."""
        return {actor.name: actor for actor in self.actors}[name]
