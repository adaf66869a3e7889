# SPDX-License-Identifier: Apache-2.0
"""Words of a rule's text, and phrases that are matched in it in any word form."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from mt_nodes.rules.grammar import replacements, words

_TOKEN = re.compile(r"km/h|kmh|kph|mph|\d+(?:[.,]\d+)?|[^\W\d_]+(?:'[^\W\d_]+)?|[.;:!?,]")
_BREAKS = frozenset(".;!?")
PUNCTUATION = frozenset(".;:!?,")
_FILLERS = words("fillers")
_NUMBERS = replacements("numbers")
_CONTRACTIONS = replacements("contractions")
_EXCEPTIONS = words("exceptions")
_ADVERBS = words("adverbs")
_SEPARATORS = words("separators")
#: Most words between the first and the last of a phrase with separate parts.
_REACH = 16


@dataclass(frozen=True)
class Token:
    """A word or punctuation mark of a text.

    Attributes:
        text: in lower case, synonyms replaced. forms: its possible base forms, including ``text``.
        sentence, clause: numbers of its sentence and of its part between marks. quiet: it belongs to no phrase and ends
            none: it only qualifies its neighbour, as most adjectives do.
    """

    text: str
    forms: frozenset[str]
    sentence: int
    clause: int
    quiet: bool = False


def excepted(tokens: Sequence[Token]) -> frozenset[int]:
    """Return the indices of words after "unless" or "except", up to the next mark."""
    starts = {token.clause: i for i, token in reversed(list(enumerate(tokens))) if token.text in _EXCEPTIONS}
    return frozenset(i for i, token in enumerate(tokens) if i >= starts.get(token.clause, len(tokens)))


@dataclass(frozen=True)
class Phrase:
    """Parts that must all occur in one sentence, in any order; each is a sequence of words, each word one of a set."""

    text: str
    parts: tuple[tuple[frozenset[str], ...], ...]

    @property
    def size(self) -> int:
        """Number of words: longer phrases are more specific."""
        return sum(map(len, self.parts))

    @cached_property
    def choices(self) -> tuple[frozenset[str], ...]:
        """The possible words at each of its positions."""
        return tuple(choice for part in self.parts for choice in part)

    def is_among(self, words: frozenset[str]) -> bool:
        """Whether all its words occur, in any order."""
        return not any(map(words.isdisjoint, self.choices))

    @property
    def words(self) -> frozenset[str]:
        """Every word that may occur in it."""
        return frozenset(word for part in self.parts for choice in part for word in choice)


@dataclass(frozen=True)
class Lexicon:
    """Synonyms (variant, as its words -> canonical words), and the words of all phrases."""

    same: Mapping[tuple[str, ...], tuple[str, ...]]
    known: frozenset[str]

    @classmethod
    def of(cls, words: Mapping[str, Iterable[str]], phrases: Iterable[str]) -> Lexicon:
        """Build from canonical word -> variants, and the texts of all phrases."""
        same = {}
        for canonical, row in words.items():
            for variant in row:
                *start, end = _split(variant)
                for last in (f"{end}s", end):
                    same[(*start, last)] = tuple(_split(canonical))
        known = frozenset(word for text in (*phrases, *words) for word in _split(text.replace("/", " ")))
        return cls(same, known)

    def phrase(self, text: str) -> Phrase:
        """Parse ``word other/another word + word``."""
        parts = []
        for part in text.split("+"):
            choices = [self._choices(w) for w in part.split()]
            plain = " ".join("/" if len(c) > 1 else c[0] for c in choices)
            slots = iter(c for c in choices if len(c) > 1)
            words = [w for w in self._replaced(_split(plain, "/")) if w not in _FILLERS]
            parts.append(tuple(frozenset(next(slots)) if w == "/" else frozenset([w]) for w in words))
        return Phrase(text, tuple(parts))

    def _choices(self, word: str) -> list[str]:
        one_of = word.split("/")
        return [w for one in one_of for w in self._replaced(_split(one))] if len(one_of) > 1 else one_of

    def tokens(self, text: str) -> tuple[Token, ...]:
        """Split a text; hyphens separate words, number words become digits."""
        tokens = []
        sentence = clause = 0
        for word in self._replaced(_split(text)):
            forms = self._forms(word)
            quiet = word.isalpha() and word not in _SEPARATORS and forms.isdisjoint(self.known)
            tokens.append(Token(word, forms, sentence, clause, quiet or word in _ADVERBS))
            sentence += word in _BREAKS
            clause += word in PUNCTUATION
        return tuple(tokens)

    def _replaced(self, words: Sequence[str]) -> list[str]:
        bare = [word.removesuffix("'s") for word in words]
        done: list[str] = []
        i = 0
        while i < len(words):
            sizes = range(min(self._longest, len(words) - i), 0, -1)
            rows = (tuple(row[i : i + n]) for n in sizes for row in (words, bare))
            row = next((row for row in rows if row in self.same), None)
            done += self.same[row] if row else [bare[i]]
            i += len(row) if row else 1
        return done

    def _forms(self, word: str) -> frozenset[str]:
        if (word,) in self._canonical:
            return frozenset([word])
        stems = (self.same.get((stem,), (stem,)) for stem in stems_of(word))
        return frozenset([word]) | {s for row in stems for s in row if len(row) == 1 and s in self.known}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self.same), default=1)

    @cached_property
    def _canonical(self) -> frozenset[tuple[str, ...]]:
        return frozenset(row for row in self.same.values() if len(row) == 1)


def stems_of(word: str) -> Iterator[str]:
    """Yield possible base forms of an English word, such as ``stop`` of ``stopping``; most do not exist."""
    for ending, others in (("ies", ("y",)), ("es", ("", "e")), ("s", ("",)), ("ied", ("y",)), ("ves", ("f", "fe"))):
        if word.endswith(ending) and len(word) - len(ending) >= 2:
            yield from (word[: -len(ending)] + other for other in others)
    if word.endswith("ying"):
        yield f"{word[:-4]}ie"
    if word.endswith("men"):
        yield f"{word[:-3]}man"
    for ending in ("ing", "ed", "er", "y"):
        stem = word[: -len(ending)]
        if word.endswith(ending) and len(stem) >= 2:
            yield from (stem, stem + "e", *((stem[:-1],) if stem[-1] == stem[-2] else ()))


@dataclass(frozen=True)
class Phrases:
    """Phrases, indexed by their rarest word."""

    rows: tuple[Phrase, ...]

    @cached_property
    def _by_word(self) -> Mapping[str, tuple[int, ...]]:
        count = Counter(word for phrase in self.rows for choice in phrase.choices for word in choice)
        by_word: dict[str, list[int]] = {}
        for i, phrase in enumerate(self.rows):
            for word in min(phrase.choices, key=lambda choice: sum(count[word] for word in choice), default=()):
                by_word.setdefault(word, []).append(i)
        return {word: tuple(row) for word, row in by_word.items()}

    def among(self, words: frozenset[str]) -> list[int]:
        """Return the indices of phrases whose words all occur, in order."""
        near = {i for word in words for i in self._by_word.get(word, ())}
        return sorted(i for i in near if self.rows[i].is_among(words))


def words_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Return every form of every word."""
    return frozenset(form for token in tokens for form in token.forms)


def found(phrase: Phrase, tokens: Sequence[Token], free: Sequence[bool]) -> Iterator[tuple[int, ...]]:
    """Yield the token indices of a phrase, at every place where all of them are ``free``."""
    places = [list(_runs(part, tokens, free)) for part in phrase.parts]
    if len(places) == 1:
        yield from places[0]
        return
    # Parts in the order of the phrase, and close to each other, come first: "move right to let them move".
    choices = product(*(row[:6] for row in places))
    for rows in sorted(choices, key=lambda rows: (list(rows) != sorted(rows), rows[-1][-1] - rows[0][0])):
        indices = [i for row in rows for i in row]
        same = len({tokens[i].sentence for i in indices}) == 1
        if same and len(set(indices)) == len(indices) and max(indices) - min(indices) < _REACH + phrase.size:
            yield tuple(sorted(indices))


def _runs(part: Sequence[frozenset[str]], tokens: Sequence[Token], free: Sequence[bool]) -> Iterator[tuple[int, ...]]:
    for start, token in enumerate(tokens):
        if token.forms & part[0] and free[start] and (run := _run(part, tokens, free, start)):
            yield run


def _run(part: Sequence[frozenset[str]], tokens: Sequence[Token], free: Sequence[bool], start: int) -> tuple[int, ...]:
    run = [start]
    last = start
    for i in range(start + 1, len(tokens)):
        if len(run) == len(part):
            break
        if tokens[i].forms & part[len(run)] and free[i]:
            run.append(i)
            last = i
        elif tokens[i].text not in _FILLERS:
            if not tokens[i].quiet or last < 0:
                break
            last = -1  # one such word, no more, between two of a phrase
    return tuple(run) if len(run) == len(part) else ()


def _split(text: str, *also: str) -> list[str]:
    plain = text.lower().replace("\u2019", "'")
    for short, long in _CONTRACTIONS.items():
        plain = plain.replace(short, long)
    pattern = re.compile("|".join((*map(re.escape, also), _TOKEN.pattern))) if also else _TOKEN
    return [_NUMBERS.get(word, word) for word in pattern.findall(plain)]
