# SPDX-License-Identifier: Apache-2.0
"""Nearest texts by embedding vectors of a service, with FAISS's exact index of scalar products.

Vectors come from the OpenAI protocol (``/embeddings``), with retries as in :mod:`mt_nodes.rules.service`, and are
cached (:mod:`mt_nodes.rules.vector_file`). FAISS (J. Johnson, M. Douze, H. Jégou, "Billion-scale similarity search with
GPUs", arXiv 1702.08734; ``IndexFlatIP``) compares in single precision; candidates are compared again in double
precision, so that the result depends neither on its version nor on threads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import Any

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.rules.models import DEFAULTS
from mt_nodes.rules.nearest_texts import cosines, ranked, unit
from mt_nodes.rules.service import Service, ServiceFailure
from mt_nodes.rules.vector_file import VectorFile

#: Texts per request, and bytes per answer: room for 64 vectors of 8,192 numbers of 24 characters.
BATCH, LARGEST_BYTES = 64, 16_000_000
#: Two embeddings of a text, alone and in a batch, are equal up to rounding in half precision.
_SAME = 0.99
#: Largest error of cosines in single precision.
_MARGIN = 1e-4


class Embeddings:
    """Embedding vectors of one model."""

    def __init__(self, name: str, stored: VectorFile, connect: Callable[[], Service]) -> None:
        """Create the client; the first request comes with the first text.

        ``name``: the user's name of the model, the key of its cached vectors. ``connect``: creates the client when a
        request is needed.
        """
        self.name, self._stored, self._connect = name, stored, connect

    def vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors (n, d) of n texts; requests only those that are not cached.

        Raises NoAnswer: the server gave no usable one; earlier ones are cached. UsageError: the server refuses the
        request, or has another model than that of the cached vectors. InfrastructureError: the file of vectors cannot
        be written.
        """
        known = self._stored.of(self.name)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        for begin in range(0, len(missing), BATCH):
            self._fetch(missing[begin : begin + BATCH])
        known = self._stored.of(self.name)
        return np.array([known[text] for text in texts])

    @cached_property
    def _service(self) -> Service:
        return self._connect()

    def _fetch(self, texts: Sequence[str]) -> None:
        """Request texts and a cached one, to verify that the model is still the same; cache all or none."""
        probe = list(self._stored.of(self.name))[:1]
        (served, vectors), _, _ = self._service.insist(lambda: self._request([*texts, *probe]))
        if probe:
            self._refuse_another(served, vectors[-1], probe[0])
        self._stored.add(self.name, served, texts, vectors[: len(texts)])

    def _request(self, texts: Sequence[str]) -> tuple[str, Floats]:
        model = self._service.model
        own = {key: value for key, value in model.parameters.items() if key not in DEFAULTS}
        create = self._service.client.embeddings.with_streaming_response.create
        asking = partial(create, model=model.model, input=list(texts), encoding_format="float", extra_body=own)
        try:
            data, kind = self._service.body(asking, LARGEST_BYTES)
        except self._service.refusal as error:
            raise self._service.refused(error) from error
        return _read_vectors(data, kind, len(texts))

    def _refuse_another(self, served: str, vector: Floats, probe: str) -> None:
        before = self._stored.of(self.name)[probe]
        if served != self._stored.served(self.name):
            why = f"the server calls it '{served}', before '{self._stored.served(self.name)}'"
        elif len(vector) != len(before):
            why = f"its vectors have {len(vector)} numbers, before {len(before)}"
        elif (near := float(unit(vector[None])[0] @ unit(before[None])[0])) < _SAME:
            why = f"of a text that it was asked before it makes another vector (cosine {near:.2f})"
        else:
            return
        raise UsageError(
            self._service.says(f"{why}: another model than {self._stored.path} is of; name another file by --vectors")
        )


def _read_vectors(data: bytes, kind: str, count: int) -> tuple[str, Floats]:
    """Return the server's name of the model, and ``count`` vectors (count, d) in the order of the texts.

    Raises Failed: the answer is invalid.
    """
    try:
        answer = json.loads(data)
        rows = {row["index"]: row["embedding"] for row in answer["data"]}
        served = str(answer.get("model") or "")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ServiceFailure(f"got no vectors but {kind}: {data[:80]!r}") from error
    if sorted(rows, key=str) != sorted(range(count), key=str) or len(answer["data"]) != count:
        raise ServiceFailure(f"got {len(answer['data'])} vectors for {count} texts, expected one each")
    return served, _matrix([rows[row] for row in range(count)])


def _matrix(rows: Sequence[Any]) -> Floats:
    try:
        numbers = np.array(rows)
    except ValueError as error:
        raise ServiceFailure("got vectors of several lengths, expected one length") from error
    if numbers.ndim != 2 or numbers.dtype.kind not in "fi" or not numbers.size:
        raise ServiceFailure(f"got vectors of {numbers.dtype} {numbers.shape}, expected lists of numbers")
    with np.errstate(over="ignore"):
        vectors = numbers.astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ServiceFailure("got vectors with numbers that are none (NaN or infinite)")
    if not np.any(vectors, axis=1).all():
        raise ServiceFailure("got a vector of zeros, which is near to nothing")
    return vectors.astype(np.float64)


class FaissIndex:
    """:class:`mt_nodes.rules.nearest_texts.Nearest` with vectors from an embedding function."""

    def __init__(self, texts: Sequence[str], embed: Callable[[Sequence[str]], Floats]) -> None:
        """Index texts.

        ``embed``: returns vectors (n, d) of n texts. Raises UsageError: the extra ``vectors`` is not installed.
        """
        try:
            faiss = import_module("faiss")
        except ImportError as error:
            raise UsageError(
                f"vectors of a service need the extra: pip install 'mt_nodes[vectors]' ({error}); "
                "without --embed none is needed"
            ) from error
        self._embed = embed
        self._vectors = unit(embed(texts)) if texts else np.empty((0, 1))
        self._flat = faiss.IndexFlatIP(self._vectors.shape[1])
        self._flat.add(self._vectors.astype(np.float32))

    def nearest(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Return rows and similarities of the nearest, ties in order; a text without words is equally far from all."""
        count = len(self._vectors)
        if limit < 1 or not count:
            return []
        if not query.strip():
            return ranked(range(count), np.zeros(count), limit)
        vector = unit(self._embed([query]))
        single = vector.astype(np.float32)
        near, _ = self._flat.search(single, min(limit, count))
        _, _, found = self._flat.range_search(single, float(near[0, -1]) - _MARGIN)
        rows = np.sort(found)
        return ranked(rows, cosines(self._vectors[rows], vector[0]), limit)
