# SPDX-License-Identifier: Apache-2.0
"""Clouds of a recording after the bundle that is read: what is to come can be known there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from mt_nodes.base.errors import MtError
from mt_nodes.data.messages import Bundle

#: How far ahead is looked, and which of the bundles are stored.
HORIZON_S, EVERY = 3.0, 3


class LookAhead:
    """Reads a recording ahead of whoever else reads it, each bundle once more.

    ``open_source``: opens the recording from its beginning.
    """

    def __init__(self, open_source: Callable[[], Any]) -> None:
        self._open = open_source
        self._bundles: Iterator[Any] | None = None
        self._stored: dict[int, Bundle] = {}
        self._read_ns, self._first = 0, 0

    def __call__(self, bundle: Bundle) -> tuple[Bundle, ...]:
        """Return every third bundle of the next three seconds, with clouds and without what else it holds."""
        if self._bundles is None or bundle.index < self._first:
            self._bundles, self._stored, self._read_ns = self._iterate(), {}, 0
        self._first = bundle.index
        end_ns = bundle.stamp_ns + int(HORIZON_S * 1e9)
        with suppress(MtError):  # whoever reads the recording itself reports what is wrong with it
            while self._read_ns < end_ns and (ahead := next(self._bundles, None)) is not None:
                self._read_ns = ahead.stamp_ns
                if ahead.index % EVERY == 0:
                    self._stored[ahead.index] = replace(ahead, images=(), camera_infos=(), wires=(), loose=())
        self._stored = {index: ahead for index, ahead in self._stored.items() if index > bundle.index}
        return tuple(ahead for ahead in self._stored.values() if ahead.stamp_ns <= end_ns)

    def _iterate(self) -> Iterator[Any]:
        with self._open() as source:
            yield from source
