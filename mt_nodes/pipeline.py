# SPDX-License-Identifier: Apache-2.0
"""Makes follow-ups: the one place that begins, draws, applies and proves mutations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.effects import Effects
from mt_nodes.frames import Bundle
from mt_nodes.mutations.base import Draw, Followup, Mutation
from mt_nodes.plugins import name_of
from mt_nodes.seeds import generator


@dataclass(frozen=True, eq=False)
class Derived:
    """One follow-up, how it was drawn, and what of its guarantee is broken (None: nothing)."""

    followup: Followup
    draws: list[Draw]
    broken: str | None = None

    @property
    def effects(self) -> Effects:
        """What was done to the world."""
        return self.followup.effects


class MutationPipeline:
    """Applies mutations one after the other, each to every bundle that the former made; delays add up.

    The draw of a bundle depends on seed, relation, episode, bundle and draw number only, and on what ``begin`` made of
    the first bundle of the episode that came along. Effects are those of the first bundle, for which answers are
    expected.
    """

    def __init__(self, mutations: Sequence[Mutation], seed: int, relation: str) -> None:
        self.mutations = tuple(mutations)
        self._seed, self._relation = seed, relation
        self._states: dict[tuple[int, int], Any] = {}

    def derive(self, bundle: Bundle, draw_number: str | int = "0") -> Derived:
        """Draw and make a follow-up, and prove every step on its own input and output; a broken step is the last.

        Raises:
            NotApplicable: a mutation has no honest follow-up of this bundle.
        """
        draws: list[Draw] = []
        followup, broken = self._run(bundle, self._drawing(draw_number, draws), self._proof)
        return Derived(followup, draws, broken)

    def derive_unproven(self, bundle: Bundle, draw_number: str | int = "0") -> tuple[Derived, Callable[[], str | None]]:
        """Draw and make a follow-up that cannot wait for its proof: the function returned does that later.

        It tells what is broken, None: nothing.

        Raises:
            NotApplicable: a mutation has no honest follow-up of this bundle.
        """
        draws: list[Draw] = []
        steps: list[tuple[int, Bundle, Followup, Draw]] = []
        followup, _ = self._run(bundle, self._drawing(draw_number, draws), lambda *step: steps.append(step))
        return Derived(followup, draws), lambda: next((b for step in steps if (b := self._proof(*step))), None)

    def begun(self, episode: int) -> bool:
        """Whether the first bundle of an episode that counts for later ones has come along."""
        return all((episode, step) in self._states for step in range(len(self.mutations)))

    def again(self, bundle: Bundle, draws: Iterable[Draw]) -> Followup:
        """Make a follow-up from recorded draws.

        Raises:
            ValueError: there are fewer draws than steps, or more.
        """
        recorded = list(draws)
        left = iter(recorded)

        def draw(step: int, part: int, source: Bundle) -> Draw:
            for made in left:
                return made
            raise ValueError(f"got {len(recorded)} draws, too few for {self._names()} on this bundle")

        followup, _ = self._run(bundle, draw, lambda *_: None)
        if spare := len(list(left)):
            raise ValueError(f"got {len(recorded)} draws, {spare} more than {self._names()} use on this bundle")
        return followup

    def _drawing(self, draw_number: str | int, draws: list[Draw]) -> Callable[[int, int, Bundle], Draw]:
        def draw(step: int, part: int, source: Bundle) -> Draw:
            key = (self._seed, self._relation, source.episode, source.index, f"{draw_number}.{step}.{part}")
            made = self.mutations[step].draw(generator(*key), source, self._state(step, source))
            draws.append(made)
            return made

        return draw

    def _run(
        self,
        bundle: Bundle,
        draw: Callable[[int, int, Bundle], Draw],
        proof: Callable[[int, Bundle, Followup, Draw], str | None],
    ) -> tuple[Followup, str | None]:
        bundles: tuple[tuple[int, Bundle], ...] = ((0, bundle),)
        effects = Effects()
        for step, mutation in enumerate(self.mutations):
            made: list[tuple[int, Bundle]] = []
            for part, (delay_ns, source) in enumerate(bundles):
                drawn = draw(step, part, source)
                followup = mutation.apply(source, drawn)
                made += [(delay_ns + more_ns, b) for more_ns, b in followup.bundles]
                effects = effects.merged(followup.effects) if part == 0 else effects
                if broken := proof(step, source, followup, drawn):
                    return Followup(tuple(made), effects), broken
            bundles = tuple(made)
        return Followup(bundles, effects), None

    def _proof(self, step: int, source: Bundle, followup: Followup, drawn: Draw) -> str | None:
        broken = self.mutations[step].guarantee(source, followup, drawn)
        return None if broken is None else f"{name_of(type(self.mutations[step]))}: {broken}"

    def _state(self, step: int, bundle: Bundle) -> Any:
        key = (bundle.episode, step)
        if key not in self._states:
            rng = generator(self._seed, self._relation, bundle.episode, None, f"begin.{step}")
            self._states[key] = self.mutations[step].begin(rng, bundle)
        return self._states[key]

    def _names(self) -> str:
        return " + ".join(name_of(type(m)) for m in self.mutations) or "no mutation"
