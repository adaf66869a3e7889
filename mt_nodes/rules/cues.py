# SPDX-License-Identifier: Apache-2.0
"""What a rule asks the ego-vehicle to do: the words for it, whether they are negated, and which of several counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.words import PUNCTUATION, Phrase, Token, found

_NEGATIONS = frozenset(
    {
        "not",
        "no",
        "never",
        "nobody",
        "none",
        "neither",
        "nor",
        "without",
        "forbid",
        "prohibit",
        "ban",
        "avoid",
        "refrain",
        "unlawful",
        "illegal",
    }
)
_FORBIDS = frozenset({"forbid", "prohibit", "prohibited", "ban", "banned", "illegal", "unlawful"})
_ALLOWED = frozenset({"allow", "allowed", "permit", "permitted"})
_JOINS = frozenset({"or", "nor"})
_OWNERS = frozenset({"its", "their", "the", "your"})
_AT_A = frozenset({("at", "a"), ("from", "a"), ("near", "a")})
_OF_THEM = frozenset({"can", "does", "do", "did"})
_OF_YOU = frozenset({"you", "driver", "must", "may", "shall", "nobody"})
_SCOPE, _TRIES = 7, 4


@dataclass(frozen=True)
class Cue:
    """Words at ``indices`` that ask for a behaviour; ``negated``: by denying another."""

    behaviour: str
    phrase: str
    indices: tuple[int, ...]
    negated: bool


def cues_in(tokens: Sequence[Token], free: Sequence[bool], others: Sequence[int], ontology: Ontology) -> list[Cue]:
    """Return what is asked for, in the order of the text.

    Args:
        free: words that are no part of a name. others: where names of people, animals and vehicles begin.
    """
    idle: set[tuple[str, tuple[int, ...]]] = set()
    for _ in range(_TRIES):
        hits = _hits(tokens, free, ontology, idle)
        denied = _negated(tokens, free, [indices for _, indices in hits])
        cues = [
            Cue(
                "" if no and _of_another(tokens, indices[0], others) else _meaning(text, no, ontology),
                text,
                indices,
                no,
            )
            for (text, indices), no in zip(hits, denied, strict=True)
        ]
        fresh = {(cue.phrase, cue.indices) for cue in cues if not cue.behaviour} - idle
        if not fresh:
            break
        idle |= fresh
    return [cue for cue in cues if cue.behaviour]


def _hits(
    tokens: Sequence[Token], free: Sequence[bool], ontology: Ontology, idle: Collection[tuple[str, tuple[int, ...]]]
) -> list[tuple[str, tuple[int, ...]]]:
    """Return phrases and their words, in the order of the text; longer phrases first, those that say nothing never."""
    left = list(free)
    hits: list[tuple[str, tuple[int, ...]]] = []
    for phrase in _phrases(ontology):
        for indices in found(phrase, tokens, left):
            fits = all(left[i] for i in indices) and not _noun(tokens, indices)
            if fits and (phrase.text, indices) not in idle:
                hits.append((phrase.text, indices))
                for i in indices:
                    left[i] = False
    return sorted(hits, key=lambda hit: hit[1])


def _of_another(tokens: Sequence[Token], start: int, others: Sequence[int]) -> bool:
    """Whether what is denied is what somebody else does: "a train cannot stop"."""
    before = [i for i in others if i < start and tokens[i].clause == tokens[start].clause]
    between = {token.text for token in tokens[before[-1] : start]} if before else set()
    return bool(between & _OF_THEM) and not between & _OF_YOU


def _noun(tokens: Sequence[Token], indices: tuple[int, ...]) -> bool:
    """Whether a lone word behind "its", "the" or "at a" is a noun: "its stop"."""
    before = [token.text for token in tokens[max(0, indices[0] - 2) : indices[0]]]
    return len(indices) == 1 and bool(before) and (before[-1] in _OWNERS or tuple(before) in _AT_A)


@lru_cache(maxsize=8)
def _phrases(ontology: Ontology) -> list[Phrase]:
    texts = {text for one in ontology.behaviours.values() for text in (*one.says, *one.says_not)}
    return sorted(map(ontology.lexicon.phrase, sorted(texts)), key=lambda phrase: -phrase.size)


def _meaning(text: str, negated: bool, ontology: Ontology) -> str:
    """Return the first behaviour that a phrase asks for, as it stands or negated; empty: none."""
    behaviours = ontology.behaviours.values()
    if not negated:
        return next((one.name for one in behaviours if text in one.says), "")
    forbids = (one.name for one in behaviours if text in one.says_not)
    denies = (one.denied for one in behaviours if text in one.says)
    return next((name for name in (*forbids, *denies) if name), "")


def _negated(tokens: Sequence[Token], free: Sequence[bool], hits: Sequence[tuple[int, ...]]) -> list[bool]:
    """Return of each phrase whether a negation shortly before it, or before what it is joined to by "or", is of it."""
    told: list[bool] = []
    for n, indices in enumerate(hits):
        end = hits[n - 1][-1] if n else -1
        no = False
        for i in range(indices[0] - 1, max(-1, indices[0] - 1 - _SCOPE), -1):
            if tokens[i].text in PUNCTUATION:
                break
            if i == end:
                between = {token.text for token in tokens[end + 1 : indices[0]]}
                no = told[-1] and bool(between & _JOINS)
                break
            if free[i] and tokens[i].forms & _NEGATIONS:
                no = True
                break
        within = any(free[i] and tokens[i].forms & _NEGATIONS for i in range(indices[0], indices[-1]))
        told.append(no or within or _forbidden(tokens, free, indices[-1]))
    return told


def _forbidden(tokens: Sequence[Token], free: Sequence[bool], end: int) -> bool:
    """Whether what is done is forbidden behind it: "overtaking here is prohibited", "turning is not allowed"."""
    if not tokens[end].text.endswith("ing"):
        return False
    rest = [token for token, usable in zip(tokens[end + 1 :], free[end + 1 :], strict=True) if usable]
    here = [token for token in rest if token.clause == tokens[end].clause]
    allowed = any(one.text == "not" and other.forms & _ALLOWED for one, other in pairwise(here))
    return allowed or any(token.forms & _FORBIDS for token in here)
