# SPDX-License-Identifier: Apache-2.0
"""A vision-language model compares source and follow-up: AutoMT's check of manipulations (second research question).

Three questions with yes or no, as often as is asked for: is the change to be seen in the second picture and not in the
first; do both show the same place otherwise; does the second look like a recording. Each needs a majority of "yes"; an
unreadable answer is a "no", so that silence is never a confirmation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mt_nodes.base.errors import UsageError
from mt_nodes.data.messages import Bundle
from mt_nodes.rules.answer_statements import BadAnswer, json_in, object_schema
from mt_nodes.rules.chat import Message
from mt_nodes.rules.model_queries import Asker
from mt_nodes.rules.prompts import Prompts, Templates
from mt_nodes.rules.scene_by_model import data_url
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.store_entry import Entry
from mt_nodes.runs.automt.second_look import Look

QUESTIONS = ("shown", "same_place", "plausible")
SCHEMA: dict[str, Any] = object_schema({name: {"type": "string", "enum": ["yes", "no"]} for name in QUESTIONS})
_SYSTEM, _USER = "followup.system", "followup.user"


@dataclass(frozen=True)
class FollowupCheck:
    """Asks one model ``samples`` times about a follow-up."""

    asker: Asker
    prompts: Prompts
    samples: int = 3

    def look(self, source: Bundle, followup: Bundle, statement: Statement) -> Look:
        """Return whether the model sees the change; None where there is no picture to compare."""
        if not source.images or not followup.images:
            return None, ""
        try:
            pictures = [data_url(bundle.images[0]) for bundle in (source, followup)]
        except UsageError:
            return None, ""
        messages = self._messages(pictures, statement)
        votes = [self._vote(messages, turn) for turn in range(self.samples)]
        yes = {name: sum(vote[name] for vote in votes) for name in QUESTIONS}
        words = ", ".join(f"{name.replace('_', ' ')} {count}/{self.samples}" for name, count in yes.items())
        return all(2 * count > self.samples for count in yes.values()), f"model '{self.asker.name}': {words}"

    def _vote(self, messages: Sequence[Message], turn: int) -> dict[str, bool]:
        answer, _ = self.asker.ask_until(self.prompts, messages, SCHEMA, read, turn)
        return dict.fromkeys(QUESTIONS, False) if isinstance(answer, BadAnswer) else answer

    @cached_property
    def _templates(self) -> Templates:
        return Templates((_SYSTEM, _USER))

    def _messages(self, pictures: Sequence[str], statement: Statement) -> tuple[Message, ...]:
        text = self._templates.render(_USER, change=Entry(statement).manipulation)
        shown = ({"type": "image_url", "image_url": {"url": picture}} for picture in pictures)
        return ("system", self._templates.render(_SYSTEM)), ("user", ({"type": "text", "text": text}, *shown))


def read(answer: str) -> dict[str, bool]:
    """Return the answer to each question. Raises BadAnswer: it is none of yes and no to each."""
    data = json_in(answer)
    if set(data) != set(QUESTIONS) or any(data[name] not in ("yes", "no") for name in QUESTIONS):
        raise BadAnswer(f"expected an object with exactly the keys {', '.join(QUESTIONS)}, each yes or no")
    return {name: data[name] == "yes" for name in QUESTIONS}
