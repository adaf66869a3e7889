# SPDX-License-Identifier: Apache-2.0
"""Schema and validation of a language model's statements about a rule: by the ontology, and by the rule's text.

Whatever a rule's text makes a model say, a statement is accepted only if its names are in the ontology, if it quotes
words of the rule for its element and for its behaviour that the ontology does not read as something else, and if the
rule contains the numbers of its condition. A rule's text is data: quotes from after an instruction to the model do not
count.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.relations.facts.condition import ConditionNode, conjunction, known, parse
from mt_nodes.rules import quantities
from mt_nodes.rules.cues import cues_in
from mt_nodes.rules.grammar import words
from mt_nodes.rules.nouns import nouns_in
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.parser import Reading
from mt_nodes.rules.statement import ON_ROAD, ON_ROADSIDE, Statement, merged

_PLACES = ("", ON_ROAD, ON_ROADSIDE)
_KEYS = ("road", "element", "element_words", "place", "behaviour", "behaviour_words", "condition")
#: No traffic rule has more elements; no useful answer is longer.
_MOST, _LONGEST = 12, 50_000
_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL)
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,60}\b(?:instruction|prompt|previous|above|ontology|schema)"
    r"|\b(?:system|assistant|user|developer)\s*:|\bjson\b|\bprompt\b|\blanguage model\b"
    r"|\byou are (?:now )?an? (?:\w+ )?(?:assistant|model|ai|bot)\b"
    r"|\b(?:answer|respond|reply|output|print|return)\b\s+(?:with|only|yes|no|exactly)\b"
    r"|<\|",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?\n]")
#: Limits in other units are rounded: 30 mph are 48.28 km/h, given as 48.
_ROUNDING = 0.02
_SHORTEST = 4
_DRIVING_WORDS = words("driving_words")


class BadAnswer(ValueError):
    """An invalid answer; the text tells the model what is wrong with it."""


def answer_schema(ontology: Ontology) -> dict[str, Any]:
    """Return the JSON schema of an answer, in the subset of strict structured output (all keys required)."""
    names: Mapping[str, Collection[str]] = {
        "road": ontology.roads,
        "element": ontology.elements,
        "place": _PLACES,
        "behaviour": ontology.behaviours,
    }
    keys = {key: {"type": "string", **({"enum": list(names[key])} if key in names else {})} for key in _KEYS}
    return object_schema(
        {
            "steps": {"type": "array", "items": {"type": "string"}},
            "statements": {"type": "array", "items": object_schema(keys)},
            "why_none": {"type": "string"},
        }
    )


def read_answer(answer: str, text: str, ontology: Ontology, rule: str = "", strict: bool = False) -> Reading:
    """Return the statements of an answer to a rule; without one, the model's reason.

    ``text``: of the rule. ``rule``, ``strict``: as in :func:`mt_nodes.rules.parser.read_rule`.
    Raises BadAnswer: it does not fit :func:`answer_schema`, or a statement does not fit the ontology or the rule.
    """
    data = json_in(answer)
    rows = data.get("statements")
    if not isinstance(rows, list) or len(rows) > _MOST:
        raise BadAnswer(f'got no usable "statements", expected a list of at most {_MOST}')
    if not rows:
        why = data.get("why_none")
        return Reading(why=str(why)[:200] if isinstance(why, str) and why.strip() else "the model finds no statement")
    checked = [_statement(row, n, text, ontology, rule, strict) for n, row in enumerate(rows, 1)]
    return Reading(merged(checked))


def json_in(answer: str) -> dict[str, Any]:
    """Return the object of an answer, also after thoughts or inside a fence. Raises BadAnswer: there is none."""
    if len(answer) > _LONGEST:
        raise BadAnswer(f"got {len(answer):,} characters, expected at most {_LONGEST:,}")
    bare = _THOUGHTS.sub("", answer).strip()
    fenced = _FENCED.search(bare)
    try:
        data = json.loads(fenced[1] if fenced else bare)
    except (ValueError, RecursionError) as error:
        raise BadAnswer(f"got no valid JSON ({error}), expected one JSON object and nothing else") from error
    if not isinstance(data, dict):
        raise BadAnswer(f"got {type(data).__name__}, expected one JSON object")
    return data


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of an object with exactly these keys."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def text_before_orders(text: str) -> str:
    """Return a rule up to the sentence with instructions to a model; all of it if there is none."""
    order = _ORDERS.search(text)
    if order is None:
        return text
    ends = [end.end() for end in _SENTENCE_END.finditer(text, 0, order.start())]
    return text[: ends[-1]] if ends else ""


def _statement(row: Any, number: int, text: str, ontology: Ontology, rule: str, strict: bool) -> Statement:
    where = f"statements[{number}]"
    if not isinstance(row, dict) or set(row) != set(_KEYS) or not all(isinstance(v, str) for v in row.values()):
        raise BadAnswer(f"{where}: expected an object of texts with exactly the keys {', '.join(_KEYS)}")
    element, behaviour = row["element"], row["behaviour"]
    for kind, names in (("element", ontology.elements), ("behaviour", ontology.behaviours), ("place", _PLACES)):
        if row[kind] not in names:
            raise BadAnswer(
                f"{where}.{kind}: '{row[kind][:60]}' is not in the ontology{suggest(row[kind][:60], names)}"
            )
    element_found = ontology.elements[element]
    statement = Statement(
        row["road"], element_found.verb, element, behaviour, row["place"], row["condition"], (rule,) if rule else ()
    )
    try:
        ontology.refuse_unknown(statement, where)
    except UsageError as error:
        raise BadAnswer(str(error)) from error
    _refuse_unsaid(row, where, text, ontology)
    _refuse_condition(row["condition"], where, text, ontology)
    reads_as = ontology.behaviours[behaviour].reads_as
    place = row["place"] if element_found.category == "objects" else ""
    return Statement(
        statement.road,
        statement.verb,
        element,
        behaviour if strict or not reads_as else reads_as,
        place,
        conjunction("moving", row["condition"], element_found.needs),
        statement.rules,
    )


def _refuse_unsaid(row: Mapping[str, str], where: str, text: str, ontology: Ontology) -> None:
    """Refuse quotes that are not in the rule, or that the ontology reads as something else."""
    plain = _plain(text_before_orders(text))
    for key in ("element_words", "behaviour_words"):
        quote = _plain(row[key])
        if len(quote) < 2 or not re.search(rf"(?<!\w){re.escape(quote)}(?!\w)", plain):
            raise BadAnswer(
                f"{where}.{key}: '{row[key][:80]}' are no words of the rule; quote them as they stand there"
            )
    named = _elements(row["element_words"], ontology)
    if not named and not _is_content(row["element_words"], ontology):
        raise BadAnswer(
            f"{where}.element_words: '{row['element_words'][:80]}' names nothing; quote what names {row['element']}"
        )
    if named and row["element"] not in named:
        raise BadAnswer(
            f"{where}: '{row['element_words'][:80]}' names {' and '.join(sorted(named))}, not {row['element']}"
        )
    found = _behaviours(row["behaviour_words"], row["behaviour"], ontology)
    accepted = {row["behaviour"], ontology.behaviours[row["behaviour"]].reads_as}
    if found and not found & accepted:
        raise BadAnswer(
            f"{where}: '{row['behaviour_words'][:80]}' asks for {' and '.join(sorted(found))}, not {row['behaviour']}; "
            "quote all of the words that ask for it, a 'not' among them"
        )


def _elements(quote: str, ontology: Ontology) -> set[str]:
    nouns = nouns_in(ontology.lexicon.tokens(quote), ontology)
    marks = {one.road.marked_by for one in nouns.places if one.road.marked_by}
    return {one.element.name for one in nouns.things} | marks


def _is_content(quote: str, ontology: Ontology) -> bool:
    """Whether words that name nothing in the ontology may still name something: one is unknown, and not short."""
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    known = ontology.lexicon.known | ENGLISH_STOP_WORDS | _DRIVING_WORDS
    tokens = ontology.lexicon.tokens(quote)
    return any(len(t.text) >= _SHORTEST and not t.forms & known for t in tokens)


def _behaviours(quote: str, claimed: str, ontology: Ontology) -> set[str]:
    """Return the behaviours that words demand; a negation may demand anything but a turn."""
    tokens = ontology.lexicon.tokens(quote)
    cues = cues_in(tokens, [True] * len(tokens), (), ontology)
    if any(cue.negated for cue in cues) and not claimed.startswith("turn"):
        return set()
    behaviours = {cue.behaviour for cue in cues}
    return behaviours | {ontology.behaviours[name].reads_as for name in behaviours} - {""}


def _refuse_condition(condition: str, where: str, text: str, ontology: Ontology) -> None:
    tree = parse(condition)
    if condition.strip() and known(tree, {}).kind in ("true", "false"):
        raise BadAnswer(f"{where}.condition: '{condition[:80]}' is always so or never; leave it empty")
    tokens = ontology.lexicon.tokens(text_before_orders(text))
    numbers = {float(token.text.replace(",", ".")) for token in tokens if re.fullmatch(r"\d+(?:[.,]\d+)?", token.text)}
    for one in quantities.conditions(tokens, keeps=False):
        numbers |= set(_numbers(parse(one)))
    for number in _numbers(tree):
        if number and not any(abs(number - one) <= _ROUNDING * abs(one) for one in numbers):
            raise BadAnswer(f"{where}.condition: the rule has no number {number:g}")


def _numbers(node: ConditionNode) -> Iterator[float]:
    for part in node.parts:
        if isinstance(part, ConditionNode):
            yield from _numbers(part)
        elif node.kind == "number":
            yield part


def _plain(text: str) -> str:
    """Return a text in lower case with single spaces, normalised."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
