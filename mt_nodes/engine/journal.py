# SPDX-License-Identifier: Apache-2.0
"""The record of a run: its condition, then one line a verdict (``result.jsonl``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mt_nodes.base.errors import StackError, UsageError
from mt_nodes.base.jsonl import LineFile, jsonable, read_lines
from mt_nodes.base.record_shapes import NUMBER, Shape
from mt_nodes.data.verdict import OBJECTS, OBJECTS_BY, SCHEMA, SCORE_FALLS, Outcome, Pair, Verdict
from mt_nodes.engine.pair_table import PairTable
from mt_nodes.engine.summary.claim_sums import TYPE as CLAIM
from mt_nodes.engine.summary.claim_sums import ClaimVerdict
from mt_nodes.engine.summary.deaths import death_line

_OUTCOMES = tuple(Outcome)
_NUMBER_OR_NULL = (*NUMBER, type(None))
_PLACES = [[_NUMBER_OR_NULL, _NUMBER_OR_NULL, str]]
#: What summaries and reports take of the detail of a verdict; checks may put more into it.
_DETAIL: Shape = {
    **{"counts?": {"*": [int, int]}, "judged_in?": {"*": [[int]]}, f"{SCORE_FALLS}?": [[NUMBER, NUMBER]]},
    **dict.fromkeys(("lost_at?", "gained_at?", "changed_at?"), _PLACES),
    **{f"{OBJECTS}?": [[NUMBER, (bool, int), str]], f"{OBJECTS_BY}?": {"name": str, "unit": str, "bin": NUMBER}},
}
#: What the lines of a journal hold, by their type.
SHAPES: dict[str, Shape] = {
    "condition": {"relations?": [str]},
    "verdict": {
        **{"pair": str, "relation": str, "stamp_ns": int, "outcome": str, "reason?": str, "unit?": str},
        **dict.fromkeys(("measured?", "bound?", "margin?"), _NUMBER_OR_NULL),
        **{"lost?": int, "gained?": int, "detail?": _DETAIL},
    },
    CLAIM: {
        **dict.fromkeys(("claim", "formula", "verdict", "reason"), str),
        **{"episode": int, "margin?": NUMBER, "at_s?": NUMBER},
    },
    "death": {"reason": str, "pairs": [str]},
}


class Journal:
    """Appends to ``result.jsonl``; opening an existing one goes on with it. A context manager."""

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises InfrastructureError: what is there already is damaged."""
        self._file = LineFile(path)
        self._condition: dict[str, Any] | None = None
        self._outcomes = PairTable(1)
        self._claims: set[tuple[int, str]] = set()
        for line in read_lines(path, SHAPES):
            if line["type"] == "condition":
                self._condition = line
            elif line["type"] == "verdict":
                self._outcomes.put(Pair.parse(line["pair"]), _code(Outcome(line["outcome"])))
            elif line["type"] == CLAIM:
                self._claims.add((line["episode"], line["claim"]))

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, pair: Pair) -> bool:
        return pair in self._outcomes

    def __len__(self) -> int:
        return len(self._outcomes)

    def outcome(self, pair: Pair) -> Outcome | None:
        """Return how a pair ended, None when it has not."""
        code = self._outcomes.get(pair)
        return None if code is None else _OUTCOMES[code[0] - 1]

    def condition(self, condition: Mapping[str, Any]) -> None:
        """Write the first line; when the journal has one, it must be the same.

        Raises UsageError: the run that is being resumed was made under another condition.
        """
        line = jsonable({"schema": SCHEMA, "type": "condition", **condition})
        if self._condition is None:
            self._file.append(line)
            self._condition = line
        else:
            refuse_other_condition(self._file.path, self._condition, line)

    def verdict(self, verdict: Verdict) -> str:
        """Write one verdict and return the line. Raises ValueError: the pair has a verdict already."""
        pair = verdict.pair
        if pair in self._outcomes:
            raise ValueError(f"{self._file.path}: pair {pair} has a verdict already; every pair ends exactly once")
        text = self._file.append(verdict.as_plain())
        self._outcomes.put(pair, _code(verdict.outcome))
        return text

    def claim(self, verdict: ClaimVerdict) -> str | None:
        """Write what a claim comes to on a drive, and return the line; None if that is there already."""
        if (verdict.episode, verdict.claim) in self._claims:
            return None
        self._claims.add((verdict.episode, verdict.claim))
        return self._file.append(verdict.as_plain())

    def death(self, error: StackError) -> str:
        """Write that the stack died, and return the line."""
        return self._file.append(death_line(error))

    def forget_before(self, episode: int, bundle: int) -> None:
        """Forget pairs before a bundle of an episode: none of them comes again, as of live input."""
        self._outcomes.forget_before(episode, bundle)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _code(outcome: Outcome) -> bytes:
    return bytes([_OUTCOMES.index(outcome) + 1])


def refuse_other_condition(path: Path, was: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a journal whose first line would be another now. Raises UsageError: saying what differs."""
    keys = [k for k in {**was, **now} if was.get(k) != now.get(k)]
    if keys:
        differences = ", ".join(f"{k}: was {was.get(k)!r}, is {now.get(k)!r}" for k in keys)
        raise UsageError(f"{path}: cannot be resumed under another condition ({differences}); use another --out")


def read_journal(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a journal, checked, without their checksums; a torn last line is left out.

    Raises UsageError: there is no such file. InfrastructureError: a line is damaged.
    """
    if not path.is_file():
        raise UsageError(f"no journal {path}; expected the result.jsonl of a results directory")
    yield from read_lines(path, SHAPES)
