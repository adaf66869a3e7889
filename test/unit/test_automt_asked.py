# SPDX-License-Identifier: Apache-2.0
"""The two methods that a language model carries out: what it is told, and what is made of what it says, good or bad."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from model_server import Respond, Server, refuses, says, serving
from test_automt import cut

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.relations.relation import load_relation
from mt_nodes.rules.answer_statements import BadAnswer
from mt_nodes.rules.chat import Chat
from mt_nodes.rules.model_answers import Answers
from mt_nodes.rules.model_queries import TRIES, Asker
from mt_nodes.rules.models import LanguageModel
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.rule_sets import load_rule_set
from mt_nodes.runs.automt.automt_request import AutomtRequest
from mt_nodes.runs.automt.followup_validity import CaseFollowups, validation_of
from mt_nodes.runs.automt.model_baselines import SCHEMA, Baselines, read, understood
from mt_nodes.runs.automt.own_relations import RelationShop
from mt_nodes.runs.automt.proposal_methods import model_of
from mt_nodes.runs.automt.proposals import Proposal

ONTOLOGY = load_ontology()
Ask = Callable[..., list[Proposal]]


def answer(**words: str) -> str:
    usual = {"road_type": "any road", "change": "adds", "manipulation": "a cyclist", "place": "on the road"}
    return json.dumps({**usual, "behaviour": "slow_down", "rule": "", **words})


@contextmanager
def asking(place: Path, *answers: Respond) -> Iterator[tuple[Server, Ask]]:
    """A server with some answers, and what asks it for two cases."""
    with serving(*answers) as server, Answers(place / "answers.jsonl") as kept:
        chat = Chat(LanguageModel("m", server.url, "m"), attempts=2, sleep=lambda _: None)
        made = Baselines(Asker(chat, kept), RelationShop(ONTOLOGY, ("camera", "lidar"), (), place / "relations"))

        def ask(method: str = "without_rules", region: str = "germany", rounds: int = 1) -> list[Proposal]:
            return made.proposals(method, [cut(0), cut(1)], region, rounds)

        yield server, ask


def test_a_relation_that_is_invented_is_read_written_and_can_be_run(tmp_path: Path) -> None:
    with asking(tmp_path, says(answer())) as (server, ask):
        first, second = ask()
    assert first.relation == "without_rules_germany_any_road_cyclist_on_the_road_slow_down" == second.relation
    relation = load_relation(str(tmp_path / first.file))
    assert relation.id == first.relation and relation.check is not None
    assert first.statement is not None and first.statement.element == "cyclist" and not first.lacking
    assert server.requests[0]["response_format"]["json_schema"]["schema"] == SCHEMA


def test_the_rules_are_those_of_the_region_and_the_state_of_the_ego_is_told_beside_the_scene(tmp_path: Path) -> None:
    """Public code: most of California's cases were given Germany's rules, in place of the ego's state."""
    with asking(tmp_path, says(answer(rule="CA-01"))) as (server, ask):
        ask("with_rules", "california")
        ask("with_rules", "germany")
        ask("without_rules", "germany")
    said = [[message["content"] for message in one["messages"][:2]] for one in server.requests]
    sets = {region: load_rule_set(region).rules.values() for region in ("california", "germany")}
    texts = {region: [rule.text for rule in rules] for region, rules in sets.items()}
    california, without = said[0], said[-1]
    (germany,) = [one for one in said if "traffic rules of Germany" in one[0]][:1]
    assert all(json.dumps(text, ensure_ascii=False) in california[0] for text in texts["california"])
    assert not any(text in california[0] for text in texts["germany"] if text not in texts["california"])
    assert all(json.dumps(text, ensure_ascii=False) in germany[0] for text in texts["germany"])
    assert not any(text in without[0] for text in (*texts["germany"], *texts["california"]))
    for _, user in said:
        assert "RoadType: Intersection" in user and "Speed: 60.000 km/h" in user.split("Ego-vehicle:")[1]


@pytest.mark.parametrize(
    ("words", "factor", "why"),
    [
        ({"road_type": "moon base"}, "scenario", "road 'moon base' is not of the ontology"),
        ({"manipulation": "a flying saucer"}, "manipulation", "'a flying saucer' is not of the ontology"),
        ({"manipulation": "a traffic light"}, "manipulation", "cannot be run: "),
        ({"rule": "DE-999"}, "logical", "rule 'DE-999' is none of the region's"),
    ],
)
def test_what_the_ontology_lacks_makes_a_case_invalid_and_is_no_error(
    tmp_path: Path, words: dict[str, str], factor: str, why: str
) -> None:
    rule = next(iter(load_rule_set("germany").rules))
    with asking(tmp_path, says(answer(**{"rule": rule, **words}))) as (_, ask):
        one = ask("with_rules")[0]
    assert one.relation == "" and list(one.lacking) == [factor] and one.lacking[factor].startswith(why)
    found = validation_of(one, cut(), None, ONTOLOGY)
    assert found.valid is False and getattr(found, factor).holds is False
    assert not (tmp_path / "relations").exists()


@pytest.mark.parametrize(
    ("said", "road", "element"),
    [
        ({"road_type": "Intersection", "manipulation": "red traffic light"}, "intersection", "red_light"),
        ({"road_type": "any roads", "manipulation": "heavy rain"}, "any_road", "rain"),
        ({"road_type": "near a school zone", "manipulation": "child"}, "school_zone", "child"),
    ],
)
def test_free_words_are_read_as_the_ontology_names_them(said: dict[str, str], road: str, element: str) -> None:
    statement, lacking = understood(json.loads(answer(**said)), ONTOLOGY)
    assert statement is not None and (statement.road, statement.element) == (road, element) and not lacking
    assert statement.verb == ONTOLOGY.elements[element].verb
    assert statement.place == ("on the road" if element == "child" else "")


@pytest.mark.parametrize(
    "bad",
    [
        "Slow down!",
        "[1]",
        json.dumps({"road_type": "any road"}),
        answer(behaviour="stop the car"),
        answer(change="removes"),
        answer(manipulation="x" * 300),
    ],
)
def test_what_is_no_answer_is_asked_for_again_with_what_is_wrong(tmp_path: Path, bad: str) -> None:
    with pytest.raises(BadAnswer):
        read(bad)
    with asking(tmp_path, says(bad), says(answer())) as (server, ask):
        first = ask()[0]
    assert first.relation and "cannot be taken" in server.requests[1]["messages"][-1]["content"]


def test_who_never_answers_well_has_cases_that_are_not_valid(tmp_path: Path) -> None:
    with asking(tmp_path, says("no")) as (server, ask):
        first = ask()[0]
    assert first.relation == "" and first.statement is None and "no answer passed" in first.lacking["logical"]
    assert validation_of(first, cut(), None, ONTOLOGY).valid is False
    assert len(server.requests) == TRIES  # of two cases that look alike


def test_each_round_is_asked_anew_and_nothing_twice(tmp_path: Path) -> None:
    with asking(tmp_path, says(answer())) as (server, ask):
        found = ask(rounds=2)
        assert [one.round for one in found] == [0, 0, 1, 1]
        # Two cases look alike, so each round asks once.
        asked = len(server.requests)
        assert asked == 2 and ask(rounds=2) == found and len(server.requests) == asked


def test_a_server_that_gives_nothing_ends_the_run_and_what_was_answered_is_kept(tmp_path: Path) -> None:
    with (
        asking(tmp_path, refuses(503)) as (_, ask),
        pytest.raises(InfrastructureError, match="no answer in 2 attempts"),
    ):
        ask()
    with asking(tmp_path, says(answer())) as (_, ask):
        assert ask()[0].relation


def test_a_relation_of_a_model_is_validated_like_any_other(tmp_path: Path) -> None:
    with asking(tmp_path, says(answer(manipulation="speed limit sign"))) as (_, ask):
        one = ask()[0]
    made = CaseFollowups((0, 1, 2), 5)
    assert validation_of(one, cut(), made, ONTOLOGY).valid is True
    assert validation_of(one, cut(speed_kmh=20.0), made, ONTOLOGY).logical.holds is False


def test_one_model_is_asked_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_LLM_URL", "http://localhost:1/v1")
    file = tmp_path / "models.yaml"
    file.write_text("models: {a: {url: 'http://localhost:1/v1'}, b: {url: 'http://localhost:1/v1'}}")

    def named(**asked: Any) -> str | None:
        found = model_of(AutomtRequest(**asked))
        return found.name if found else None

    assert named() is None
    assert named(models=("mine",)) == "mine"
    assert named(models=("b",), models_file=str(file)) == "b"
    for wrong in ({"models_file": str(file)}, {"models": ("c",), "models_file": str(file)}, {"models": ("a", "b")}):
        with pytest.raises(UsageError, match="expected one"):
            named(**wrong)
