# SPDX-License-Identifier: Apache-2.0
"""The ontology of relations: roads, elements, behaviours, predicates, and their phrases in rules.

``config/ontology/*.yaml`` ships with the package; a user's own file of the same form adds entries or replaces them. The
terms of both regions are those of AutoMT (arXiv 2510.19438, tables 1 and 2 of its supplement).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from mt_nodes.base import resources
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.yaml_files import named_items, read_mapping, refuse_unknown
from mt_nodes.engine.entries import flag, mapping, text, texts
from mt_nodes.relations.facts.condition import KINDS, Predicate, refuse_unknown_names
from mt_nodes.relations.manipulations import manipulations
from mt_nodes.rules.grammar import GRAMMAR
from mt_nodes.rules.phrases import Lexicon, Phrase
from mt_nodes.rules.quantities import UNITS
from mt_nodes.rules.statement import Statement
from mt_nodes.rules.terms import Behaviour, Element, RoadTerm, Term

REGIONS = ("germany", "california")
CATEGORIES = ("infrastructure", "objects", "environment")
#: For rules that name no road.
ANY_ROAD = "any_road"
_SECTIONS = ("roads", *CATEGORIES, "behaviours", "predicates", "words")
_WORDS = ("unsupported", "road", "needs", "asks", "forbids", "crossing")
_REFERENCE = re.compile(r"@(\w+)")
_FLAGS = ("weak", "stands", "general")
_ELEMENT_KEYS = ("says", "manipulation", "bare", "implied_by", "regions", *_WORDS, *_FLAGS)


@dataclass(frozen=True, eq=False)
class Ontology:
    """All terms by name."""

    roads: Mapping[str, RoadTerm]
    elements: Mapping[str, Element]
    behaviours: Mapping[str, Behaviour]
    predicates: Mapping[str, Predicate]
    words: Mapping[str, tuple[str, ...]]

    @cached_property
    def lexicon(self) -> Lexicon:
        """The words of all phrases."""
        return Lexicon.of(self.words, (*self._phrases(), *UNITS))

    @cached_property
    def nouns(self) -> tuple[tuple[Phrase, Term], ...]:
        """Phrases of roads and elements: longer ones first, then those of elements, then consecutive ones."""
        roads = (road for road in self.roads.values() if road.name != ANY_ROAD)
        terms = (*self.elements.values(), *roads)
        rows = [(self.lexicon.phrase(self._named(text)), term) for term in terms for text in term.says]
        return tuple(
            sorted(
                rows, key=lambda row: (-row[0].size, isinstance(row[1], RoadTerm), _vague(row[1]), len(row[0].parts))
            )
        )

    def rank(self, behaviour: str) -> int:
        """Return the rank of a behaviour among several of a rule, 0 first: its own, or that of what it is read as."""
        names = list(self.behaviours)
        return min(names.index(name) for name in (behaviour, self.behaviours[behaviour].reads_as) if name)

    def refuse_unknown(self, statement: Statement, where: str) -> None:
        """Refuse a statement with an unknown word. Raises UsageError."""
        for kind, known in (("road", self.roads), ("element", self.elements), ("behaviour", self.behaviours)):
            got = getattr(statement, kind)
            if got not in known:
                raise UsageError(f"{where}: no {kind} '{got}'{suggest(got, known)}")
        verb = self.elements[statement.element].verb
        if statement.verb != verb:
            raise UsageError(f"{where}: got '{statement.verb} {statement.element}', expected '{verb}'")
        if statement.condition:
            refuse_unknown_names(statement.condition, self.predicates, self.elements, where)

    def _named(self, text: str) -> str:
        """Return a phrase with the single words of an element in place of ``@element``."""
        return _REFERENCE.sub(lambda found: "/".join(self._single_words(found[1])), text)

    def _single_words(self, element: str) -> list[str]:
        return [text for text in self.elements[element].says if text.isalpha()]

    def _phrases(self) -> Iterable[str]:
        for term in (*self.roads.values(), *self.elements.values(), *self.behaviours.values()):
            yield from map(self._named, term.says)
            yield from getattr(term, "says_not", ())
        for predicate in self.predicates.values():
            yield from (*predicate.says, *predicate.denies)


def load_ontology(*own: Path) -> Ontology:
    """Read the shipped ontology, and the user's own files on top of it. Raises UsageError."""
    return _load(own)


@lru_cache(maxsize=8)
def _load(own: tuple[Path, ...]) -> Ontology:
    read: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    for data in (*_shipped(), *map(_read, own)):
        for section, entries in data.items():
            # Of equal phrases the first counts, so a user's terms come first; behaviours keep the order of their rank.
            before, after = (read[section], entries) if section == "behaviours" else (entries, read[section])
            read[section] = {**before, **after, **entries}
    elements = {name: one for category in CATEGORIES for name, one in read[category].items()}
    ontology = Ontology(read["roads"], elements, read["behaviours"], read["predicates"], read["words"])
    _refuse_discord(ontology, own[-1] if own else Path("ontology"))
    return ontology


def _read(path: Path) -> dict[str, dict[str, Any]]:
    data = read_mapping(path)
    refuse_unknown(data, _SECTIONS, str(path))
    return {section: _entries(section, entries, f"{path}: {section}") for section, entries in data.items()}


@lru_cache(maxsize=1)
def _shipped() -> tuple[dict[str, dict[str, Any]], ...]:
    files = resources.shipped("ontology")
    return tuple(_read(path) for name, path in files.items() if name != GRAMMAR)


def _vague(term: Term) -> bool:
    return isinstance(term, Element) and (term.weak or term.general)


def _entries(section: str, entries: Any, where: str) -> dict[str, Any]:
    entries = mapping(entries, where)
    if section == "words":
        return {str(name): texts(entries, name, where) for name in entries}
    result = {}
    for name, data in entries.items():
        entry = mapping(data, f"{where}.{name}", "{says: [some words]}")
        result[str(name)] = _MAKERS.get(section, _element)(str(name), entry, f"{where}.{name}", section)
    return result


def _road(name: str, data: Mapping[str, Any], where: str, _: str) -> RoadTerm:
    refuse_unknown(data, ("says", "regions", "marked_by", "area"), where)
    says, regions = _says(name, data, where), _regions(data, where)
    return RoadTerm(name, says, regions, text(data, "marked_by", where), flag(data, "area", where))


def _element(name: str, data: Mapping[str, Any], where: str, category: str) -> Element:
    refuse_unknown(data, _ELEMENT_KEYS, where)
    manipulation = data.get("manipulation", name)
    by_region = manipulation if isinstance(manipulation, dict) else {"": manipulation}
    if isinstance(manipulation, dict):
        refuse_unknown(manipulation, REGIONS, f"{where}.manipulation")
        by_region = {**manipulation, "": next(iter(manipulation.values()), "")}
    if "unsupported" in data:
        if "manipulation" in data:
            raise UsageError(f"{where}: got manipulation and unsupported, expected one of them")
        by_region = {}
    for one in by_region.values():
        if one not in manipulations():
            hint = suggest(str(one), manipulations(), "see `mt list manipulations`, or say why under `unsupported`")
            raise UsageError(f"{where}: no manipulation '{one}'{hint}")
    words: dict[str, Any] = {key: text(data, key, where) for key in _WORDS}
    flags: dict[str, Any] = {key: flag(data, key, where) for key in _FLAGS}
    says = _says(name, data, where)
    lists: dict[str, Any] = {key: texts(data, key, where) for key in ("bare", "implied_by")}
    return Element(name, says, _regions(data, where), category, by_region, **lists, **words, **flags)


def _behaviour(name: str, data: Mapping[str, Any], where: str, _: str) -> Behaviour:
    refuse_unknown(data, ("says", "says_not", "denied", "reads_as", "check", "in_world"), where)
    checks = named_items(data.get("check") or [], f"{where}.check")
    if len(checks) != 1:
        raise UsageError(f"{where}.check: got {len(checks)} checks, expected one")
    behaviour = Behaviour(
        name,
        _says(name, data, where),
        says_not=texts(data, "says_not", where),
        denied=text(data, "denied", where),
        reads_as=text(data, "reads_as", where),
        check=checks[0],
        in_world=next(iter(named_items(data.get("in_world") or [], f"{where}.in_world")), ("", {})),
    )
    behaviour.make_check(where)
    if behaviour.in_world[0]:
        behaviour.make_check_in_world(where)
    return behaviour


def _predicate(name: str, data: Mapping[str, Any], where: str, _: str) -> Predicate:
    refuse_unknown(data, ("kind", "help", "says", "denies"), where)
    kind = text(data, "kind", where)
    if kind not in KINDS:
        raise UsageError(f"{where}.kind: got '{kind}', expected {', '.join(KINDS)}")
    says, denies = (texts(data, key, where) for key in ("says", "denies"))
    return Predicate(name, kind, text(data, "help", where), says, denies)


_MAKERS: Any = {"roads": _road, "behaviours": _behaviour, "predicates": _predicate}


def _says(name: str, data: Mapping[str, Any], where: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name.replace("_", " "), *texts(data, "says", where))))


def _regions(data: Mapping[str, Any], where: str) -> tuple[str, ...]:
    regions = texts(data, "regions", where)
    refuse_unknown(dict.fromkeys(regions), REGIONS, f"{where}.regions")
    return regions


def _refuse_discord(ontology: Ontology, where: Path) -> None:
    """Refuse entries that refer to missing ones. Raises UsageError."""
    for key, kind, named, known in _links(ontology):
        if named and named not in known:
            raise UsageError(f"{where}: {key}: no {kind} '{named}'{suggest(named, known)}")
    for element in ontology.elements.values():
        if element.needs:
            needs = f"{where}: {element.name}.needs"
            refuse_unknown_names(element.needs, ontology.predicates, ontology.elements, needs)


def _links(ontology: Ontology) -> Iterator[tuple[str, str, str, Collection[str]]]:
    """Yield key, kind of the reference, its name, and the existing names."""
    for element in ontology.elements.values():
        yield f"{element.name}.road", "road", element.road, ontology.roads
        yield f"{element.name}.crossing", "road", element.crossing, ontology.roads
        for named in _REFERENCE.findall(" ".join(element.says)):
            yield f"{element.name}.says", "element", named, ontology.elements
        for key, named in (("asks", element.asks), ("forbids", element.forbids)):
            yield f"{element.name}.{key}", "behaviour", named, ontology.behaviours
        for named in element.implied_by:
            yield f"{element.name}.implied_by", "behaviour", named, ontology.behaviours
    for road in ontology.roads.values():
        yield f"{road.name}.marked_by", "element", road.marked_by, ontology.elements
    for one in ontology.behaviours.values():
        yield f"{one.name}.denied", "behaviour", one.denied, ontology.behaviours
        yield f"{one.name}.reads_as", "behaviour", one.reads_as, ontology.behaviours
