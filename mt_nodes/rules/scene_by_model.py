# SPDX-License-Identifier: Apache-2.0
"""Scene facts from a vision-language model: time, weather, roads and objects, in words of the ontology.

AutoMT's second agent (arXiv 2510.19438) with two differences: an answer outside of the ontology is refused, and facts
on which several answers disagree are unknown. The vehicle's motion is never asked for; topics give it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.data.images.codecs import decode
from mt_nodes.data.messages import Bundle, Image
from mt_nodes.relations.facts.scene_facts import Fact, Facts, unknown
from mt_nodes.rules.answer_statements import BadAnswer, json_in, object_schema
from mt_nodes.rules.chat import Message
from mt_nodes.rules.model_queries import Asker
from mt_nodes.rules.ontology import ANY_ROAD, Ontology
from mt_nodes.rules.prompts import Prompts, Templates
from mt_nodes.rules.scene import OBJECTS, ROADS

#: Facts with a value from a list of names, or :data:`_UNKNOWN`; roads and objects are asked for in addition.
TIME, WEATHER = "time_of_day", "weather"
NAMES: Mapping[str, tuple[str, ...]] = {TIME: ("day", "dusk", "night"), WEATHER: ("clear", "rain", "snow", "fog")}
_UNKNOWN = "unknown"
_SYSTEM, _USER = "scene.system", "scene.user"
#: Largest width of a shown picture, its JPEG quality, and largest count of one kind of object.
_WIDE_PX, _QUALITY, _MOST = 768, 90, 200

SeenBy = Callable[[Sequence[Bundle]], Facts]
"""What somebody sees in the frames of a case, of which the middle one is its reference."""


@dataclass(frozen=True)
class SceneReader:
    """A vision-language model; a :data:`SeenBy`.

    ``samples``: how often each case is asked about. ``clip``: show the frames around the reference, too.
    """

    asker: Asker
    ontology: Ontology
    samples: int = 3
    clip: bool = False

    def __call__(self, bundles: Sequence[Bundle]) -> Facts:
        """Return the model's facts.

        Raises NoAnswer: the server gave no answer; earlier ones are stored. UsageError: the server refuses the request
        or the key. InfrastructureError: it has failed several times in a row, or answers cannot be stored.
        """
        middle = len(bundles) // 2
        pictured = list(bundles) if self.clip and all(b.images for b in bundles) else [bundles[middle]]
        number = middle + 1 if len(pictured) > 1 else 1
        try:
            pictures = [data_url(bundle.images[0]) for bundle in pictured if bundle.images]
        except UsageError as error:
            return self._nothing(str(error))
        if not pictures:
            return self._nothing("there is no picture")
        messages, answers = self._messages(pictures, number), []
        for turn in range(self.samples):
            answer, _ = self.asker.ask_until(self._retry_prompts, messages, self._schema, self._read, turn)
            if isinstance(answer, BadAnswer):
                return self._nothing(f"model '{self.asker.name}' gave no usable answer, the last: {answer}")
            answers.append(answer)
        return {name: self._agreed([one[name] for one in answers]) for name in answers[0]}

    @cached_property
    def _templates(self) -> Templates:
        return Templates((_SYSTEM, _USER))

    @cached_property
    def _retry_prompts(self) -> Prompts:
        return Prompts(self.ontology)

    @cached_property
    def _schema(self) -> Mapping[str, Any]:
        return answer_schema(self.ontology)

    def _read(self, answer: str) -> dict[str, Any]:
        return read_answer(answer, self.ontology)

    def _messages(self, pictures: Sequence[str], number: int) -> tuple[Message, ...]:
        known = {"roads": _roads(self.ontology), "objects": _objects(self.ontology)}
        head = self._templates.render(_SYSTEM, times=NAMES[TIME], weathers=NAMES[WEATHER], **known)
        text = {"type": "text", "text": self._templates.render(_USER, count=len(pictures), asked=number)}
        return ("system", head), ("user", (text, *({"type": "image_url", "image_url": {"url": p}} for p in pictures)))

    def _agreed(self, values: Sequence[Any]) -> Fact:
        """Return the common value of all answers, unknown if they differ."""
        source, first = f"model '{self.asker.name}'", values[0]
        if any(value != first for value in values):
            answers = ", ".join(dict.fromkeys(_text_of(value) for value in values))
            return unknown(f"{source} says different things of the same picture: {answers}")
        if first is None:
            return unknown(f"{source} cannot tell by the picture")
        return Fact(first, f"{source} by the picture, {len(values)} of {len(values)} answers")

    def _nothing(self, why: str) -> Facts:
        return dict.fromkeys((*NAMES, ROADS, OBJECTS), unknown(why))


def answer_schema(ontology: Ontology) -> dict[str, Any]:
    """Return the JSON schema of an answer."""
    names = {key: {"type": "string", "enum": [*known, _UNKNOWN]} for key, known in NAMES.items()}
    one = object_schema({"name": {"type": "string", "enum": _objects(ontology)}, "count": {"type": "integer"}})
    roads = {"type": "string", "enum": _roads(ontology)}
    lists = {ROADS: {"type": "array", "items": roads}, OBJECTS: {"type": "array", "items": one}}
    return object_schema({**names, **lists})


def read_answer(answer: str, ontology: Ontology) -> dict[str, Any]:
    """Return the facts of an answer in the form of :class:`mt_nodes.rules.scene.SceneFacts`; None: unknown.

    No road means unknown, because a picture need not show the road type.
    Raises BadAnswer: it does not fit :func:`answer_schema`, or the ontology.
    """
    data = json_in(answer)
    if set(data) != {*NAMES, ROADS, OBJECTS} or not all(isinstance(data[key], list) for key in (ROADS, OBJECTS)):
        raise BadAnswer(
            f"expected an object with exactly the keys {', '.join((*NAMES, ROADS, OBJECTS))}; two are lists"
        )
    for key, known in NAMES.items():
        _refuse_unknown(data[key], (*known, _UNKNOWN), key)
    for road in data[ROADS]:
        _refuse_unknown(road, _roads(ontology), ROADS)
    counts: dict[str, int] = {}
    for row in data[OBJECTS]:
        name, count = _counted(row, ontology)
        counts[name] = counts.get(name, 0) + count
    return {
        **{key: None if data[key] == _UNKNOWN else data[key] for key in NAMES},
        ROADS: tuple(road for road in _roads(ontology) if road in data[ROADS]) or None,
        OBJECTS: dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))),
    }


def _counted(row: Any, ontology: Ontology) -> tuple[str, int]:
    if not isinstance(row, dict) or set(row) != {"name", "count"}:
        raise BadAnswer(f"{OBJECTS}: expected objects with exactly the keys name, count")
    _refuse_unknown(row["name"], _objects(ontology), OBJECTS)
    count = row["count"]
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MOST:
        raise BadAnswer(f"{OBJECTS}: got a count {str(count)[:20]} of {row['name']}, expected 1 to {_MOST}")
    return str(row["name"]), count


def _refuse_unknown(name: Any, known: Collection[str], key: str) -> None:
    if not isinstance(name, str) or name not in known:
        raise BadAnswer(f"{key}: '{str(name)[:60]}' is none of the names{suggest(str(name)[:60], known)}")


def _roads(ontology: Ontology) -> list[str]:
    return [name for name in ontology.roads if name != ANY_ROAD]


def _objects(ontology: Ontology) -> list[str]:
    return [element.name for element in ontology.elements.values() if element.category == "objects"]


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        value = [f"{count} {name}" for name, count in value.items()]
    return "nothing" if not value else value if isinstance(value, str) else " and ".join(value)


def data_url(image: Image) -> str:
    """Return a picture in the protocol's form: a JPEG in a ``data:`` URL (RFC 2397).

    Raises UsageError: it is no visible picture, such as a depth image.
    """
    pixels = decode(image).rgb8()
    height, width = pixels.shape[:2]
    if width > _WIDE_PX:
        size = (_WIDE_PX, max(1, round(height * _WIDE_PX / width)))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), np.uint8)
    _, data = cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])
    return f"data:image/jpeg;base64,{base64.b64encode(data.tobytes()).decode()}"
