# SPDX-License-Identifier: Apache-2.0
"""The behaviour that a rule demands: its words, their negation, and the choice among several."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from mt_nodes.rules.grammar import words
from mt_nodes.rules.ontology import Ontology
from mt_nodes.rules.phrases import PUNCTUATION, Phrases, Token, found, words_of

_OFFENCES = words("offences")
_NEGATIONS = _OFFENCES | words("negations")
_FAILURES = words("failures")
_DUTIES = words("duties")
_CONTRASTS = words("contrasts")
_PERMISSIONS = words("permissions")
_ALTERNATIVES = words("alternatives")
_MANNER = words("manner")
_POSSESSIVES = words("possessives")
_AT_A = frozenset((word, "a") for word in words("noun_prepositions"))
_OTHERS_VERBS = words("others_verbs")
_EGO_VERBS = words("ego_verbs")
_CLAUSE_PREPOSITIONS = words("clause_prepositions")
_WHILE_WORDS = words("while_words")
_LATER = frozenset((word, "you") for word in words("later_words"))
_BE_FORMS = words("be_forms")
_GRANTS = words("grants")
_OBLIGATIONS = _DUTIES | words("obligations")
_COMPARATIVES = words("comparatives")
_AUXILIARIES = words("auxiliaries")
_SCOPE, _TRIES = 8, 4


@dataclass(frozen=True)
class Cue:
    """Words at ``indices`` that demand a behaviour; ``negated``: by negating another one."""

    behaviour: str
    phrase: str
    indices: tuple[int, ...]
    negated: bool


def cues_in(tokens: Sequence[Token], free: Sequence[bool], others: Sequence[int], ontology: Ontology) -> list[Cue]:
    """Return the demands, in the order of the text.

    ``free``: words that belong to no name. ``others``: where names of people, animals and vehicles begin.
    """
    idle: set[tuple[str, tuple[int, ...]]] = set()
    for _ in range(_TRIES):
        hits = _hits(tokens, free, ontology, idle)
        denied = _negated(tokens, free, [indices for _, indices in hits])
        cues = [
            Cue(
                "" if no and _idle(tokens, indices[0], others, text, ontology) else _meaning(text, no, ontology),
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


def is_aim(tokens: Sequence[Token], cue: Cue) -> bool:
    """Whether letting somebody do something is the purpose of another action: "move right to let them pass"."""
    start = cue.indices[0]
    before = [token.text for token in tokens[max(0, start - 2) : start]]
    return bool(tokens[start].forms & _GRANTS) and before[-1:] == ["to"] and not set(before) & _OBLIGATIONS


def opposes(tokens: Sequence[Token], free: Sequence[bool], ontology: Ontology) -> bool:
    """Whether a sentence or part of it begins with an action that other rules forbid, such as ignoring something."""
    hits = _hits(tokens, free, ontology, ())
    denied = _negated(tokens, free, [indices for _, indices in hits])
    affirmed = [text for (text, at), no in zip(hits, denied, strict=True) if not no and _leads(tokens, at[0])]
    return any(text in one.says_not for text in affirmed for one in ontology.behaviours.values())


def _leads(tokens: Sequence[Token], i: int) -> bool:
    return i == 0 or tokens[i - 1].text in PUNCTUATION


def _hits(
    tokens: Sequence[Token], free: Sequence[bool], ontology: Ontology, idle: Collection[tuple[str, tuple[int, ...]]]
) -> list[tuple[str, tuple[int, ...]]]:
    """Return phrases and their words, in the order of the text; longer phrases have priority, idle ones are skipped."""
    left = list(free)
    hits: list[tuple[str, tuple[int, ...]]] = []
    phrases = _phrases(ontology)
    for phrase in (phrases.rows[i] for i in phrases.among(words_of(tokens))):
        for indices in found(phrase, tokens, left):
            fits = all(left[i] for i in indices) and not (
                _noun(tokens, indices) or _of_other_agent(tokens, free, indices[0])
            )
            if fits and (phrase.text, indices) not in idle:
                hits.append((phrase.text, indices))
                for i in indices:
                    left[i] = False
    return sorted(hits, key=lambda hit: hit[1])


def _idle(tokens: Sequence[Token], start: int, others: Sequence[int], text: str, ontology: Ontology) -> bool:
    """Whether a negated phrase demands nothing: somebody else acts, or there is no obligation."""
    near = tokens[max(0, start - _SCOPE) : start]
    excused = any(token.forms & _DUTIES for token in near if token.clause == tokens[start].clause)
    demanded = any(text in one.says for one in ontology.behaviours.values())
    return (excused and not demanded) or _of_another(tokens, start, others)


def _of_another(tokens: Sequence[Token], start: int, others: Sequence[int]) -> bool:
    """Whether the negated action is somebody else's: "a train cannot stop"."""
    clause = [i for i, token in enumerate(tokens) if token.clause == tokens[start].clause]
    before = [i for i in others if i < start and i in clause and tokens[clause[0]].text not in _CLAUSE_PREPOSITIONS]
    between = {token.text for token in tokens[before[-1] : start]} if before else set()
    return bool(between & _OTHERS_VERBS) and not between & (_EGO_VERBS | _DUTIES)


def _noun(tokens: Sequence[Token], indices: tuple[int, ...]) -> bool:
    """Whether a single word after "its", "the" or "at a" is a noun: "its stop"."""
    before = [token.text for token in tokens[max(0, indices[0] - 2) : indices[0]]]
    return len(indices) == 1 and bool(before) and (before[-1] in _POSSESSIVES or tuple(before) in _AT_A)


def _of_other_agent(tokens: Sequence[Token], free: Sequence[bool], start: int) -> bool:
    """Whether a phrase begins with what somebody else does, or what the ego does already or only then."""
    if tuple(token.text for token in tokens[max(0, start - 2) : start]) in _LATER:
        return True
    if not start or not tokens[start].text.endswith("ing"):
        return False
    before = tokens[start - 1].text
    named = not free[start - 1] and before not in PUNCTUATION
    if before in _BE_FORMS and tokens[max(0, start - 2)].text == "you":
        return bool(words_of(tokens[max(0, start - 4) : start - 2]) & _WHILE_WORDS)
    return named or before in _BE_FORMS


@lru_cache(maxsize=8)
def _phrases(ontology: Ontology) -> Phrases:
    texts = {text for one in ontology.behaviours.values() for text in (*one.says, *one.says_not)}
    return Phrases(tuple(sorted(map(ontology.lexicon.phrase, sorted(texts)), key=lambda phrase: -phrase.size)))


def _meaning(text: str, negated: bool, ontology: Ontology) -> str:
    """Return the first behaviour that a phrase demands, negated or not; empty if there is none."""
    behaviours = ontology.behaviours.values()
    if not negated:
        return next((one.name for one in behaviours if text in one.says), "")
    forbids = (one.name for one in behaviours if text in one.says_not)
    denies = (one.denied for one in behaviours if text in one.says)
    return next((name for name in (*forbids, *denies) if name), "")


def _negated(tokens: Sequence[Token], free: Sequence[bool], hits: Sequence[tuple[int, ...]]) -> list[bool]:
    """Return for each phrase whether a negation shortly before it applies to it.
    A negation before another phrase joined to it by "or" also applies.
    """
    negated: list[bool] = []
    aside = _parentheses(tokens)
    for n, indices in enumerate(hits):
        end = hits[n - 1][-1] if n else -1
        no = False
        skipped = sum(i in aside for i in range(end + 1, indices[0]))
        for i in range(indices[0] - 1, max(-1, indices[0] - 1 - _SCOPE - skipped), -1):
            if i in aside and indices[0] not in aside:
                continue
            if (
                tokens[i].text in PUNCTUATION
                or tokens[i].text in _CONTRASTS
                or (tokens[i].forms & _FAILURES and i != end)
            ):
                break
            if i == end:
                between = {token.text for token in tokens[end + 1 : indices[0]]}
                manner = bool(between) and between <= _MANNER
                no = negated[-1] and (manner or bool(between & _ALTERNATIVES))
                break
            if free[i] and tokens[i].forms & _NEGATIONS and not _of_number(tokens, i, indices[0]):
                no = True
                break
        inner = (i for i in range(indices[0], indices[-1]) if free[i] and tokens[i].forms & _NEGATIONS)
        within = any(not _of_number(tokens, i, indices[-1]) for i in inner)
        negated.append(no or within or _forbidden(tokens, free, indices))
    return negated


def _parentheses(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the indices of parentheses between commas after "must" and the like: "shall, when passing them, drive"."""
    commas = [i for i, token in enumerate(tokens) if token.text == ","]
    rows = [range(one, two + 1) for one, two in pairwise(commas) if one and tokens[one - 1].text in _AUXILIARIES]
    return frozenset(i for row in rows for i in row if tokens[row[0]].sentence == tokens[row[-1]].sentence)


def _of_number(tokens: Sequence[Token], i: int, start: int) -> bool:
    """Whether a negation belongs to a comparison before a phrase: "at no more than 20 mph past", "not less than"."""
    return i + 1 < start and tokens[i + 1].text in _COMPARATIVES


def _forbidden(tokens: Sequence[Token], free: Sequence[bool], indices: tuple[int, ...]) -> bool:
    """Whether a later word forbids the action: "overtaking here is prohibited", "turning is not allowed"."""
    end = indices[-1]
    gerund = any(tokens[i].text.endswith("ing") for i in indices)
    if not gerund and not (end + 1 < len(tokens) and tokens[end + 1].text in _BE_FORMS):
        return False
    rest = [token for token, usable in zip(tokens[end + 1 :], free[end + 1 :], strict=True) if usable]
    same_clause = [token for token in rest if token.clause == tokens[end].clause]
    allowed = any(one.text == "not" and other.forms & _PERMISSIONS for one, other in pairwise(same_clause))
    return allowed or any(token.forms & _OFFENCES for token in same_clause)
