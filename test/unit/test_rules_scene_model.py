# SPDX-License-Identifier: Apache-2.0
"""What a vision-language model sees: what it is shown, which answers count, and what its facts are worth."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from model_server import Respond, forms, needs_openai, refuses, says, serving

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.cli.main import main
from mt_nodes.data.bags.bundles import write_bundles
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.relations.facts.scene_facts import Facts
from mt_nodes.rules.answer_statements import BadAnswer
from mt_nodes.rules.chat import Chat
from mt_nodes.rules.model_answers import Answers
from mt_nodes.rules.model_queries import TRIES, Asker
from mt_nodes.rules.models import LanguageModel
from mt_nodes.rules.ontology import load_ontology
from mt_nodes.rules.scene import describe, given
from mt_nodes.rules.scene_by_model import SceneReader, answer_schema, read_answer

pytestmark = needs_openai

ONTOLOGY = load_ontology()
SEEN = {
    "time_of_day": "dusk",
    "weather": "rain",
    "roads": ["tunnel", "intersection"],
    "objects": [{"name": "dog", "count": 1}, {"name": "pedestrian", "count": 2}],
}
BY_NIGHT = {**SEEN, "time_of_day": "night"}


def frame(index: int, level: int = 40, size: tuple[int, int] = (60, 80)) -> Bundle:
    """A frame whose picture, a little red, is too dark for day, and too bright for night."""
    pixels = np.full((*size, 3), level + 20 * index + np.array([0, 0, 10]), np.uint8)
    return Bundle(0, index, index * 10**8, images=(Image("/camera", index * 10**8, "camera", pixels, "bgr8"),))


FRAMES = [frame(index) for index in range(3)]


def says_so(**other: Any) -> Respond:
    return says(json.dumps({**SEEN, **other}))


def look(url: str, path: Path, bundles: Sequence[Bundle] = FRAMES, **more: Any) -> Facts:
    chat = Chat(LanguageModel("eyes", url, "m"), 2, sleep=lambda seconds: None)
    with Answers(path) as answers:
        return SceneReader(Asker(chat, answers), ONTOLOGY, **more)(bundles)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers.jsonl"


def shown(body: dict[str, Any]) -> list[Any]:
    """The pictures of a request."""
    urls = [part["image_url"]["url"] for part in body["messages"][1]["content"] if part["type"] == "image_url"]
    assert all(url.startswith("data:image/jpeg;base64,") for url in urls)
    data = [np.frombuffer(base64.b64decode(url.partition(",")[2]), np.uint8) for url in urls]
    return [cv2.imdecode(one, cv2.IMREAD_COLOR) for one in data]


def test_the_reference_frame_is_shown_and_what_is_seen_is_asked_for_once(path: Path) -> None:
    with serving(says_so()) as server:
        facts = look(server.url, path)
        assert {name: fact.value for name, fact in facts.items()} == {
            "time_of_day": "dusk",
            "weather": "rain",
            "roads": ("intersection", "tunnel"),
            "objects": {"pedestrian": 2, "dog": 1},
        }
        assert {fact.source for fact in facts.values()} == {"model 'eyes' by the picture, 3 of 3 answers"}
        assert look(server.url, path) == facts and len(server.requests) == 3
    body = server.requests[0]
    (picture,) = shown(body)
    assert picture.shape == (60, 80, 3) and np.allclose(picture.mean(axis=(0, 1)), (60, 60, 70), atol=3), "the middle"
    assert body["messages"][1]["content"][0] == {"type": "text", "text": "What does this picture show?"}
    assert body["response_format"]["json_schema"]["schema"] == answer_schema(ONTOLOGY)
    system = body["messages"][0]["content"]
    assert "level_crossing" in system and "deer" in system and "any_road" not in system and " red_light" not in system


def test_the_whole_clip_is_shown_on_request_and_wide_pictures_are_made_smaller(path: Path) -> None:
    with serving(says_so()) as server:
        look(server.url, path, [frame(index, size=(500, 1000)) for index in range(3)], samples=1, clip=True)
    assert [picture.shape for picture in shown(server.requests[0])] == [(384, 768, 3)] * 3
    assert server.requests[0]["messages"][1]["content"][0]["text"].endswith("What does number 2 show?")


def test_what_answers_differ_in_is_not_known(path: Path) -> None:
    with serving(says_so(), says_so(roads=[]), says_so(objects=[], roads=["bend"])) as server:
        facts = look(server.url, path)
    assert facts["time_of_day"].value == "dusk" and facts["roads"].value is None is facts["objects"].value
    assert facts["roads"].source.endswith(
        "different things of the same picture: intersection and tunnel, nothing, bend"
    )
    assert facts["objects"].source.endswith(": 2 pedestrian and 1 dog, nothing")


def test_what_the_model_cannot_tell_is_not_known(path: Path) -> None:
    with serving(says_so(time_of_day="unknown", roads=[], objects=[])) as server:
        facts = look(server.url, path, samples=1)
    assert facts["time_of_day"].value is None is facts["roads"].value and facts["objects"].value == {}
    assert facts["roads"].source == "model 'eyes' cannot tell by the picture"


BAD: list[tuple[Any, str]] = [
    ("a street", "no valid JSON"),
    ([SEEN], "got list"),
    ({**SEEN, "mood": "calm"}, "exactly the keys"),
    ({**SEEN, "roads": "tunnel"}, "two are lists"),
    ({**SEEN, "time_of_day": "noon"}, "time_of_day: 'noon' is none of the names"),
    ({**SEEN, "weather": ["rain"]}, "weather: .* is none of the names"),
    ({**SEEN, "roads": ["moon"]}, "roads: 'moon' is none of the names"),
    ({**SEEN, "roads": ["any_road"]}, "roads: 'any_road' is none"),
    ({**SEEN, "roads": [{}]}, "roads: .* is none of the names"),
    ({**SEEN, "objects": [{"name": "unicorn", "count": 1}]}, "objects: 'unicorn' is none"),
    ({**SEEN, "objects": [{"name": "red_light", "count": 1}]}, "objects: 'red_light' is none"),
    ({**SEEN, "objects": ["dog"]}, "exactly the keys name, count"),
    ({**SEEN, "objects": [{"name": "dog", "count": 0}]}, "got a count 0 of dog"),
    ({**SEEN, "objects": [{"name": "dog", "count": 10**6}]}, "expected 1 to 200"),
    ({**SEEN, "objects": [{"name": "dog", "count": True}]}, "got a count True"),
    ({**SEEN, "objects": [{"name": "dog", "count": 1.5}]}, "got a count 1.5"),
]


@pytest.mark.parametrize(("told", "why"), BAD, ids=[row[1] for row in BAD])
def test_answers_outside_of_the_ontology_are_refused(told: Any, why: str) -> None:
    with pytest.raises(BadAnswer, match=why):
        read_answer(told if isinstance(told, str) else json.dumps(told), ONTOLOGY)


def test_a_refused_answer_is_asked_for_again_with_the_reason_and_in_the_end_nothing_is_known(path: Path) -> None:
    with serving(says_so(weather="frogs"), says_so()) as server:
        assert look(server.url, path, samples=1)["weather"].value == "rain"
    assert "'frogs' is none of the names" in server.requests[1]["messages"][-1]["content"]
    assert server.requests[1]["messages"][1] == server.requests[0]["messages"][1], "the picture once more"
    path.unlink()
    with serving(says_so(weather="frogs")) as server:
        facts = look(server.url, path)
    assert len(server.requests) == TRIES and {fact.value for fact in facts.values()} == {None}
    assert facts["weather"].source.startswith("model 'eyes' gave no usable answer, the last: weather: 'frogs'")


def test_a_server_without_answers_is_an_error_and_what_was_answered_is_kept(path: Path) -> None:
    with serving(says_so(), refuses(503)) as server, pytest.raises(InfrastructureError, match="the server says 503"):
        look(server.url, path)
    with serving(says_so()) as server:
        assert look(server.url, path)["weather"].value == "rain"
        assert len(server.requests) == 2, "the first of three is kept"


def test_models_that_take_no_pictures_say_so(path: Path) -> None:
    with serving(refuses(400, "no multimodal model")) as server, pytest.raises(UsageError, match="no multimodal model"):
        look(server.url, path)


def test_older_servers_are_asked_without_a_schema(path: Path) -> None:
    with serving(forms("json_object", "text")(says_so())) as server:
        assert look(server.url, path, samples=2)["weather"].value == "rain"
    assert [body["response_format"]["type"] for body in server.requests] == [
        "json_schema",
        "json_object",
        "json_object",
    ]


def test_without_a_picture_nobody_is_asked(path: Path) -> None:
    depth = replace(FRAMES[0].images[0], pixels=np.ones((4, 4), np.float32), encoding="32FC1")
    for bundle, why in ((Bundle(0, 0, 0), "there is no picture"), (Bundle(0, 0, 0, images=(depth,)), "32FC1")):
        facts = look("http://127.0.0.1:9/v1", path, [bundle])
        assert {fact.value for fact in facts.values()} == {None} and why in facts["roads"].source


# --- what it is worth


def seen(**other: Any) -> Facts:
    told = {**read_answer(json.dumps(SEEN), ONTOLOGY), **other}
    return {name: replace(fact, source="model") for name, fact in given(told, ONTOLOGY.predicates).items()}


def test_a_model_counts_less_than_topics_and_sensors_and_more_than_nothing() -> None:
    scene = describe(FRAMES, model_facts=seen())
    assert scene.as_paper() | {"EgoVehicle": None} == {
        "Time": "Dusk",
        "Weather": "Rain",
        "RoadType": "Intersection, Tunnel, Any Road",
        "Objects": "2 pedestrian, 1 dog",
        "EgoVehicle": None,
    }
    assert (scene.value("road_type"), scene.value("weather_clear"), scene.value("dark")) == (
        "intersection",
        False,
        False,
    )
    assert {scene.source(name) for name in ("road_type", "weather_clear", "dark", "objects")} == {"model"}
    by_pictures = describe([frame(0, 200)], model_facts=seen())
    assert by_pictures.value("time_of_day") == "day" and "pictures" in by_pictures.source("time_of_day")
    by_user = describe(
        FRAMES, known_facts=given({"roads": ("bend",), "weather": "snow"}, ONTOLOGY.predicates), model_facts=seen()
    )
    assert (by_user.value("roads"), by_user.value("weather")) == (("bend",), "snow")
    nobody = describe(FRAMES)
    assert nobody.value("roads") is None is nobody.value("weather") and "nobody says it" in nobody.source("roads")


def test_a_weather_that_does_not_go_with_what_is_measured_is_not_known() -> None:
    told = given({"visibility_good": True}, ONTOLOGY.predicates)
    scene = describe(FRAMES, known_facts=told, model_facts=seen(weather="fog"))
    assert scene.value("weather") is None is scene.value("weather_clear") and scene.value("visibility_good") is True
    assert scene.source("weather") == "model says fog, which does not go with visibility_good of given by the user"
    assert describe(FRAMES, known_facts=told, model_facts=seen(weather="rain")).value("weather") == "rain"


def test_the_command_line_asks_the_model_and_the_plan_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bag, plan, answers = tmp_path / "bag", tmp_path / "cases.yaml", tmp_path / "seen.jsonl"
    write_bundles(bag, FRAMES)
    words = ["rules", "match", str(bag), "--scene-model", "eyes", "--answers", str(answers), "--region", "germany"]
    with serving(says_so()) as server:
        monkeypatch.setenv("MT_LLM_URL", server.url)
        assert main([*words, "--scene-samples", "2", "--json"]) == 3, "nobody tells the speed"
        (choice,) = json.loads(capsys.readouterr().out)
        assert choice["paper"]["RoadType"] == "Intersection, Tunnel, Any Road" and len(server.requests) == 2
        assert main([*words, "--frames", "3", "--plan", str(plan), "--scene-samples", "2"]) == 3
        assert len(server.requests) == 2, "the same picture"
    told = plan.read_text()
    assert "seen_by: eyes" in told and "model 'eyes' by the picture, 2 of 2 answers" in told
