# SPDX-License-Identifier: Apache-2.0
"""The trials of a search: each is played once and journalled; a search that goes on finds the former ones again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.data.verdict import Verdict
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.strength import Strength, overall, values_of, with_values
from mt_nodes.runs.campaign.search.trial import REFUSED, Trial, summed_up

#: Plays a relation, as often as a trial is repeated; one list of verdicts a repeat.
PlayRelation = Callable[[Relation], Sequence[Sequence[Verdict]]]


class TrialsSpent(Exception):
    """No trial is left."""


class TrialJournal:
    """Plays trials. Who asks for the same trials again, in the same order, is given what they came to before.

    ``relation``: whose parameters are varied. ``tell``: called with each trial that is new, when it was played.
    """

    def __init__(
        self,
        relation: Relation,
        axes: Sequence[Strength],
        play: PlayRelation,
        most: int,
        before: Sequence[Mapping[str, Any]] = (),
        tell: Callable[[Trial], None] = lambda trial: None,
    ) -> None:
        self._relation, self._axes, self._play, self._most = relation, tuple(axes), play, most
        self._before, self._tell = [Trial.from_plain(line) for line in before], tell
        self._known: dict[tuple[float, ...], Trial] = {}
        self.trials: list[Trial] = []

    @property
    def left(self) -> int:
        """How many trials may still be played."""
        return self._most - len(self.trials)

    @property
    def violated(self) -> list[Trial]:
        """The trials that violate, the weakest first."""
        return sorted((t for t in self.trials if t.violated), key=lambda t: (t.strength, t.number))

    @property
    def best(self) -> Trial | None:
        """The weakest trial that violates, None where none does."""
        return next(iter(self.violated), None)

    def relation(self, trial: Trial) -> Relation:
        """Return the relation that a trial played."""
        return with_values(self._relation, self._axes, [trial.values[axis.name] for axis in self._axes])

    def play(self, fractions: Sequence[float], stage: str) -> Trial:
        """Return what these fractions of the axes come to; fractions that give the same values are one trial.

        Raises TrialsSpent: there is no trial left. InfrastructureError: the journal has another trial in its place.
        """
        values = tuple(axis.value(f) for axis, f in zip(self._axes, fractions, strict=True))
        if values in self._known:
            return self._known[values]
        if not self.left:
            raise TrialsSpent
        number = len(self.trials)
        trial = self._recorded(number, values) if number < len(self._before) else self._fresh(number, stage, fractions)
        self.trials.append(trial)
        self._known[values] = trial
        return trial

    def _recorded(self, number: int, values: tuple[float, ...]) -> Trial:
        was = self._before[number]
        if tuple(was.values.values()) != values:
            raise InfrastructureError(
                f"trial {number} had the values {dict(was.values)}, now it would have {values}; the search cannot go "
                "on: has the version of mt_nodes or of optuna changed? Start anew with another --out"
            )
        return was

    def _fresh(self, number: int, stage: str, fractions: Sequence[float]) -> Trial:
        about: dict[str, Any] = {
            "values": dict(values_of(self._axes, fractions)),
            "strength": overall(self._relation, self._axes, fractions),
        }
        try:
            relation = with_values(self._relation, self._axes, list(about["values"].values()))
        except UsageError as refused:
            trial = Trial(number, stage, tuple(fractions), outcome=REFUSED, reason=str(refused), **about)
        else:
            trial = summed_up(self._play(relation), number, stage, fractions, **about)
        self._tell(trial)
        return trial
