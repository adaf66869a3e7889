# SPDX-License-Identifier: Apache-2.0
"""Which roads and elements a rule names, and which of the elements it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mt_nodes.rules.ontology import Element, Ontology, Road, Term
from mt_nodes.rules.words import Phrase, Token, found

_OPENERS = frozenset({"when", "whenever", "if", "where", "wherever", "while", "once", "because"})
_TARGETS = frozenset(
    {"for", "to", "past", "behind", "at", "near", "of", "by", "around", "through", "about", "after", "from", "against"}
)
_LOCATIVES = frozenset(
    {"at", "in", "on", "into", "onto", "near", "before", "from", "inside", "through", "off", "over", "along", "beyond"}
)
_YIELDS = frozenset({"let", "yield", "priority", "allow", "give"})
PASSES = frozenset({"overtake", "pass"})
_AVOIDED = frozenset({"avoid", "prevent", "risk"})
_DENIALS = frozenset({"no", "without"})
_MEANS = frozenset({"with", "on", "in", "by", "use", "using", "ride", "riding"})
_JOINS = frozenset({"and", "or", "as", "well", "also", "other", "either", "both", "nor", ","})
_QUIET = frozenset({"a", "an", "the", "in", "on", "with", "person"})
#: How many words before a name are looked at, and how many may stand between two that are joined.
_NEAR, _BETWEEN = 3, 5


@dataclass(frozen=True)
class Thing:
    """An element that a text names, and the indices of the words."""

    element: Element
    indices: tuple[int, ...]

    @property
    def start(self) -> int:
        """Index of its first word."""
        return self.indices[0]


@dataclass(frozen=True)
class Place:
    """A road that a text names, and the indices of the words."""

    road: Road
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Nouns:
    """What a text names, each in the order of the text."""

    things: tuple[Thing, ...]
    places: tuple[Place, ...]

    @property
    def taken(self) -> frozenset[int]:
        """Indices of all their words."""
        rows = [*(one.indices for one in self.things), *(one.indices for one in self.places)]
        return frozenset(i for row in rows for i in row)


def nouns_in(tokens: Sequence[Token], ontology: Ontology) -> Nouns:
    """Return roads and elements; each word is of one of them at most, and phrases of more words come first."""
    words = frozenset(form for token in tokens for form in token.forms)
    usable = [(p, term) for p, term in ontology.nouns if all(choice & words for part in p.parts for choice in part)]
    whole = _rows(tokens, usable)
    free = [True] * len(tokens)
    taken: list[tuple[tuple[int, ...], Term]] = []
    for phrase, term in usable:
        for indices in found(phrase, tokens, free):
            if all(free[i] for i in indices) and not _torn(phrase, indices, whole):
                taken.append((indices, term))
                for i in indices:
                    free[i] = False
    taken.sort(key=lambda row: row[0])
    things = tuple(Thing(term, indices) for indices, term in taken if isinstance(term, Element))
    return Nouns(things, tuple(Place(term, indices) for indices, term in taken if isinstance(term, Road)))


def met(tokens: Sequence[Token], nouns: Nouns, ontology: Ontology) -> list[Thing]:
    """Return what the ego may meet: elements but itself and what is to be prevented; if none, what marks the roads."""
    things = [one for one in nouns.things if not _is_ego(tokens, one) and not _before(tokens, one.start) & _AVOIDED]
    marked = [one for one in nouns.places if one.road.marked_by]
    return things or [Thing(ontology.elements[one.road.marked_by], one.indices) for one in marked]


def reasons(tokens: Sequence[Token], things: Sequence[Thing]) -> list[Thing]:
    """Return the element that a rule is about, and those that are joined to it."""
    weights = [_weight(tokens, one) for one in things]
    best = weights.index(max(weights))
    if best + 1 < len(things) and _means(tokens, things[best], things[best + 1]):
        best += 1
    first = last = best
    while first > 0 and _joined(tokens, things[first - 1], things[first]):
        first -= 1
    while last + 1 < len(things) and _joined(tokens, things[last], things[last + 1]):
        last += 1
    return list(things[first : last + 1])


def road_of(tokens: Sequence[Token], places: Sequence[Place], element: Element, otherwise: str) -> str:
    """Return the road that is named: the element's own, else the first behind a word of place, else the first."""
    names = [one.road.name for one in places]
    if element.road in names or not names:
        return element.road or otherwise
    placed = [one.road.name for one in places if _before(tokens, one.indices[0]) & _LOCATIVES]
    return (placed or names)[0]


def _is_ego(tokens: Sequence[Token], one: Thing) -> bool:
    """Whether "motor vehicles" and the like are who the rule is for, not whom they meet."""
    vague = one.element.weak and one.element.category == "objects"
    around = _before(tokens, one.start) | tokens[one.start].forms
    return vague and not around & (_TARGETS | _YIELDS | _OPENERS | PASSES)


def _rows(tokens: Sequence[Token], nouns: Sequence[tuple[Phrase, Term]]) -> list[tuple[int, ...]]:
    """Return the words of every name of several words in a row."""
    free = [True] * len(tokens)
    several = [p for p, term in nouns if len(p.parts) == 1 and p.size > 1 and not getattr(term, "weak", False)]
    return [indices for phrase in several for indices in found(phrase, tokens, free)]


def _torn(phrase: Phrase, indices: tuple[int, ...], whole: Sequence[tuple[int, ...]]) -> bool:
    """Whether a phrase of parts takes a word out of the middle of another name: "bus" of "bus stop"."""
    mine = set(indices)
    return len(phrase.parts) > 1 and any(0 < len(mine & set(row)) < len(row) for row in whole)


def _means(tokens: Sequence[Token], one: Thing, following: Thing) -> bool:
    """Whether what follows a general word tells who is meant: people with a wheelchair."""
    between = {token.text for token in tokens[max(one.indices) + 1 : following.start]}
    alike = one.element.general and following.element.category == one.element.category
    return alike and len(between) < _BETWEEN and bool(between & _MEANS) and not between & _JOINS


def _weight(tokens: Sequence[Token], one: Thing) -> float:
    """How much an element looks like the reason of a rule, by where it stands."""
    before = _before(tokens, one.start)
    clause = [token for token in tokens[: one.start] if token.clause == tokens[one.start].clause]
    opener = max((i for i, token in enumerate(clause) if token.forms & _OPENERS), default=None)
    weight = 1.0 if one.element.category == "objects" else 1.5
    weight -= 3.0 * one.element.weak
    weight -= 3.0 * bool(clause and clause[-1].text in _DENIALS)
    weight -= 2.0 * ({"as", "would"} <= {token.text for token in clause})  # "as you would for somebody else"
    if opener is not None:
        weight += 2.0 if len(clause) - opener <= _NEAR else 1.5
    if one.element.category != "environment":
        weight += 1.0 * bool(before & _TARGETS)
    weight += 2.5 * bool(before & _YIELDS) + 1.5 * bool(before & PASSES)
    return weight + 0.5 * (one.start <= _NEAR)


def _joined(tokens: Sequence[Token], left: Thing, right: Thing) -> bool:
    """Whether only "and", "or", commas and words of manner stand between two elements of one category."""
    between = tokens[max(left.indices) + 1 : right.start]
    alike = left.element.category == right.element.category and not (left.element.weak or right.element.weak)
    joins = any(token.text in _JOINS for token in between)
    return alike and joins and len(between) <= _BETWEEN and all(map(_is_quiet, between))


def _is_quiet(token: Token) -> bool:
    """Whether a word joins, or only tells more of what follows: "disabled", "small", "noisy"."""
    adjective = token.text.endswith(("y", "ed", "al", "ous"))
    return adjective or bool(token.forms & (_JOINS | _QUIET))


def _before(tokens: Sequence[Token], start: int) -> frozenset[str]:
    """Forms of the words right before."""
    return frozenset(form for token in tokens[max(0, start - _NEAR) : start] for form in token.forms)
