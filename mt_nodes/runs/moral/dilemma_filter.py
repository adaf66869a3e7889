# SPDX-License-Identifier: Apache-2.0
"""Which cases are set aside, since there is nothing to choose in one of their dilemmas."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from mt_nodes.base.params import plain
from mt_nodes.runs.moral.base import DilemmaCase
from mt_nodes.runs.moral.dilemma import Dilemma
from mt_nodes.runs.moral.runs import Runs


class DilemmaFilter(Protocol):
    """Whether a dilemma is one; :class:`mt_nodes.runs.moral.dilemma_check.DilemmaCheck` is the usual one."""

    @property
    def is_one(self) -> bool:
        """Whether nobody can avoid everybody, and each party can be spared."""

    @property
    def reason(self) -> str:
        """Why, in words."""


Check = Callable[[Sequence[Dilemma]], Iterable[DilemmaFilter]]


class Refusing:
    """Checks dilemmas, those of one geometry once, and writes down what came of it."""

    def __init__(self, runs: Runs, check: Check) -> None:
        self._runs, self._check = runs, check

    def look(self, cases: Iterable[DilemmaCase]) -> None:
        """Have all dilemmas of some cases checked, at once."""
        found = {key_of(dilemma): dilemma for case in cases for dilemma in case.dilemmas}
        fresh = {key: dilemma for key, dilemma in found.items() if self._runs.last("check", key) is None}
        for key, choice in zip(fresh, self._check(list(fresh.values())), strict=True):
            self._runs.note({"type": "check", "check": key, "is_one": choice.is_one, "reason": choice.reason})

    def why(self, case: DilemmaCase) -> str:
        """Return why there is nothing to choose in a case, empty where there is."""
        self.look([case])
        lines = [self._runs.last("check", key_of(dilemma)) for dilemma in case.dilemmas]
        return next((str(line["reason"]) for line in lines if line and not line["is_one"]), "")

    def choice(self, case: DilemmaCase) -> str:
        """Return why there is something to choose in the source of a case that was looked at."""
        line = self._runs.last("check", key_of(case.source))
        return str(line["reason"]) if line else ""


def key_of(dilemma: Dilemma) -> str:
    """Return a digest of all of a dilemma that decides whether it is one: not its name, nor what is known of people."""
    first, second = (tuple(replace(member, person=None) for member in party) for party in dilemma.parties)
    text = json.dumps(plain(replace(dilemma, name="", first=first, second=second)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]
