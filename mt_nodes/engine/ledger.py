# SPDX-License-Identifier: Apache-2.0
"""What was drawn for every follow-up: enough to make it again bit for bit (``ledger.jsonl``, ``draws/*.npz``)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.jsonl import LineFile, read_lines
from mt_nodes.base.params import plain
from mt_nodes.base.plugins import name_of
from mt_nodes.base.record_shapes import TEXT_OR_NULL, Shape
from mt_nodes.data.messages import Bundle
from mt_nodes.data.verdict import SCHEMA, Pair
from mt_nodes.engine.message_digests import sha256_of_followup
from mt_nodes.engine.pair_table import PairTable
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation

FILE, DRAWS = "ledger.jsonl", "draws"
#: Of each SHA-256 so many bytes stay in memory.
_DIGEST_BYTES = 8


#: What the lines of a ledger hold, by their type.
_FOLLOWUP: Shape = {
    **{"mutations": [{"name": str, "params": {}}], "draw": [{}], "arrays": TEXT_OR_NULL, "effects": {}},
    **{"stamps": [{}], "sha256": str},
}
SHAPES: dict[str, Shape] = {
    "followup": {"pair": str, "relation": str, **_FOLLOWUP, "baseline?": _FOLLOWUP},
    "episode": {"pair": str, "relation": str, "draw": [{}], "arrays": TEXT_OR_NULL, "sha256": str},
}


class Ledger:
    """Appends to the ledger of a results directory; opening an existing one goes on with it. A context manager."""

    def __init__(self, directory: Path) -> None:
        """Open or make the ledger. Raises InfrastructureError: what is there already is damaged."""
        self._directory = directory
        self._file = LineFile(directory / FILE)
        self._known = PairTable(_DIGEST_BYTES)
        #: Where motion of the ego came from, for people, as far as draws took it.
        self.ego_motion: set[str] = set()
        for line in read_lines(directory / FILE, SHAPES):
            self._known.put(Pair.parse(line["pair"]), _digest(_both(line)))
            self.ego_motion.update(_motions(line["draw"]))

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def followup(
        self,
        pair: Pair,
        mutations: Sequence[Mutation],
        draws: Sequence[Draw],
        followup: Followup,
        baseline: tuple[Sequence[Mutation], Sequence[Draw], Followup] | None = None,
    ) -> str | None:
        """Record one follow-up and return the line; None when a resumed run made the same one again.

        ``baseline`` is the same of what went to the source arm in place of the source, None where that was the source.
        Raises InfrastructureError: the pair was recorded with another follow-up: it was not made again bit for bit.
        """
        name, hashes = str(pair.followup), {"sha256": sha256_of_followup(followup)}
        milder = {} if baseline is None else {"baseline": {"sha256": sha256_of_followup(baseline[-1])}}
        both = _both({**hashes, **milder})
        if self._is_recorded(pair, both):
            return None
        head = {"schema": SCHEMA, "type": "followup", "pair": name, "relation": pair.relation}
        line = {**head, **self._followup_fields(draws_name(pair.followup), mutations, draws, followup), **hashes}
        if baseline is not None:
            fields = self._followup_fields(draws_name(pair.followup, "baseline."), *baseline)
            line["baseline"] = {**fields, **milder["baseline"]}
        text = self._file.append(line)
        self._known.put(pair.followup, _digest(both))
        return text

    def episode(self, pair: Pair, draws: Sequence[Draw], sha256: str, about: Mapping[str, Any]) -> str | None:
        """Record one episode of the closed loop and return the line; None when a resumed run drove the same again.

        Raises InfrastructureError: the pair was recorded with another trace: it was not driven again bit for bit.
        ``pair``: of the follow-up. ``draws``: of the changes of its scenario. ``sha256``: of its trace. ``about``: what
        else is to be known of it.
        """
        if self._is_recorded(pair, sha256):
            return None
        packed, arrays = _pack(draws)
        head = {"schema": SCHEMA, "type": "episode", "pair": str(pair.followup), "relation": pair.relation}
        drawn = {"draw": packed, "arrays": self._save(draws_name(pair.followup), arrays) if arrays else None}
        text = self._file.append({**head, **about, **drawn, "sha256": sha256})
        self._known.put(pair.followup, _digest(sha256))
        return text

    def forget_before(self, episode: int, bundle: int) -> None:
        """Forget follow-ups before a bundle of an episode: none of them comes again, as of live input."""
        self._known.forget_before(episode, bundle)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _is_recorded(self, pair: Pair, both: str) -> bool:
        """Tell whether this very follow-up is recorded already. Raises InfrastructureError: another one is."""
        known = self._known.get(pair.followup)
        if known is not None and known != _digest(both):
            raise InfrastructureError(
                f"{self._file.path}: follow-up {pair.followup} has SHA-256 {both}, was {known.hex()}… before; "
                "resume with the same bag, versions and CPU type"
            )
        return known is not None

    def _followup_fields(
        self, file: str, mutations: Sequence[Mutation], draws: Sequence[Draw], followup: Followup
    ) -> dict[str, Any]:
        packed, arrays = _pack(draws)
        self.ego_motion.update(_motions(packed))
        return {
            "mutations": [{"name": name_of(type(m)), "params": plain(m)} for m in mutations],
            "draw": packed,
            "arrays": self._save(file, arrays) if arrays else None,
            "effects": followup.effects.as_plain(),
            "stamps": [_stamps(delay_ns, bundle) for delay_ns, bundle in followup.bundles],
        }

    def _save(self, file: str, arrays: dict[str, Any]) -> str:
        folder = self._directory / DRAWS
        folder.mkdir(exist_ok=True)
        # Entries of an .npz carry no time, so equal draws make equal files. As a path, each name would be interned.
        np.savez(f"{folder}/{file}", **arrays)
        return f"{DRAWS}/{file}"


def read_ledger(directory: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a ledger, checked, without their checksums.

    Raises UsageError: there is none. InfrastructureError: a line is damaged.
    """
    if not (directory / FILE).is_file():
        raise UsageError(f"{directory} has no {FILE}; expected a results directory")
    yield from read_lines(directory / FILE, SHAPES)


def find_followup(directory: Path, pair: Pair) -> dict[str, Any]:
    """Return the ledger line of a pair's follow-up (control and sham: the one that all their checks share).

    Raises UsageError: the ledger does not have it.
    """
    name = str(pair.followup)
    for line in read_ledger(directory):
        if line["pair"] == name:
            return line
    raise UsageError(f"{directory / FILE}: no follow-up of pair '{pair}'; it was not offered, or not applicable")


def find_followups(directory: Path, pair: Pair) -> list[dict[str, Any]]:
    """Return the ledger lines of all that was sent in the episode of a pair that stands for it as a whole, in order.

    Raises UsageError: the ledger has none.
    """
    target = pair.followup
    named = [(Pair.parse(line["pair"]), line) for line in read_ledger(directory) if line["relation"] == pair.relation]
    lines = [line for name, line in named if (name.episode, name.draw) == (target.episode, target.draw)]
    if not lines:
        raise UsageError(
            f"{directory / FILE}: no follow-up of the episode of '{pair}'; none was offered, or applicable"
        )
    return sorted(lines, key=lambda line: Pair.parse(line["pair"]).bundle or 0)


def baseline_of(line: dict[str, Any]) -> dict[str, Any] | None:
    """Return what a ledger line says of the baseline, like a line of its own; None where there is none."""
    return {"pair": line["pair"], **line["baseline"]} if "baseline" in line else None


def load_draws(directory: Path, line: dict[str, Any]) -> list[Draw]:
    """Return the draws of a ledger line, arrays and numbers as they were.

    Raises InfrastructureError: the file of the arrays is missing or damaged.
    """
    if line["arrays"] is None:
        return [_unpack(draw, {}) for draw in line["draw"]]
    path = directory / line["arrays"]
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [_unpack(draw, arrays) for draw in line["draw"]]
    # A damaged archive makes zipfile, zlib and the array header's parser raise errors of many kinds.
    except Exception as error:
        raise InfrastructureError(f"{path}: cannot read the draws of pair {line['pair']}: {error}") from error


def draws_name(pair: Pair, part: str = "") -> str:
    """Return the file name of a pair's draws, or of another part of it; no two pairs share one."""
    bundle = "-" if pair.bundle is None else pair.bundle
    return f"{pair.episode}.{bundle}.{quote(pair.relation, safe='')}.{quote(pair.draw, safe='')}.{part}npz"


def _both(line: dict[str, Any]) -> str:
    """Return the SHA-256 (hex) of a line's follow-up, or of the hashes of it and its baseline together."""
    follow: str = line["sha256"]
    return hashlib.sha256((follow + line["baseline"]["sha256"]).encode()).hexdigest() if "baseline" in line else follow


def _digest(sha256: str) -> bytes:
    """Return what is known of a follow-up while a run goes on: chance gives two the same once in 2^64."""
    return bytes.fromhex(sha256[: 2 * _DIGEST_BYTES])


def _stamps(delay_ns: int, bundle: Bundle) -> dict[str, Any]:
    return {"delay_ns": delay_ns, **{m.topic: m.stamp_ns for m in bundle.messages}}


def _pack(draws: Sequence[Draw]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Part draws into what a line holds and arrays: ``{"array": key}`` stands for one."""
    packed: list[dict[str, Any]] = []
    arrays: dict[str, Any] = {}
    for i, draw in enumerate(draws):
        row: dict[str, Any] = {}
        for name, value in draw.items():
            row[name] = value
            if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
                row[name] = {"array": f"{i}.{name}"}
                arrays[f"{i}.{name}"] = value
            elif isinstance(value, float) and not math.isfinite(value):
                row[name] = {"float": str(value)}
            elif not (value is None or isinstance(value, (bool, int, float, str))):
                raise TypeError(f"draw {i}, '{name}': got {type(value).__name__}, expected array, number or text")
        packed.append(row)
    return packed, arrays


def _motions(packed: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    rows = ((name, value) for draw in packed for name, value in draw.items())
    return (value for name, value in rows if name.rpartition("|")[2] == "ego_motion" and isinstance(value, str))


def _unpack(packed: dict[str, Any], arrays: Any) -> Draw:
    return {name: _value(value, arrays) for name, value in packed.items()}


def _value(value: Any, arrays: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "float" in value:
        return float(value["float"])
    found = arrays[value["array"]]
    # A NumPy scalar comes back from the file as an array without dimensions.
    return found[()] if found.ndim == 0 else found
