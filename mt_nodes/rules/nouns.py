# SPDX-License-Identifier: Apache-2.0
"""The roads and elements that a rule names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from mt_nodes.rules.grammar import words
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.phrases import PUNCTUATION, Phrase, Phrases, Token, found, words_of
from mt_nodes.rules.terms import Element, RoadTerm, Term

OPENERS = words("openers")
TARGETS = words("targets")
LOCATIVES = words("locatives")
_ELSEWHERE = words("elsewhere")
YIELDS = words("yields")
PASSES = words("passes")
_VEHICLE_HEADS = words("vehicle_heads")
_AVOIDANCES = words("avoidances")
_DRIVERS = words("drivers")
_DRIVING_VERBS = words("driving_verbs")
_SUBJECT_WORDS = words("subject_words")
_MODALS = words("modals")
_RELATIVES = words("relatives")
_MODAL_ADVERBS = words("modal_adverbs")
_DUE_TO_OTHERS = _MODAL_ADVERBS | words("due_to_others")
_COLOUR_CONTEXTS = words("colour_contexts")
_COLOUR_VERBS = words("colour_verbs")
_COLOUR_ENDS = _COLOUR_VERBS | OPENERS | words("colour_ends")
#: How many words before a name count, and how many may stand between two joined names.
NEAR, BETWEEN = 3, 5


@dataclass(frozen=True)
class ElementMention:
    """An element in a text, and the indices of its words."""

    element: Element
    indices: tuple[int, ...]

    @property
    def start(self) -> int:
        """Index of its first word."""
        return self.indices[0]


@dataclass(frozen=True)
class RoadMention:
    """A road in a text, and the indices of its words."""

    road: RoadTerm
    indices: tuple[int, ...]


@dataclass(frozen=True)
class Nouns:
    """The names in a text, each in the order of the text."""

    things: tuple[ElementMention, ...]
    places: tuple[RoadMention, ...]

    @property
    def taken(self) -> frozenset[int]:
        """Indices of all their words."""
        rows = [*(one.indices for one in self.things), *(one.indices for one in self.places)]
        return frozenset(i for row in rows for i in row)


def nouns_in(tokens: Sequence[Token], ontology: Ontology) -> Nouns:
    """Return roads and elements; each word belongs to one at most, and longer phrases have priority."""
    usable = [ontology.nouns[i] for i in _phrases(ontology).among(words_of(tokens))]
    whole = _rows(tokens, usable)
    free = [True] * len(tokens)
    taken: list[tuple[tuple[int, ...], Term]] = []
    for phrase, term in usable:
        for indices in found(phrase, tokens, free):
            if all(free[i] for i in indices) and not _torn(tokens, phrase, term, indices, whole):
                taken.append((indices, term))
                for i in indices:
                    free[i] = False
    taken.sort(key=lambda row: row[0])
    things = tuple(ElementMention(term, indices) for indices, term in taken if isinstance(term, Element))
    return Nouns(things, tuple(RoadMention(term, indices) for indices, term in taken if isinstance(term, RoadTerm)))


def elements_ahead(tokens: Sequence[Token], nouns: Nouns, ontology: Ontology) -> list[ElementMention]:
    """Return the elements that the ego may meet: without the ego itself and what must be prevented.

    If there are none: the meaning of a bare word, else the elements that mark the roads.
    """
    things = [
        one for one in nouns.things if not _is_ego(tokens, one) and not words_before(tokens, one.start) & _AVOIDANCES
    ]
    bare = {word: one for one in ontology.elements.values() for word in one.bare}
    free = (i for i in range(len(tokens)) if i not in nouns.taken)
    named = [ElementMention(bare[word], (i,)) for i in free for word in tokens[i].forms & bare.keys()]
    colours = [one for one in named if one.element.category == "infrastructure" and _is_light_colour(tokens, one.start)]
    things = sorted([*things, *colours], key=lambda one: one.start)
    if not things:
        things = [one for one in named if _is_element(tokens, one.start)][:1]
    marked = [one for one in nouns.places if one.road.marked_by]
    return things or [ElementMention(ontology.elements[one.road.marked_by], one.indices) for one in marked]


def road_of(tokens: Sequence[Token], places: Sequence[RoadMention], element: Element, otherwise: str) -> str:
    """Return the named road: the element's own, else the first spot or area after a locative, if any."""
    places = [one for one in places if not words_before(tokens, one.indices[0]) & _ELSEWHERE]
    names = [one.road.name for one in places]
    if element.road in names or not names:
        return element.road or otherwise
    placed = [one for one in places if words_before(tokens, one.indices[0]) & LOCATIVES] or places
    spots = [one for one in placed if not one.road.area] or placed
    bare = any(tokens[i].text == "crossing" for i in spots[0].indices)
    return element.crossing if bare and element.crossing else spots[0].road.name


def _is_ego(tokens: Sequence[Token], one: ElementMention) -> bool:
    """Whether a name means the ego vehicle: "drivers of trucks", "buses must", "motor vehicles"."""
    if one.element.category != "objects":
        return False
    around = words_before(tokens, one.start)
    follows = {token.text for token in tokens[max(one.indices) + 1 : max(one.indices) + 2]}
    drivers = around & _DRIVERS if follows & _MODALS else around & _DRIVERS - {"rider"}
    ahead = [token.text for token in tokens[: one.start] if token.clause == tokens[one.start].clause]
    passed = any(token.forms & PASSES for token in tokens[: one.start] if token.clause == tokens[one.start].clause)
    if "of" in around and drivers and not passed and not around & YIELDS:
        return True
    after = [token.text for token in tokens[max(one.indices) + 1 : max(one.indices) + 3]]
    if _SUBJECT_WORDS.issuperset(ahead) and len(after) == 2 and after[0] in _MODALS and after[1] not in _DUE_TO_OTHERS:
        return True
    if _SUBJECT_WORDS.issuperset(ahead) and _is_bound(tokens, max(one.indices) + 1):
        return True
    around |= {form for i in one.indices for form in tokens[i].forms}
    return one.element.weak and not around & (TARGETS | YIELDS | OPENERS | PASSES)


def _is_bound(tokens: Sequence[Token], start: int) -> bool:
    """Whether a qualified subject has an obligation: "vehicles let into the zone must"."""
    rest = [token.text for token in tokens[start:] if token.clause == tokens[start - 1].clause]
    duty = next((i for i, word in enumerate(rest) if word in _MODALS), 0)
    bound = duty > 0 and (rest[0].endswith(("ing", "ed")) or rest[0] in _RELATIVES)
    deed = next((word for word in rest[duty + 1 :] if word not in _MODAL_ADVERBS), "")
    return bound and rest[duty - 1] != "you" and deed not in _DUE_TO_OTHERS


def _is_element(tokens: Sequence[Token], i: int) -> bool:
    """Whether an ambiguous word means something that the ego meets: "let people cross", "on red"."""
    if i and tokens[i - 1].text == "no":
        return False
    after = {form for token in tokens[i + 1 : i + 4] for form in token.forms}
    signals = words_before(tokens, i) & (TARGETS | YIELDS | OPENERS | LOCATIVES)
    return not after & (_MODALS | _DRIVING_VERBS) and bool(signals or i <= 1)


def _is_light_colour(tokens: Sequence[Token], i: int) -> bool:
    """Whether a colour is that of an unnamed light: "on red", "amber means stop", "wait for green"."""
    before = words_of(tokens[max(0, i - 1) : i])
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    ends = after is None or after.text in PUNCTUATION or bool(after.forms & _COLOUR_ENDS)
    return ends and bool(before & _COLOUR_CONTEXTS or (after and after.forms & _COLOUR_VERBS))


def _rows(tokens: Sequence[Token], nouns: Sequence[tuple[Phrase, Term]]) -> list[tuple[int, ...]]:
    """Return the words of every name of several consecutive words."""
    free = [True] * len(tokens)
    vague = [isinstance(term, Element) and (term.weak or term.general) for _, term in nouns]
    several = [p for (p, _), no in zip(nouns, vague, strict=True) if len(p.parts) == 1 and p.size > 1 and not no]
    return [indices for phrase in several for indices in found(phrase, tokens, free)]


def _torn(
    tokens: Sequence[Token], phrase: Phrase, term: Term, indices: tuple[int, ...], whole: Sequence[tuple[int, ...]]
) -> bool:
    """Whether a phrase of parts or of a general term takes a word of another name: "bus" of "bus stop"."""
    own = set(indices)
    loose = len(phrase.parts) > 1 or (isinstance(term, Element) and term.general)
    if loose and any(0 < len(own & set(row)) < len(row) for row in whole):
        return True
    # "An ambulance behind you" does not name a vehicle behind you.
    return tokens[indices[0]].text in _VEHICLE_HEADS and any(
        row[0] < indices[0] <= row[-1] and row[-1] - row[0] < len(row) for row in whole
    )


def words_before(tokens: Sequence[Token], start: int) -> frozenset[str]:
    """Return the forms of the preceding words."""
    return words_of(tokens[max(0, start - NEAR) : start])


@lru_cache(maxsize=8)
def _phrases(ontology: Ontology) -> Phrases:
    return Phrases(tuple(phrase for phrase, _ in ontology.nouns))
