# SPDX-License-Identifier: Apache-2.0
"""The element that a rule is about, by its position in the text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from mt_nodes.rules.grammar import words
from mt_nodes.rules.nouns import (
    BETWEEN,
    LOCATIVES,
    NEAR,
    OPENERS,
    PASSES,
    TARGETS,
    YIELDS,
    ElementMention,
    words_before,
)
from mt_nodes.rules.phrases import Token, excepted, words_of

_EVENTS = words("events")
_PASSED = PASSES | {"past"}
_DENIALS = words("denials")
_MEANS = words("means")
_CONCESSIONS = words("concessions")
_EXPECTATIONS = words("expectations")
_LOOKOUTS = words("lookouts")
_HIDING_PLACES = words("hiding_places")
_HIDING_VERBS = words("hiding_verbs")
_HIDDEN_BEHIND = words("hidden_behind")
_COMPARISONS = words("comparisons")
_EVEN_CONTEXTS = LOCATIVES | OPENERS | words("even_contexts")
_POSSIBILITIES = words("possibilities")
_GAPS = words("gaps")
PRONOUNS = words("pronouns")
_JOINS = words("joins")
_JOIN_QUALIFIERS = words("join_qualifiers")
_BESIDE = words("beside")
_BEARERS = words("bearers")
_LIGHT_SEPARATORS = words("light_separators")
_LED = words("led")
_PARTICIPLE_ENDINGS = tuple(words("participle_endings"))


def reasons(
    tokens: Sequence[Token], things: Sequence[ElementMention], behaviour: str, cue: int
) -> list[ElementMention]:
    """Return the element that a rule is about, and those joined to it.

    ``behaviour``: the demanded one. ``cue``: index of the demanding word, the number of words if there is none.
    """
    antecedents = _antecedents(tokens, things)
    weights = [_weight(tokens, one) + 2.0 * (one.start in antecedents) for one in things]
    near = [one for one in things if one.start > cue and tokens[one.start].clause == tokens[cue].clause]
    for i, one in enumerate(things):
        # "In rain, keep away from trucks" is about trucks.
        rest = one.element.category == "environment" and one.start < cue
        weights[i] -= 0.5 * (rest and any(other.element.category == "objects" for other in near))
        # An ego that has to wait in spite of a green light waits for something else.
        weights[i] -= 2.5 * bool(behaviour and one.element.asks and one.element.asks != behaviour)
    separate = False
    for i, (one, following) in enumerate(pairwise(things)):
        joined = i > 0 and separate and _joined(tokens, one, following)
        hides = _hides(tokens, one, following)
        weights[i] -= 1.5 * hides
        weights[i + 1] += 2.0 * hides
        weights[i + 1] -= 1.5 * _is_of(tokens, one, following)
        separate = joined or _causes(tokens, one, following) or _gives_place(tokens, one, following)
        weights[i + 1] -= 2.5 * separate
    best = weights.index(max(weights))
    links = (i for i in (best, best - 1) if 0 <= i < len(things) - 1 and _means(tokens, things[i], things[i + 1]))
    if (general := next(links, None)) is not None:
        things, best = [*things[:general], *things[general + 1 :]], general
    first = last = best
    while first > 0 and _joined(tokens, things[first - 1], things[first]):
        first -= 1
    while last + 1 < len(things) and _joined(tokens, things[last], things[last + 1]):
        last += 1
    return list(things[first : last + 1])


def _means(tokens: Sequence[Token], one: ElementMention, following: ElementMention) -> bool:
    """Whether what follows a general word or a light specifies it: people with a wheelchair, light on a bus."""
    row = tokens[max(one.indices) + 1 : following.start]
    between = {form for token in row for form in token.forms}
    if one.element.name.endswith("_light") and following.element.category == "objects":
        return bool(row) and row[0].text in _BEARERS and len(row) < BETWEEN and not between & _LIGHT_SEPARATORS
    named = "such" in between or (bool(between & _MEANS) and not between & _JOINS)
    same_category = one.element.general and following.element.category == one.element.category
    return same_category and len(row) <= BETWEEN and named


def _causes(tokens: Sequence[Token], one: ElementMention, following: ElementMention) -> bool:
    """Whether a thing is only the cause of another: "mud dropped by tractors", "a horse led by"."""
    row = [token.text for token in tokens[max(one.indices) + 1 : following.start]]
    caused = "by" in row[1:] and row[row.index("by") - 1].endswith(_PARTICIPLE_ENDINGS) and len(row) <= BETWEEN
    lies = one.element.category == "environment" or one.element.stands or not _LED.isdisjoint(row)
    return caused and lies and following.element.category == "objects"


def _hides(tokens: Sequence[Token], one: ElementMention, following: ElementMention) -> bool:
    """Whether a thing only hides somebody: "parked vans may conceal children"."""
    row = tokens[max(one.indices) + 1 : following.start]
    hidden = bool(words_of(row) & _HIDING_VERBS) and not {token.text for token in row} & _HIDDEN_BEHIND
    return hidden and following.element.category == "objects" and len({token.clause for token in row}) == 1


def _is_of(tokens: Sequence[Token], one: ElementMention, following: ElementMention) -> bool:
    """Whether what follows is the material of a thing: "a convoy of trucks", "a queue of buses"."""
    row = [token.text for token in tokens[max(one.indices) + 1 : following.start]]
    return row[:1] == ["of"] and len(row) <= NEAR and one.element.category == following.element.category == "objects"


def _gives_place(tokens: Sequence[Token], one: ElementMention, following: ElementMention) -> bool:
    """Whether a thing only gives the place of another: "children near a bus", "children on scooters"."""
    row = [token.text for token in tokens[max(one.indices) + 1 : following.start]]
    place = not _BESIDE.isdisjoint(row[:2])
    moves = one.element.category == following.element.category == "objects" and not one.element.stands
    return place and moves and not one.element.general and len(row) <= BETWEEN


def _antecedents(tokens: Sequence[Token], things: Sequence[ElementMention]) -> frozenset[int]:
    """Return where the objects of "it" or "them" begin: "a tractor in the rain: do not pass it"."""
    asks = [
        i for i, token in enumerate(tokens) if token.text in PRONOUNS and words_before(tokens, i) & (YIELDS | PASSES)
    ]
    objects = [one.start for one in things if one.element.category == "objects"]
    return frozenset(max(before) for i in asks if (before := [start for start in objects if start < i]))


def _weight(tokens: Sequence[Token], one: ElementMention) -> float:
    """Return how much an element looks like the reason of a rule, by its position."""
    before = words_before(tokens, one.start)
    clause = [token for token in tokens[: one.start] if token.clause == tokens[one.start].clause]
    opener = max((i for i, token in enumerate(clause) if token.forms & OPENERS), default=None)
    weight = 1.0 if one.element.category == "objects" else 1.5
    weight -= 3.0 * one.element.weak
    weight -= 3.0 * any(token.text in _DENIALS for token in clause[-2:])
    weight += 1.5 * bool(before & _EXPECTATIONS) - 1.5 * bool(before & _HIDING_PLACES)
    weight -= 2.5 * any(token.text in _COMPARISONS for token in clause[-NEAR:])
    weight -= 2.0 * ({"as", "would"} <= {token.text for token in clause})  # "as you would for somebody else"
    weight -= 4.0 * (one.start in excepted(tokens))
    weight -= 2.0 * _in_spite(clause[-BETWEEN:])
    weight -= 3.0 * _let_by_others(clause)
    if opener is not None:
        event = bool(clause[opener].forms & _EVENTS)
        weight += (
            (2.0 if len(clause) - opener <= NEAR else 1.5) + 0.5 * event - 0.5 * (one.element.stands and not event)
        )
    weight += 0.5 * ("for" in before)
    if one.element.category == "environment":
        weight += 1.5 * bool(before & _LOOKOUTS)
    else:
        weight += 1.0 * bool(before & TARGETS) + 1.0 * bool(before & _GAPS)
    after = {token.text for token in tokens[max(one.indices) + 1 : max(one.indices) + 3]}
    weight += 1.5 * bool(after & _POSSIBILITIES and not (opener is not None and clause[opener].forms & _EVENTS))
    weight += 2.5 * bool(before & YIELDS) + 1.5 * bool(before & _PASSED)
    return weight + (1.0 if one.element.category == "infrastructure" else 0.5) * (one.start <= NEAR)


def _in_spite(row: Sequence[Token]) -> bool:
    """Whether what follows is no reason: "despite a green light", "even at a stop sign"."""
    spite = {token.text for token in row} & _CONCESSIONS
    after = next((two.text for one, two in pairwise(row) if one.text == "even"), "")
    return bool(spite - {"even"}) or ("even" in spite and after in _EVEN_CONTEXTS)


def _let_by_others(clause: Sequence[Token]) -> bool:
    """Whether somebody else stopped for what follows: "a car that has stopped to let people cross"."""
    words = [token.text for token in clause]
    return "stopped" in words and words[words.index("stopped") + 1 :][:1] in (["to"], ["for"])


def _joined(tokens: Sequence[Token], left: ElementMention, right: ElementMention) -> bool:
    """Whether only "and", "or", commas and qualifiers stand between two elements of one category."""
    between = tokens[max(i for i in left.indices if i < right.start) + 1 : right.start]
    same_category = left.element.category == right.element.category
    same_category &= left.element.category == "environment" or not (left.element.weak or right.element.weak)
    words = {token.text for token in between}
    joins = bool(words & _JOINS) and not ("as" in words and "well" not in words)
    return same_category and joins and len(between) <= BETWEEN and all(map(_is_quiet, between))


def _is_quiet(token: Token) -> bool:
    """Whether a word is a conjunction, or only qualifies what follows: "disabled", "small", "noisy"."""
    adjective = token.text.endswith(("y", "ed", "al", "ous"))
    return adjective or bool(token.forms & (_JOINS | _JOIN_QUALIFIERS))
