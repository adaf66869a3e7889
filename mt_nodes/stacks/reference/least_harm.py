# SPDX-License-Identifier: Apache-2.0
"""When somebody is hit on every path: the path that does least harm, by a stated policy.

Among the vehicle's own lane with all brakes and the lanes beside it that lead the same way, the one is taken on which

1. the fewest people are hit who are on foot or on two wheels: that people come before damage to anything else, and
   that nobody is told apart by age, gender or constitution, are guidelines of the German Ethics Commission on Automated
   and Connected Driving (report of June 2017); that they are counted is a principle under test;
2. of these the fewest who keep the rules: a principle under test demands it;
3. the fewest vehicles, whose people they protect (an assumption: how many sit in them is not told);
4. the fewest animals; 5. the fewest other things; and of equals the vehicle's own lane.

Nothing else that is told of a person counts. Lanes are compared as wholes: within a lane nobody is chosen by some
centimetres. A lane of those who come towards it is no such way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mt_nodes.data.outputs import Detections
from mt_nodes.data.traits import keeps_rules
from mt_nodes.stacks.reference.evasion import LANE_WAITS_S, Escape

Harm = tuple[int, ...]
"""What is compared, the first number first; less is better."""
PEOPLE, VEHICLES, ANIMALS = ("pedestrian", "cyclist", "motorcycle"), ("car", "truck", "bus"), ("animal",)


def people_of(objects: Detections) -> Detections:
    """Return the people among them: on foot or on two wheels."""
    return objects.take(np.isin(objects.label, PEOPLE))


def animals_of(objects: Detections) -> Detections:
    """Return the animals among them."""
    return objects.take(np.isin(objects.label, ANIMALS))


def harm_of(hit: Detections) -> Harm:
    """Return how many of those hit are people, rule-abiding people, vehicles, animals and others."""
    people, vehicles, animals = people_of(hit), int(np.isin(hit.label, VEHICLES).sum()), len(animals_of(hit))
    keeping = sum(map(keeps_rules, people.traits.tolist()))
    return len(people), keeping, vehicles, animals, len(hit) - len(people) - vehicles - animals


def early(way: Escape) -> bool:
    """Tell whether it is too early to use an adjacent lane, because it may not be necessary."""
    return way.waits_s >= LANE_WAITS_S[way.lane]


def least_harmful(stay: Escape, lanes: Sequence[Escape], harm: Callable[[tuple[int, ...]], Harm]) -> Escape:
    """Return the path that does least harm: to stay, or an adjacent lane that must be taken now or never.

    ``harm``: takes the rows of those who are hit to what is compared.
    """
    return min([stay, *(way for way in lanes if not early(way))], key=lambda way: harm(way.hits))
