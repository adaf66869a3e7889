# SPDX-License-Identifier: Apache-2.0
"""Nearest texts in meaning: by default TF-IDF and latent semantic analysis, without any service.

For vectors of a service see :mod:`mt_nodes.rules.embeddings`. The default is scikit-learn's ``TfidfVectorizer`` and
``TruncatedSVD``, whose manual calls the latter latent semantic analysis on such matrices and recommends 100 dimensions;
with fewer texts or words, all dimensions are kept. The seed fixes all random numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from mt_nodes.base.arrays import Floats, Ints

#: Returns vectors (n, d) of n texts; zeros for a text without known words.
Fitted = Callable[[Sequence[str]], Floats]
#: Fits to all texts of a store.
Embedder = Callable[[Sequence[str]], Fitted]


class Nearest(Protocol):
    """Index of texts for nearest-neighbour search."""

    def nearest(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Return rows and similarities, at most 1, of the nearest; ties in the order of the texts."""


#: Makes an index of all texts of a store.
Indexer = Callable[[Sequence[str]], Nearest]

_DIMENSIONS = 100
#: Decimals of compared similarities: the last digits of sums depend on the number of threads.
DECIMALS = 6


def latent_semantics(corpus: Sequence[str]) -> Fitted:
    """Fit latent semantics to texts; for a single one, the words themselves."""
    from sklearn.decomposition import TruncatedSVD  # a second to import
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, TfidfVectorizer

    idle = sorted(map(_in_singular, ENGLISH_STOP_WORDS))
    pattern = r"[a-z][a-z]+|\d+"
    words = TfidfVectorizer(sublinear_tf=True, stop_words=idle, preprocessor=_in_singular, token_pattern=pattern)
    try:
        weights = words.fit_transform(corpus)
    except ValueError:  # no text has a word
        return lambda texts: np.zeros((len(texts), 1))
    dimensions = min(_DIMENSIONS, *weights.shape)
    if dimensions < 2:
        return lambda texts: np.asarray(words.transform(texts).todense())
    meanings = TruncatedSVD(dimensions, random_state=0).fit(weights)
    return lambda texts: np.asarray(meanings.transform(words.transform(texts)))


def _in_singular(text: str) -> str:
    """Return a text in lower case without the ``s`` of plurals: pedestrians and pedestrian are one word."""
    text = re.sub(r"(?<=[a-z]{2})ies\b", "y", text.lower())
    text = re.sub(r"(?<=ss|sh|ch)es\b|(?<=x)es\b", "", text)
    return re.sub(r"(?<=[a-z]{2}[^sui])s\b", "", text)


class Index:
    """:class:`Nearest` with vectors fitted to the texts."""

    def __init__(self, texts: Sequence[str], embedder: Embedder = latent_semantics) -> None:
        """Fit to texts and index them."""
        self._embed = embedder(texts) if texts else None
        self._vectors = unit(self._embed(texts)) if self._embed else np.empty((0, 1))

    def __len__(self) -> int:
        return len(self._vectors)

    def similarities(self, query: str) -> Floats:
        """Return (n,) the cosine between a text and each of the index; 0 if they have nothing in common."""
        if self._embed is None:
            return np.empty(0)
        return cosines(self._vectors, unit(self._embed([query]))[0])

    def nearest(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Return rows and similarities of the nearest, ties in the order of the texts."""
        return ranked(range(len(self)), self.similarities(query), limit)


def unit(vectors: Floats) -> Floats:
    """Return vectors (n, d) normalised to length 1, zero vectors unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 1e-12))


def cosines(vectors: Floats, query: Floats) -> Floats:
    """Return (n,) the cosines of unit vectors (n, d) with another (d,), rounded to the compared decimals."""
    return np.asarray(np.round(vectors @ query, DECIMALS) + 0.0)


def ranked(rows: Sequence[int] | Ints, similarities: Floats, limit: int) -> list[tuple[int, float]]:
    """Return the nearest of some rows in ascending order, ties in this order."""
    order = np.argsort(-similarities, kind="stable")[:limit]
    return [(int(rows[at]), float(similarities[at])) for at in order]
