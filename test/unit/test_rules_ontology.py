# SPDX-License-Identifier: Apache-2.0
"""The ontology: every term of both regions is there, every element and behaviour is bound; users extend it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mt_nodes.base.errors import UsageError
from mt_nodes.base.plugins import name_of
from mt_nodes.base.resources import config_dir
from mt_nodes.relations.manipulations import find, manipulations
from mt_nodes.rules import grammar
from mt_nodes.rules.grammar import read_grammar
from mt_nodes.rules.nouns import nouns_in
from mt_nodes.rules.ontology import REGIONS, load_ontology
from mt_nodes.rules.statement import ADDS, Statement

ONTOLOGY = load_ontology()

#: The terms of AutoMT's ontologies (arXiv 2510.19438, tables 1 and 2 of its supplement) by region, but those in
#: brackets.
TERMS = {
    "germany": """
        all roads; intersection; port area; field path; forest path; footpath; bicycle path; industrial area;
        residential area; pedestrian zone; tunnel; level crossing; motorway; hard shoulder; St Andrew's cross sign; bus
        stop sign; start of 30 km/h zone sign; maximum speed limit sign; no entry sign; prohibition for motor vehicles
        sign; prohibition for vehicles of all kinds sign; warning signs; right-of-way regulation signs; stop sign; yield
        sign; pedestrian crossing marking; lane markings; traffic island; reflective posts; traffic light; guardrail;
        chevron signs; distance markers; overhead signage; red light; yellow light; green light; stopped vehicle;
        oncoming vehicle; turning vehicle; rail vehicle; public transport bus; school bus; line bus; motor vehicle;
        multi-track motor vehicle; pedestrian; bicycle; bicycle with auxiliary motor; electric micro-vehicle; passenger;
        driver in front; vehicle behind; railway employee with flag; obstacle on the road; road narrowing; emergency
        vehicle; tractor; horse-drawn vehicle; trailer; animal; dog; deer; child; blind pedestrian; person with limited
        mobility; skater/scooter rider; police officer; construction worker; overhanging load; vehicle convoy; fog;
        snowfall; rain; black ice; strong wind; glare from sun; poor visibility; night driving
    """,
    "california": """
        all roads; intersections; crosswalks; school zones; unmarked crosswalk; work zone; alleys; on-ramps; off-ramps;
        freeways; railroad crossings; roundabouts; red light; yellow light; green light; red arrow; green arrow; STOP
        sign; YIELD sign; 5-sided sign; warning signs; crosswalk markings; limit lines; bike lanes; center left turn
        lanes; flashing red light; flashing yellow light; no U-turn sign; wrong way sign; do not enter sign; speed limit
        signs; HOV lanes; ramp meter signals; shared lane markings; solid yellow lines; reflective road markers;
        crossbuck; pedestrian signal indicators; raised pavement markers; work zone sign; other vehicle; emergency
        vehicle; tow truck; road work vehicle; pedestrian; person using roller skates; person using a skateboard; person
        with a disability using a wheelchair; person with a disability using a tricycle; person with a disability using
        a quadricycle; child; senior; person with small children; bicyclist; heavy traffic; motorcyclist; animals; deer;
        dogs; traffic officer; flaggers; escorted school children; school patrol; crossing guard; school bus; collision;
        livestock; obstacle; traffic break; person traveling on bicycle; guide dog user; rain; snow; mud; ice; wet road;
        fog; heavy smoke; high winds; low lighting; sun glare; flooded roads; dust storms; black ice; potholes; loose
        gravel; drizzle; slippery road
    """,
}


@pytest.mark.parametrize("region", TERMS)
def test_every_term_of_both_regions_is_known(region: str) -> None:
    for term in (" ".join(term.split()) for term in TERMS[region].split(";")):
        if term == "all roads":
            assert region in ONTOLOGY.roads["any_road"].regions
            continue
        nouns = nouns_in(ONTOLOGY.lexicon.tokens(term), ONTOLOGY)
        named = [*(one.element for one in nouns.things), *(one.road for one in nouns.places)]
        assert any(region in one.regions for one in named), (term, [one.name for one in named])


def test_every_element_is_bound_or_says_why_not() -> None:
    shown = 0
    for element in ONTOLOGY.elements.values():
        for region in ("", *REGIONS):
            if gap := element.gap(region):
                assert len(gap) > 10, element.name
            else:
                assert find(element.manipulation_for(region)).mutations(), element.name
                shown += 1
    assert shown > 3 * 90


def test_every_manipulation_that_is_bound_can_be_asked_for() -> None:
    told = {name: repr(one.mutate) for name, one in manipulations().items() if one.mutate}
    asked = {
        told.get(element.manipulation_for(region))
        for element in ONTOLOGY.elements.values()
        for region in ("", *REGIONS)
    }
    # Variants of those that differ by a number, or by where the same thing stands.
    assert {name for name, one in told.items() if one not in asked} <= {
        "maximum_speed_50_sign",
        "maximum_speed_100_sign",
        "speed_limit_65_sign",
        "pedestrian_on_road",
        "person_walking",
        "emergency_vehicle_ahead",
        "flashing_lights_vehicle",
        "road_obstacle",
        "low_sun",
    }


def test_every_behaviour_is_bound_to_a_check_of_its_own() -> None:
    checks = {name: name_of(type(one.make_check())) for name, one in ONTOLOGY.behaviours.items()}
    assert checks == {
        "slow_down": "slows_down",
        "keep_current": "keeps_current",
        "turn_left": "turns_left",
        "turn_right": "turns_right",
        "stop": "stops",
        "give_way": "slows_down",
        "keep_distance": "slows_down",
        "stay_behind": "stays_behind",
        "start_moving": "starts_moving",
    }


def test_signs_have_the_form_of_their_region() -> None:
    element = ONTOLOGY.elements["yield_sign"]
    assert [element.manipulation_for(region) for region in REGIONS] == ["yield_sign", "yield_sign_us"]
    assert element.manipulation_for("elsewhere") == "yield_sign"


def test_users_add_words_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        "roads: {ferry_ramp: {says: [ferry ramp]}}\n"
        "objects: {moose: {says: [moose, elk], manipulation: deer}}\n"
        "behaviours: {slow_down: {check: {slows_down: {by_at_least_mps: 2.0}}, says: [creep]}}\n"
    )
    own = load_ontology(path)
    assert own.elements["moose"].verb == ADDS
    assert own.behaviours["slow_down"].make_check() != ONTOLOGY.behaviours["slow_down"].make_check()
    assert "moose" not in ONTOLOGY.elements
    named = nouns_in(own.lexicon.tokens("a moose on the ferry ramp"), own)
    assert ([one.element.name for one in named.things], [one.road.name for one in named.places]) == (
        ["moose"],
        ["ferry_ramp"],
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("object: {}", "unknown key 'object'; did you mean 'objects'?"),
        ("objects: [moose]", "objects: got ['moose'], expected a mapping"),
        ("objects: {moose: [elk]}", "objects.moose: got ['elk'], expected a mapping"),
        ("objects: {moose: {say: [elk]}}", "unknown key 'say'; did you mean 'says'?"),
        ("objects: {deer: {says: elk}}", "objects.deer.says: got 'elk', expected a list of texts"),
        ("objects: {moose: {manipulation: dear}}", "no manipulation 'dear'; did you mean 'deer'?"),
        ("objects: {moose: {manipulation: {bavaria: deer}}}", "unknown key 'bavaria'"),
        ("objects: {moose: {manipulation: deer, unsupported: none}}", "expected one of them"),
        ("objects: {deer: {road: rode}}", "deer.road: no road 'rode'"),
        ("objects: {deer: {crossing: rode}}", "deer.crossing: no road 'rode'"),
        ("objects: {deer: {asks: stopp}}", "deer.asks: no behaviour 'stopp'; did you mean 'stop'?"),
        ("objects: {deer: {bare: animal}}", "deer.bare: got 'animal', expected a list of texts"),
        ("roads: {port: {area: 1}}", "port.area: got 1, expected true or false"),
        ("objects: {deer: {needs: darkk}}", "deer.needs: no predicate 'darkk'; did you mean 'dark'?"),
        ("objects: {deer: {weak: 1}}", "deer.weak: got 1, expected true or false"),
        ("objects: {deer: {road: 3}}", "deer.road: got 3, expected a text"),
        ("roads: {port: {marked_by: ship}}", "port.marked_by: no element 'ship'"),
        ("behaviours: {hop: {says: [hop]}}", "hop.check: got 0 checks, expected one"),
        ("behaviours: {hop: {check: slows_dwn}}", "no check 'slows_dwn'; did you mean 'slows_down'?"),
        ("behaviours: {hop: {check: stops, reads_as: halt}}", "hop.reads_as: no behaviour 'halt'"),
        ("predicates: {late: {kind: flagg}}", "late.kind: got 'flagg', expected flag, number, name"),
        ("words: {car: auto}", "words.car: got 'auto', expected a list of texts"),
    ],
)
def test_errors_say_file_key_and_what_to_do(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as error:
        load_ontology(path)
    assert told in str(error.value) and str(path) in str(error.value)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (Statement("moon", ADDS, "red_light", "slow_down"), "no road 'moon'"),
        (Statement("any_road", ADDS, "red_ligt", "slow_down"), "no element 'red_ligt'; did you mean 'red_light'?"),
        (Statement("any_road", ADDS, "red_light", "yield"), "no behaviour 'yield'"),
        (Statement("any_road", ADDS, "fog", "slow_down"), "got 'adds fog', expected 'replaces'"),
        (Statement("any_road", ADDS, "dog", "slow_down", condition="drak"), "no predicate 'drak'"),
    ],
)
def test_words_that_nobody_knows_are_refused(statement: Statement, told: str) -> None:
    with pytest.raises(UsageError, match="here") as error:
        ONTOLOGY.refuse_unknown(statement, "here")
    assert told in str(error.value)


GRAMMAR_TEXT = config_dir().joinpath("ontology", "grammar.yaml").read_text()


def test_every_list_of_the_grammar_is_used() -> None:
    source = "".join(path.read_text() for path in Path(grammar.__file__).parent.glob("*.py"))
    used = set(re.findall(r'\b(?:words|replacements)\("(\w+)"\)', source))
    assert used == set(read_grammar(config_dir() / "ontology" / "grammar.yaml"))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("passes: [overtake, pass]", "passes: overtake", "grammar.passes: got 'overtake', expected a list of texts"),
        ('denials: ["no", without]', "denials: [no, without]", "grammar.denials: got [False, 'without'], expected"),
        ("passes: [overtake, pass]", "passes: [pass, pass]", "passes: got 'pass' twice, expected it once"),
        ("contractions:\n", "contractions: []\nlists:\n", "contractions: got [], expected a mapping"),
    ],
)
def test_errors_of_the_grammar_say_list_and_what_to_do(before: str, after: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "grammar.yaml"
    path.write_text(GRAMMAR_TEXT.replace(before, after))
    with pytest.raises(UsageError) as error:
        read_grammar(path)
    assert f"{path}: {expected}" in str(error.value)


def test_a_list_that_the_grammar_lacks_is_named() -> None:
    with pytest.raises(UsageError, match="no list 'passe'; did you mean 'passes'"):
        grammar.words("passe")
