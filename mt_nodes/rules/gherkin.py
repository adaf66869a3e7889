# SPDX-License-Identifier: Apache-2.0
"""Statements in Gherkin, the language of Cucumber, one scenario each; tags are the ids of their rules.

::

    @DE-26
    Scenario: red light at intersection
      Given the ego-vehicle approaches to intersection
      And it is known that moving and not has(red_light)
      When mt adds red light on the roadside
      Then ego-vehicle should slow down
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from mt_nodes.base.errors import UsageError, needs_extra, suggest
from mt_nodes.base.yaml_files import read_text
from mt_nodes.relations.facts.condition import refuse_unknown_names
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.statement import ADDS, ON_ROAD, ON_ROADSIDE, REPLACES, Statement

TOOL = "mt"
_ID = re.compile(r"[^\s@#]+")
#: The parser takes about a second for this size; the 110 shipped rules have 40 kB.
_LARGEST = 1_000_000
_KNOWN = "it is known that"
_GIVEN = re.compile(r"the ego[- ]vehicle approaches(?: to)? (?:an? |the )?(?P<road>.+)")
_AND = re.compile(rf"{_KNOWN} (?P<condition>.+)")
_WHEN = re.compile(
    rf"\S+ (?P<verb>{ADDS}|{REPLACES}) (?:an? |the )?(?P<element>.+?)(?: (?P<place>{ON_ROADSIDE}|{ON_ROAD}))?"
)
_THEN = re.compile(r"(?:the )?ego[- ]vehicle should (?P<behaviour>.+)")
_STEPS = {
    "Context": (_GIVEN, "the ego-vehicle approaches to <road>"),
    "Conjunction": (_AND, f"{_KNOWN} <condition>"),
    "Action": (_WHEN, f"<tool> {ADDS}|{REPLACES} <element> [{ON_ROAD}|{ON_ROADSIDE}]"),
    "Outcome": (_THEN, "ego-vehicle should <behaviour>"),
}


def feature(statements: Iterable[Statement], title: str) -> str:
    """Return the text of a feature with one scenario a statement.

    Raises UsageError: a rule's id has spaces, ``@`` or ``#`` and cannot be a tag.
    """
    return f"Feature: {' '.join(title.split())}\n" + "".join(map(_scenario, statements))


def _scenario(one: Statement) -> str:
    for rule in one.rules:
        if not _ID.fullmatch(rule):
            raise UsageError(f"rule id {rule!r}: got spaces, '@' or '#', which no tag of Gherkin may have")
    lines = [
        "",
        *(["  " + " ".join(f"@{rule}" for rule in one.rules)] if one.rules else []),
        f"  Scenario: {_spaced(one.element)} at {_spaced(one.road)}",
        f"    Given the ego-vehicle approaches to {_spaced(one.road)}",
        *([f"    And {_KNOWN} {' '.join(one.condition.split())}"] if one.condition else []),
        f"    When {TOOL} {one.verb} {_spaced(one.element)} {one.place}".rstrip(),
        f"    Then ego-vehicle should {_spaced(one.behaviour)}",
    ]
    return "\n".join(lines) + "\n"


def read_feature_file(path: Path, ontology: Ontology) -> tuple[Statement, ...]:
    """Read a ``.feature`` file. Raises UsageError: it cannot be read, or :func:`read_feature` refuses it."""
    return read_feature(read_text(path), str(path), ontology)


def read_feature(text: str, name: str, ontology: Ontology) -> tuple[Statement, ...]:
    """Return the statements of a feature.

    Raises UsageError: naming the line: invalid Gherkin, another language, no content, or a word that the ontology does
    not know.
    """
    if len(text) > _LARGEST:
        raise UsageError(f"{name}: got {len(text) / 1e6:.1f} MB, expected at most {_LARGEST / 1e6:g} MB; part it")
    document = _document(text, name).get("feature")
    if not document:
        raise UsageError(f"{name}: got no feature, expected 'Feature: <title>' and scenarios")
    if document["language"] != "en":
        raise UsageError(f"{name}:{_line(document)}: got language '{document['language']}', expected English ('en')")
    statements = tuple(_statement(one, name, ontology) for one in _scenarios(document, name))
    if not statements:
        raise UsageError(f"{name}:{_line(document)}: got a feature without a scenario, expected at least one")
    return statements


def _document(text: str, name: str) -> Mapping[str, Any]:
    with needs_extra("gherkin", f"{name}: reading .feature files needs a library"):
        from gherkin.errors import CompositeParserException, ParserError
        from gherkin.parser import Parser
    try:
        return cast("Mapping[str, Any]", Parser().parse(text))
    except CompositeParserException as error:
        first = error.errors[0]
        more = f" (and {len(error.errors) - 1} more)" if len(error.errors) > 1 else ""
        title = str(first).partition(": ")[2].replace("#", "")
        raise UsageError(f"{name}:{first.location['line']}: not valid Gherkin: {title}{more}") from error
    except ParserError as error:
        raise UsageError(f"{name}: not valid Gherkin: {error}") from error


def _scenarios(document: Mapping[str, Any], name: str) -> Iterator[Mapping[str, Any]]:
    for child in document["children"]:
        ((kind, one),) = child.items()
        if kind != "scenario" or one["examples"]:
            got = "an outline with examples" if kind == "scenario" else kind
            raise UsageError(f"{name}:{_line(one)}: got {got}, expected plain scenarios only")
        yield one


def _statement(scenario: Mapping[str, Any], name: str, ontology: Ontology) -> Statement:
    parts: dict[str, str] = {}
    conditions: list[str] = []
    lines: dict[str, int] = {}
    for step in scenario["steps"]:
        where = f"{name}:{_line(step)}"
        words = _words(step, where)
        if "condition" in words:
            conditions.append(words["condition"])
        for key in words.keys() - {"condition"}:
            if key in parts:
                raise UsageError(f"{where}: got a second '{step['keyword'].strip()}' step, expected one")
        parts |= words
        lines |= dict.fromkeys(words, _line(step))
    for key, step_name in (("road", "Given"), ("element", "When"), ("behaviour", "Then")):
        if key not in parts:
            raise UsageError(f"{name}:{_line(scenario)}: got a scenario without a '{step_name}' step, expected one")
    rules = tuple(tag["name"].removeprefix("@") for tag in scenario["tags"])
    condition = conditions[0] if len(conditions) == 1 else " and ".join(f"({one})" for one in conditions)
    road, element, behaviour = (
        _known(parts[key], key, ontology, f"{name}:{lines[key]}") for key in ("road", "element", "behaviour")
    )
    statement = Statement(road, parts["verb"], element, behaviour, parts.get("place") or "", condition, rules)
    ontology.refuse_unknown(replace(statement, condition=""), f"{name}:{lines['element']}")
    if condition:
        refuse_unknown_names(condition, ontology.predicates, ontology.elements, f"{name}:{lines['condition']}")
    return statement


def _words(step: Mapping[str, Any], where: str) -> dict[str, str]:
    pattern, form = _STEPS.get(step["keywordType"], (None, ""))
    match = pattern.fullmatch(step["text"]) if pattern else None
    if match is None or step.get("docString") or step.get("dataTable"):
        forms = f"'{step['keyword']}{form}'" if form else "Given, And, When and Then"
        raise UsageError(f"{where}: got '{step['keyword']}{step['text']}', expected {forms}")
    return {key: value for key, value in match.groupdict().items() if value}


def _known(words: str, kind: str, ontology: Ontology, where: str) -> str:
    """Return the name for words: the name itself, or the term with that phrase."""
    terms: Mapping[str, Any] = {"road": ontology.roads, "element": ontology.elements, "behaviour": ontology.behaviours}[
        kind
    ]
    name = "_".join(words.lower().replace("-", " ").split())
    if name in terms:
        return name
    found = next((term.name for term in terms.values() if words.lower() in term.says), "")
    if not found:
        raise UsageError(f"{where}: no {kind} '{words}'{suggest(name, terms)}")
    return found


def _line(node: Mapping[str, Any]) -> int:
    return int(node["location"]["line"])


def _spaced(name: str) -> str:
    return name.replace("_", " ")
