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
ANIMALS = ("dog", "deer", "boar", "cow")
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
    "after": Attribute("number", _ALL, "moves no sooner than this", 0.0, _MOST, "s"),
    "ego_within": Attribute("number", _ALL, "moves when the ego's front is so near", 0.0, _MOST, "m"),
    "ego_within_s": Attribute(
        "number", _ALL, "moves when the ego needs so long to come, at its speed", 0.0, _MOST, "s"
    ),
    "obeys_signals": Attribute(ANSWERS, _ALL, "waits at red; a person whose rule is crossing_on_green does"),
    "size": Attribute("size", _ALL, "length, width, height, else those of the kind", 0.01, 50.0, "m"),
    "mass": Attribute("number", _ALL, "else that of the kind", 0.1, _MOST, "kg"),
    "tone": Attribute("number", _ALL, "of paint or clothes, tells things of one kind apart", 0.0, 1.0),
    "kind": Attribute(_KINDS, _ALL, "whose mesh it has; else by age, mobility or species", sort="kind"),
    "species": Attribute(ANIMALS, _ANIMAL, "which animal", sort="kind"),
    "age": Attribute("number", _PERSON, "a child below 13, elderly from 65 on", 0.0, 130.0, "years", "protected"),
    "gender": Attribute(GENDERS, _PERSON, "as far as said", sort="protected"),
    "skin": Attribute("whole", _PERSON, "tone on Fitzpatrick's scale, 1 light to 6 dark", 1, 6, sort="protected"),
    "mobility": Attribute(
        MOBILITIES,
        _PERSON,
        "wheelchair has a mesh of its own, and who has that is said to be in one unless unsaid",
        sort="protected",
    ),
    "build": Attribute(BUILDS, _PERSON, "of the body", sort="protected"),
    "status": Attribute("text", _PERSON, "social status, as one may put it", sort="protected"),
    "rule": Attribute(RULES, _PERSON, "how they cross", sort="compliance"),
    "group": Attribute("text", _PERSON, "of people who belong together"),
    "spacing": Attribute("number", ("Group",), "from one to the next, else 0.8", 0.1, 100.0, "m", "count"),
}
ATTRIBUTES |= {
    item.name: Attribute("number", ("AV",), "of the ego, as in its Vehicle", 0.0, _MOST) for item in fields(Vehicle)
}

#: Words that may stand for a value without a definition.
WORDS = frozenset(
    {*VEHICLES, *KINDS_OF_PEOPLE, *ANIMALS, *COLOURS, *SHAPES, *LEVELS, *RULES, *GENDERS, *MOBILITIES, *BUILDS}
    | {*ANSWERS, *LIGHTS, *_KINDS, "EGO", "EAST"}
)
