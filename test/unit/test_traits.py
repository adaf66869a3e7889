# SPDX-License-Identifier: Apache-2.0
"""What is told of a person: as a text, by a world, and over a topic and back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from looped import standing, street
from told_worlds import people, told_bundle

from mt_nodes.data.cdr.wire import wires_of_bundle
from mt_nodes.data.outputs import Detections
from mt_nodes.data.traits import VIOLATING, keeps_rules, text_of, trait
from mt_nodes.engine import message_digests
from mt_nodes.nodes.adapters.marker_adapters import MarkerArrayObstacles
from mt_nodes.nodes.message_classes import decode
from mt_nodes.runs.moral import dilemma
from mt_nodes.world.drive.maps import load_map
from mt_nodes.world.drive.scenario import Person
from mt_nodes.world.drive.teller import Teller
from mt_nodes.world.drive.world import World


def test_only_what_is_said_is_told_and_without_blanks_in_a_value() -> None:
    told = text_of({"age_years": 7.0, "gender": "", "skin_tone": None, "build": "tall  and thin", "status": "a=b"})
    assert told == "age_years=7 build=tall_and_thin status=a=b"
    assert text_of({"age_years": 7.5}) == "age_years=7.5" and text_of({}) == ""
    assert trait([told, ""], "build") == ["tall_and_thin", ""] and trait([told], "status") == ["a=b"]


def test_rules_are_broken_only_by_those_of_whom_it_is_said() -> None:
    assert VIOLATING == dilemma.VIOLATING
    assert [keeps_rules(f"compliance={how}") for how in VIOLATING] == [False, False]
    assert keeps_rules("") and keeps_rules("compliance=crossing_on_green") and keeps_rules("status=jaywalking")


def test_a_world_tells_of_each_person_what_its_scenario_says() -> None:
    who = {"a": Person(age_years=7.0, skin_tone=5, compliance="jaywalking"), "b": Person(), "c": None}
    scenario = street(*(replace(standing(name, 40.0 + i, 0.0), person=p) for i, (name, p) in enumerate(who.items())))
    found = Teller(scenario, load_map("straight")).objects(World(scenario).state, 1, np.random.default_rng(0))
    told = dict(zip(found.track_id.tolist(), found.traits.tolist(), strict=True))
    assert told == {"a": "age_years=7 skin_tone=5 compliance=jaywalking", "b": "", "c": ""}


def some(*traits: str) -> Detections:
    seen = people(*((10.0 + i, 0.5, 0.0, 0.0) for i in range(len(traits))))
    return replace(seen, traits=np.array(traits, dtype=np.str_))


@pytest.mark.parametrize("traits", [("age_years=7 compliance=crossing_on_red", ""), ("status=a=b",), ("", "")])
def test_over_a_topic_the_same_is_told_as_in_process(traits: tuple[str, ...]) -> None:
    bundle = told_bundle(objects=some(*traits))
    wire = wires_of_bundle(bundle)[0]
    read = MarkerArrayObstacles().decode(decode(wire.type, wire.cdr))
    assert tuple(read.traits.tolist()) == traits
    assert read.track_id.tolist() == [f"person_{i}" for i in range(len(traits))]
    again = MarkerArrayObstacles().decode(MarkerArrayObstacles().encode(read))
    assert again.traits.tolist() == read.traits.tolist()


def test_traits_go_with_their_rows_and_into_the_hash() -> None:
    seen = some("age_years=7", "", "age_years=70")
    assert seen.take(np.array([2, 0])).traits.tolist() == ["age_years=70", "age_years=7"]
    assert Detections.make("map", None, np.zeros((2, 3))).traits.tolist() == ["", ""]
    with pytest.raises(ValueError, match="got 1 texts for 2 obstacles"):
        Detections.make("map", None, np.zeros((2, 3)), traits=["age_years=7"])
    one, other = told_bundle(objects=some("age_years=7")), told_bundle(objects=some("age_years=8"))
    assert message_digests.sha256_of(one) != message_digests.sha256_of(other)
