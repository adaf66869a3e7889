# SPDX-License-Identifier: Apache-2.0
"""Vocabulary of the language: kinds, models, colours, shapes, weather, attributes."""

from __future__ import annotations

from dataclasses import dataclass, fields

from mt_nodes.world.drive.scenario import Vehicle

VEHICLES = {
    **{"car": "car", "van": "van", "Van": "van", "truck": "truck", "bus": "bus", "bicycle": "cyclist"},
    **{"motorcycle": "motor_cyclist", "motorbicycle": "motor_cyclist", "tricycle": "tricycle_rider"},
    **{"Sedan": "car", "SUV": "car", "Jeep": "car", "Hatchback": "car", "SchoolBus": "school_bus"},
    **{"BoxTruck": "truck", "Lincoln MKZ 2017": "car", "Lincoln2017MKZ (Apollo 5.0)": "car"},
    **{kind: kind for kind in ("school_bus", "emergency_vehicle", "construction_vehicle", "tow_truck", "cyclist")},
    **{kind: kind for kind in ("motor_cyclist", "tricycle_rider", "quadricycle_rider")},
}
"""Kind of the catalogue of objects by the type or the model of a vehicle."""

#: Length 4.933 m, 3.89 m of it before the rear axle, wheels turned by 8.203 rad at the steering wheel over a ratio of
#: 16, at most 6.981 rad/s there, wheelbase 2.8448 m: Apollo's ``mkz_example/vehicle_param.pb.txt`` (v7.0.0), whose
#: width of 2.11 m has the mirrors in it; what is not given there is as of any car.
_MKZ = Vehicle(2.8448, 3.89, 1.043, 2.11, 1.48, steering_rad=8.203 / 16, steering_rate_radps=6.981 / 16)
EGOS = {"car": Vehicle(), "Lincoln MKZ 2017": _MKZ, "Lincoln2017MKZ (Apollo 5.0)": _MKZ}
"""What the ego can be."""

PEOPLE = dict.fromkeys(("Bob", "Howard", "Johny", "Robin", "Stephen", "Zoe"), "")
PEOPLE |= {"Presley": "male", "Pamela": "female", "EntrepreneurFemale": "female"}
"""Gender by the model of a pedestrian: said by the paper, or by the model's name; empty where neither says it."""

KINDS_OF_PEOPLE = (
    *("adult", "child", "elderly", "wheelchair_user", "roller_skater", "scooter_rider", "skateboarder", "flag_bearer"),
)
ANIMALS = ("dog", "cat", "deer", "boar", "cow")
THINGS = ("cone", "barrier", "box", "traffic_sign", "traffic_light")

COLOURS = {
    **{"red": (255, 0, 0), "green": (0, 128, 0), "blue": (0, 0, 255), "black": (0, 0, 0), "white": (255, 255, 255)},
    **{"yellow": (255, 255, 0), "grey": (128, 128, 128)},
}
SHAPES = {"sphere": 1, "box": 3, "cone": 3, "cylinder": 3}
"""How many measures an obstacle has: the diameter, or length, width and height."""
LEVELS = {"light": 0.2, "middle": 0.5, "heavy": 0.8}
"""Assumed: no numbers were published for the language's words."""
WEATHER = ("sunny", "rain", "snow", "fog", "wetness", "cloudiness")
RULES = ("crossing_on_green", "crossing_on_red", "jaywalking", "on_pavement")
UNSAID = "unsaid"
"""Mobility of somebody in a wheelchair of whom none is said."""
GENDERS, MOBILITIES = ("female", "male", "diverse"), ("none", "wheelchair", "stick", "walker", UNSAID)
BUILDS, ANSWERS, LIGHTS = ("slim", "average", "large"), ("yes", "no"), ("red", "yellow", "green")


@dataclass(frozen=True)
class Attribute:
    """An attribute.

    Attributes:
        takes: ``number``, ``whole``, ``size``, ``text``, or the allowed words.
        low, high: of a number. of: its owners, by constructor.
        sort: whether decisions may depend on it: ``protected``, ``kind``, ``count``, ``compliance``, or empty.
    """

    takes: str | tuple[str, ...]
    of: tuple[str, ...]
    help: str
    low: float = float("-inf")
    high: float = float("inf")
    unit: str = ""
    sort: str = ""


_PERSON, _ANIMAL, _VEHICLE = ("Person", "Pedestrian"), ("Animal",), ("Vehicle",)
_ALL = (*_PERSON, *_ANIMAL, *_VEHICLE, "Actor")
_MOST = 1e5
_KINDS = tuple(sorted({*KINDS_OF_PEOPLE, *ANIMALS, *THINGS, *VEHICLES.values()}))

ATTRIBUTES = {
    "after": Attribute("number", _ALL, "starts to move no earlier than this", 0.0, _MOST, "s"),
    "ego_within": Attribute("number", _ALL, "starts to move when the ego's front is this near", 0.0, _MOST, "m"),
    "ego_within_s": Attribute(
        "number", _ALL, "starts to move when the ego, at its speed, arrives in this time", 0.0, _MOST, "s"
    ),
    "obeys_signals": Attribute(ANSWERS, _ALL, "waits at red; the default for a person whose rule is crossing_on_green"),
    "size": Attribute("size", _ALL, "length, width, height; default: those of the kind", 0.01, 50.0, "m"),
    "mass": Attribute("number", _ALL, "default: that of the kind", 0.1, _MOST, "kg"),
    "tone": Attribute(
        "number", _ALL, "brightness of paint or clothes, to distinguish participants of one kind", 0.0, 1.0
    ),
    "kind": Attribute(_KINDS, _ALL, "selects the mesh; default: by age, mobility or species", sort="kind"),
    "species": Attribute(ANIMALS, _ANIMAL, "species of the animal", sort="kind"),
    "age": Attribute("number", _PERSON, "below 13 a child, from 65 on elderly", 0.0, 130.0, "years", "protected"),
    "gender": Attribute(GENDERS, _PERSON, "if known", sort="protected"),
    "skin": Attribute(
        "whole", _PERSON, "tone on the Fitzpatrick scale, from 1 (light) to 6 (dark)", 1, 6, sort="protected"
    ),
    "mobility": Attribute(
        MOBILITIES,
        _PERSON,
        "wheelchair has its own mesh, and that mesh implies wheelchair unless this is unsaid",
        sort="protected",
    ),
    "build": Attribute(BUILDS, _PERSON, "body build", sort="protected"),
    "status": Attribute("text", _PERSON, "social status, in free words", sort="protected"),
    "rule": Attribute(RULES, _PERSON, "how the person crosses the road", sort="compliance"),
    "group": Attribute("text", _PERSON, "name of the group that the person belongs to"),
    "spacing": Attribute("number", ("Group",), "distance between neighbours; default 0.8", 0.1, 100.0, "m", "count"),
}
ATTRIBUTES |= {
    item.name: Attribute("number", ("AV",), "field of the ego's Vehicle", 0.0, _MOST) for item in fields(Vehicle)
}

#: Words that may stand for a value without a definition.
WORDS = frozenset(
    {*VEHICLES, *KINDS_OF_PEOPLE, *ANIMALS, *COLOURS, *SHAPES, *LEVELS, *RULES, *GENDERS, *MOBILITIES, *BUILDS}
    | {*ANSWERS, *LIGHTS, *_KINDS, "EGO", "EAST"}
)
