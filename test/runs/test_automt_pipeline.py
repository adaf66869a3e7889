# SPDX-License-Identifier: Apache-2.0
"""``mt experiment automt`` with a model for every part: reader, judge, scenes, check; and its ablations."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from automt_toys import FACTS, short_bag, toy
from model_server import Handler, completion, embeds, serving
from test_automt_asked import answer

from mt_nodes.base.jsonl import read_result
from mt_nodes.cli.main import main

ABLATIONS = ("without_retrieval", "without_self_check", "without_ontology")
#: What the reader of rules finds, by the words that name it; the judge accepts no statement about children.
THINGS = {"child": "children", "cyclist": "cyclists", "red_light": "red light"}
FACT_WORDS = [word for fact in FACTS if not fact.startswith("roads") for word in ("--fact", fact)]


def reply(body: dict[str, Any]) -> str:
    """Answer as each model of the pipeline would, told apart by the schema that it is given."""
    keys = set(body["response_format"]["json_schema"]["schema"]["properties"])
    asked = body["messages"][-1]["content"]
    if "statements" in keys:
        return json.dumps({"steps": [], "statements": list(map(statement, found_in(asked))), "why_none": "nothing"})
    if "mentioned" in keys:
        verdict = "no" if "adds child" in asked else "yes"
        return json.dumps({"mentioned": verdict, "agrees": verdict, "fits": verdict})
    if "objects" in keys:
        return json.dumps({"time_of_day": "day", "weather": "clear", "roads": ["intersection"], "objects": []})
    if "shown" in keys:
        return json.dumps(
            {"shown": "no" if "cyclist" in asked[0]["text"] else "yes", "same_place": "yes", "plausible": "yes"}
        )
    return answer(manipulation="a flying saucer" if "red light" in asked else "a cyclist")


def found_in(rule: str) -> list[tuple[str, str]]:
    found = ((element, re.search(rf"\b{words}\b", rule, re.IGNORECASE)) for element, words in THINGS.items())
    return [(element, match[0]) for element, match in found if match]


def statement(found: tuple[str, str]) -> dict[str, str]:
    element, words = found
    asks = {"behaviour": "slow_down", "behaviour_words": words, "condition": "", "place": ""}
    return {"road": "any_road", "element": element, "element_words": words, **asks}


def command(bag: Path, stack: str, rounds: int) -> list[str]:
    cases = ["--frames", "2", "--rounds", str(rounds), "--region", "germany"]
    return ["experiment", "automt", str(bag), "--stack", stack, *cases]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of two cases."""
    place = tmp_path_factory.mktemp("pipeline")
    bag, stack = short_bag(place / "bag", 4), toy(place, "obeys", slower=3.0)
    words = [
        "experiment",
        "automt",
        str(bag),
        "--stack",
        stack,
        "--frames",
        "2",
        "--rounds",
        "2",
        "--region",
        "germany",
    ]
    words += [
        *FACT_WORDS,
        "--methods",
        ",".join(("automt", *ABLATIONS)),
        "--reader",
        "m",
        "--judge",
        "j",
        "--samples",
        "1",
    ]
    words += ["--scene-model", "v", "--scene-samples", "1", "--check-model", "c", "--embed", "e", "--nearest", "40"]
    out = place / "out"

    def respond(handler: Handler) -> None:
        if handler.path.endswith("/embeddings"):
            embeds(lambda text: [1.0, float("child" in text), float("light" in text)])(handler)
        else:
            handler.send(completion(reply(handler.body)))

    with serving(respond) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("MT_LLM_URL", server.url)
        assert main([*words, "--out", str(out)]) == 3
    return read_result(out / "automt.json")


def elements(table: dict[str, Any], method: str) -> set[str]:
    return {one["statement"]["element"] for one in table["judged"] if one["method"] == method and one["statement"]}


def test_relations_are_those_that_the_reader_finds_and_the_judge_accepts(table: dict[str, Any]) -> None:
    assert elements(table, "automt") and elements(table, "automt") <= {"red_light", "cyclist"}
    assert "child" in elements(table, "without_self_check")
    own = {one["relation"] for one in table["judged"] if one["method"] == "automt"}
    assert all(name.startswith(("automt_germany_", "rule_germany_")) for name in own)


def test_without_an_ontology_words_that_nothing_shows_are_no_fair_test(table: dict[str, Any]) -> None:
    rows = [one for one in table["judged"] if one["method"] == "without_ontology"]
    assert len(rows) == 4 and all(one["told"]["rule"].startswith("DE-") for one in rows)
    unknown = [one for one in rows if one["told"]["manipulation"] == "a flying saucer"]
    assert all(one["validation"]["manipulation"]["holds"] is False for one in unknown)


def test_scenes_are_what_the_scene_model_says(table: dict[str, Any]) -> None:
    facts = table["cases"][0]["scene"]
    assert facts["roads"]["value"] == ["intersection"] and "model 'v'" in facts["roads"]["source"]


def test_what_the_check_model_does_not_see_is_no_valid_follow_up(table: dict[str, Any]) -> None:
    rows = [one for one in table["judged"] if one["relation"] and one["statement"]]
    seen = {one["statement"]["element"]: one["validation"]["manipulation"] for one in rows}
    assert "cyclist" in seen and not seen["cyclist"]["holds"] and "shown 0/3" in seen["cyclist"]["source"]
    others = [one["validation"]["manipulation"] for one in rows if one["statement"]["element"] != "cyclist"]
    assert any(one["holds"] and "model 'c': shown 3/3" in one["source"] for one in others)


def test_every_task_is_counted_by_the_model_that_did_it(table: dict[str, Any]) -> None:
    asked = {(row["task"], row["model"]): row["asked"] for row in table["usage"]}
    tasks = [("scenes", "v"), ("reading rules", "m"), ("self-check", "j"), ("reading rules in free words", "m")]
    assert set(asked) == {*tasks, ("checking follow-ups", "c")} and all(asked.values())
    assert table["not_run"] == {}


def test_ablations_have_no_figures_of_the_paper_beside_them(table: dict[str, Any]) -> None:
    region = table["regions"]["germany"]
    assert set(region["validation"]) == {"automt", *ABLATIONS} and "p" in region["validation"]["without_retrieval"]
    assert not set(ABLATIONS) & set(region["published"]["validation"])


def test_an_ablation_of_what_there_is_not_is_not_run_and_says_what_to_name(tmp_path: Path, capsys: Any) -> None:
    bag, stack = short_bag(tmp_path / "bag", 4), toy(tmp_path, "obeys", slower=3.0)
    words = [
        "experiment",
        "automt",
        str(bag),
        "--stack",
        stack,
        "--frames",
        "2",
        "--rounds",
        "1",
        "--region",
        "germany",
    ]
    out = tmp_path / "out"
    assert main([*words, "--methods", "without_self_check,without_ontology", "--out", str(out)]) == 3
    not_run = json.loads((out / "proposals.json").read_text())["not_run"]
    assert "--reader or --judge" in not_run["without_self_check"] and "--reader" in not_run["without_ontology"]
    told = capsys.readouterr().err
    assert "mt experiment automt: scenes of bag" in told
