# SPDX-License-Identifier: Apache-2.0
"""Which roads and elements a rule names, and which of the elements it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mt_nodes.rules.ontology import Element, Ontology, Road, Term
from mt_nodes.rules.words import Phrase, Token, excepted, found, words_of

_OPENERS = frozenset({"when", "whenever", "if", "where", "wherever", "while", "once", "because"})
_EVENTS = frozenset({"when", "whenever", "if", "once"})
_TARGETS = frozenset(
    {"for", "to", "past", "behind", "at", "near", "of", "by", "around", "through", "about", "after", "from", "against"}
)
_LOCATIVES = frozenset(
    {"at", "in", "on", "into", "onto", "near", "before", "from", "inside", "through", "off", "over", "along", "beyond"}
    | {"leave", "enter", "reach", "approach", "within", "around", "to"}
)
_ELSEWHERE = frozenset({"away", "outside", "without", "no"})
_YIELDS = frozenset({"let", "yield", "priority", "allow", "give"})
PASSES = frozenset({"overtake", "pass"})
_PASSED = PASSES | {"past"}
_AVOIDED = frozenset({"avoid", "prevent", "risk"})
_DENIALS = frozenset({"no", "without"})
_MEANS = frozenset(
    {"with", "on", "in", "by", "use", "using", "ride", "riding", "carry", "tow", "pull", "push"}
    | {"like", "including", "because", "due"}
)
_DESPITE = frozenset({"even", "despite", "although", "though", "notwithstanding", "regardless"})
_EXPECTS = frozenset({"expect", "anticipate", "reckon"})
_HIDES = frozenset({"between", "hide", "hidden"})
_LIKE = frozenset({"as", "like"})
_MAY = frozenset({"may", "might", "could"})
_GAPS = frozenset({"distance", "gap", "second"})
_PRONOUNS = frozenset({"it", "them", "him", "her"})
_DRIVERS = frozenset({"driver", "rider", "operator", "owner"})
_DRIVES = frozenset({"drive", "driving", "operate", "ride", "may"})
_SUBJECT = frozenset({"a", "an", "the", "every", "each", "all", "any", "no", "and", "or", "both"})
_DUTIES = frozenset({"must", "shall", "should"})
#: Behind a duty: what is due to others, not what they have to do.
_DUE = frozenset({"be", "have", "get", "receive", "always", "never", "not"})
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
    words = words_of(tokens)
    usable = [(phrase, term) for phrase, term in ontology.nouns if phrase.is_among(words)]
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
    """Return what the ego may meet: elements but itself and what is to be prevented.

    If there are none: what a bare word may mean, else what marks the roads.
    """
    things = [one for one in nouns.things if not _is_ego(tokens, one) and not _before(tokens, one.start) & _AVOIDED]
    if not things:
        bare = {word: one for one in ontology.elements.values() for word in one.bare}
        named = (
            (i, bare[w]) for i, token in enumerate(tokens) if i not in nouns.taken for w in token.forms & bare.keys()
        )
        things = [Thing(element, (i,)) for i, element in named if _is_met(tokens, i)][:1]
    marked = [one for one in nouns.places if one.road.marked_by]
    return things or [Thing(ontology.elements[one.road.marked_by], one.indices) for one in marked]


def reasons(tokens: Sequence[Token], things: Sequence[Thing], behaviour: str, cue: int) -> list[Thing]:
    """Return the element that a rule is about, and those that are joined to it.

    Args:
        behaviour: what it asks for. cue: index of the word that asks for it, the number of words if none does.
    """
    meant = _meant(tokens, things)
    weights = [_weight(tokens, one) + 2.0 * (one.start in meant) for one in things]
    near = [one for one in things if one.start > cue and tokens[one.start].clause == tokens[cue].clause]
    for i, one in enumerate(things):
        # "In rain, keep away from trucks" is about trucks.
        rest = one.element.category == "environment" and one.start < cue
        weights[i] -= 0.5 * (rest and any(other.element.category == "objects" for other in near))
        # Who has to wait in spite of a green light waits for something else.
        weights[i] -= 2.5 * bool(behaviour and one.element.asks and one.element.asks != behaviour)
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
    """Return the road that is named: the element's own, else the first spot or area behind a word of place, if any."""
    places = [one for one in places if not _before(tokens, one.indices[0]) & _ELSEWHERE]
    names = [one.road.name for one in places]
    if element.road in names or not names:
        return element.road or otherwise
    placed = [one for one in places if _before(tokens, one.indices[0]) & _LOCATIVES] or places
    spots = [one for one in placed if not one.road.area] or placed
    bare = any(tokens[i].text == "crossing" for i in spots[0].indices)
    return element.crossing if bare and element.crossing else spots[0].road.name


def _is_ego(tokens: Sequence[Token], one: Thing) -> bool:
    """Whether a name is of whom the rule is for: "drivers of trucks", "buses must", "motor vehicles"."""
    if one.element.category != "objects":
        return False
    around = _before(tokens, one.start)
    if "of" in around and around & _DRIVERS and not around & _YIELDS:
        return True
    ahead = [token.text for token in tokens[: one.start] if token.clause == tokens[one.start].clause]
    after = [token.text for token in tokens[max(one.indices) + 1 : max(one.indices) + 3]]
    if _SUBJECT.issuperset(ahead) and len(after) == 2 and after[0] in _DUTIES and after[1] not in _DUE:
        return True
    around |= {form for i in one.indices for form in tokens[i].forms}
    return one.element.weak and not around & (_TARGETS | _YIELDS | _OPENERS | PASSES)


def _is_met(tokens: Sequence[Token], i: int) -> bool:
    """Whether a word that may mean much is for what the ego meets: "let people cross", "on red"."""
    if i and tokens[i - 1].text == "no":
        return False
    after = {form for token in tokens[i + 1 : i + 4] for form in token.forms}
    there = _before(tokens, i) & (_TARGETS | _YIELDS | _OPENERS | _LOCATIVES)
    return not after & (_DUTIES | _DRIVES) and bool(there or i <= 1)


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
    row = tokens[max(one.indices) + 1 : following.start]
    between = {form for token in row for form in token.forms}
    named = "such" in between or (bool(between & _MEANS) and not between & _JOINS)
    alike = one.element.general and following.element.category == one.element.category
    return alike and len(row) < _BETWEEN and named


def _meant(tokens: Sequence[Token], things: Sequence[Thing]) -> frozenset[int]:
    """Return where objects begin that "it" or "them" stands for: "a tractor in the rain: do not pass it"."""
    asks = [i for i, token in enumerate(tokens) if token.text in _PRONOUNS and _before(tokens, i) & (_YIELDS | PASSES)]
    objects = [one.start for one in things if one.element.category == "objects"]
    return frozenset(max(before) for i in asks if (before := [start for start in objects if start < i]))


def _weight(tokens: Sequence[Token], one: Thing) -> float:
    """How much an element looks like the reason of a rule, by where it stands."""
    before = _before(tokens, one.start)
    clause = [token for token in tokens[: one.start] if token.clause == tokens[one.start].clause]
    opener = max((i for i, token in enumerate(clause) if token.forms & _OPENERS), default=None)
    weight = 1.0 if one.element.category == "objects" else 1.5
    weight -= 3.0 * one.element.weak
    weight -= 3.0 * bool(clause and clause[-1].text in _DENIALS)
    weight += 1.5 * bool(before & _EXPECTS) - 1.5 * bool(before & _HIDES)
    weight -= 2.5 * any(token.text in _LIKE for token in clause[-_NEAR:])
    weight -= 2.0 * ({"as", "would"} <= {token.text for token in clause})  # "as you would for somebody else"
    weight -= 4.0 * (one.start in excepted(tokens))
    weight -= 2.0 * any(token.text in _DESPITE for token in clause[-_BETWEEN:])
    weight -= 3.0 * _let_by_others(clause)
    if opener is not None:
        weight += (2.0 if len(clause) - opener <= _NEAR else 1.5) + 0.5 * bool(clause[opener].forms & _EVENTS)
    weight += 0.5 * ("for" in before)
    if one.element.category != "environment":
        weight += 1.0 * bool(before & _TARGETS) + 1.0 * bool(before & _GAPS)
    after = {token.text for token in tokens[max(one.indices) + 1 : max(one.indices) + 3]}
    weight += 1.5 * bool(after & _MAY and not (opener is not None and clause[opener].forms & _EVENTS))
    weight += 2.5 * bool(before & _YIELDS) + 1.5 * bool(before & _PASSED)
    return weight + (1.0 if one.element.category == "infrastructure" else 0.5) * (one.start <= _NEAR)


def _let_by_others(clause: Sequence[Token]) -> bool:
    """Whether somebody else has stopped for what follows: "a car that has stopped to let people cross"."""
    words = [token.text for token in clause]
    return "stopped" in words and words[words.index("stopped") + 1 :][:1] in (["to"], ["for"])


def _joined(tokens: Sequence[Token], left: Thing, right: Thing) -> bool:
    """Whether only "and", "or", commas and words of manner stand between two elements of one category."""
    between = tokens[max(left.indices) + 1 : right.start]
    alike = left.element.category == right.element.category
    alike &= left.element.category == "environment" or not (left.element.weak or right.element.weak)
    words = {token.text for token in between}
    joins = bool(words & _JOINS) and not ("as" in words and "well" not in words)
    return alike and joins and len(between) <= _BETWEEN and all(map(_is_quiet, between))


def _is_quiet(token: Token) -> bool:
    """Whether a word joins, or only tells more of what follows: "disabled", "small", "noisy"."""
    adjective = token.text.endswith(("y", "ed", "al", "ous"))
    return adjective or bool(token.forms & (_JOINS | _QUIET))


def _before(tokens: Sequence[Token], start: int) -> frozenset[str]:
    """Forms of the words right before."""
    return words_of(tokens[max(0, start - _NEAR) : start])
