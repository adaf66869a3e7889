# SPDX-License-Identifier: Apache-2.0
"""Makes follow-ups: the one place that runs mutations: begin, draw, apply, prove."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.plugins import name_errors, name_of, refuse_return
from mt_nodes.base.seeds import foreseeing, generator, generator_on_demand
from mt_nodes.data.effects import Effects
from mt_nodes.data.messages import Bundle
from mt_nodes.relations.frames_between import change_between, prove_between, refuse_loose
from mt_nodes.relations.mutations.base import Draw, Followup, Mutation
from mt_nodes.relations.mutations.untouched import SENSORS, messages_of, unchanged, unmet_need, without_reason

Begun = tuple[tuple[Any, ...], Any]
"""What the mutations of a pipeline have begun, each at a bundle; the same of its baseline, None without one."""


@dataclass(frozen=True, eq=False)
class DerivedFollowup:
    """A follow-up, its draws, and the broken promise of its guarantee (None: none).

    ``baseline`` goes to the source arm instead of the source; None: the source itself does.
    """

    followup: Followup
    draws: list[Draw]
    broken: str | None = None
    baseline: DerivedFollowup | None = None

    @property
    def effects(self) -> Effects:
        """Effects on the world, of those that the source arm was not given, too."""
        return self.followup.effects if self.baseline is None else self.followup.effects.beyond(self.baseline.effects)


class MutationPipeline:
    """Applies mutations one after the other, each to every bundle that the previous one made; delays add up.

    The draw of a bundle depends on seed, relation, episode, bundle and draw number only, and on the result of ``begin``
    for the first bundle of the episode, or of the segment that starts at bundle ``first``, or for the one at which
    what had begun was over. Effects are those of the first bundle, whose answer is judged. A mutation that looks back
    gets the source's earlier bundles, so all bundles must be passed in order: to ``derive``, ``again`` or ``meet``. A
    ``baseline`` is made in parallel, by mutations that draw from generators with the same seeds: of two that differ in
    one parameter, one goes further than the other at the same places. ``requires`` names the sensors that the relation
    is about: where a change leaves all messages of one of them untouched, there is no follow-up.
    Raises UsageError: a mutation that looks back is not the first.
    """

    def __init__(
        self,
        mutations: Sequence[Mutation],
        seed: int,
        relation: str,
        baseline: Sequence[Mutation] = (),
        requires: Sequence[str] = (),
    ) -> None:
        if late := [name_of(type(m)) for m in mutations[1:] if m.needs_history]:
            raise UsageError(f"{relation}: {late[0]} looks back at former bundles of the source; make it the first")
        self.mutations = tuple(mutations)
        for mutation in self.mutations:
            with name_errors(mutation, "ready"):
                mutation.ready()
        self._seed, self._relation, self._requires = seed, relation, tuple(requires)
        #: What has begun, by episode, segment and step: at which bundle, and the state; each until the next.
        self._states: dict[tuple[int, int | None, int], list[tuple[int, Any]]] = {}
        self._needs_history = max((m.needs_history for m in mutations), default=0)
        self._needs_motion = any(m.needs_motion for m in mutations)
        self._draw_history = mutations[0].draw_history if mutations else 0
        self._past: tuple[Bundle, ...] = ()
        self._baseline = MutationPipeline(baseline, seed, relation) if baseline else None
        #: Generators created before their bundle arrives, each for one draw.
        self._foreseen: dict[tuple[Any, ...], np.random.Generator] = {}

    def meet(self, bundle: Bundle) -> Bundle:
        """Store a bundle for later ones to look back to; return it with the bundles that it looks back to itself, and
        with the ego's motion if a mutation needs that.
        """
        if self._baseline is not None:
            self._baseline.meet(bundle)
        return self.remember(self._moving(bundle))

    def _moving(self, bundle: Bundle) -> Bundle:
        """Return a bundle with the ego's motion, if a mutation needs that."""
        looks_back = self._draw_history > 0 and bool(bundle.images)
        if (self._needs_motion or looks_back) and bundle.motion is None and bundle.track is not None:
            # Of the source, before any mutation has changed its clouds.
            return replace(bundle, motion=bundle.track.at(bundle))
        return bundle

    def remember(self, bundle: Bundle) -> Bundle:
        """Do as :meth:`meet`, but without the ego's motion: recorded draws hold what they took from it."""
        history = max(self._needs_history, self._draw_history if bundle.images else 0)
        if not history:
            return bundle
        since = bundle.index - history
        self._past = tuple(b for b in self._past if b.episode == bundle.episode and since <= b.index < bundle.index)
        current = replace(bundle, earlier=self._past)
        self._past = (*self._past, bundle)
        return current

    def foresee(self, episode: int, index: int, last: Bundle) -> None:
        """Draw in advance what an expected bundle does not decide, so that it need not wait for that.

        ``last``: the latest bundle of the source. A first step alone draws ahead: others get what it makes.
        """
        foreseen: dict[tuple[Any, ...], np.random.Generator] = {}
        for step, mutation in enumerate(self.mutations):
            key = self._key(episode, index, "0", step, 0)
            foreseen[key] = rng = foreseeing(key)
            if step == 0:
                with name_errors(mutation, "foresee"), suppress(NotApplicable):  # ``draw`` says why
                    rng.ahead = mutation.foresee(generator(*key), last)
        self._foreseen = foreseen

    def derive(self, bundle: Bundle, draw_number: str | int = "0", first: int | None = None) -> DerivedFollowup:
        """Draw and make a follow-up, and prove every step on its own input and output; a broken step is the last.

        ``first``: first bundle of the follow-up's segment; None: the whole episode.
        Raises NotApplicable: a mutation has no honest follow-up of this bundle. PluginError: a mutation raised an
        exception.
        """
        draws: list[Draw] = []
        met = self.meet(bundle)
        followup, broken = self._run(met, self._drawing(draw_number, draws, first, met), self._proof)
        if broken is None:
            self._refuse_unmet(bundle, followup)
        if self._baseline is None:
            return DerivedFollowup(followup, draws, broken)
        baseline = self._baseline.derive(bundle, draw_number, first)
        return DerivedFollowup(followup, draws, broken or _unfit(baseline, followup), baseline)

    def derive_unproven(
        self, bundle: Bundle, draw_number: str | int = "0"
    ) -> tuple[DerivedFollowup, Callable[[], str | None]]:
        """Draw and make a follow-up that cannot wait for its proof: the returned function does that later.

        It returns the broken promise, or None.
        Raises NotApplicable: a mutation has no honest follow-up of this bundle. PluginError: a mutation raised an
        exception; the returned function may raise it, too.
        """
        draws: list[Draw] = []
        steps: list[tuple[int, Bundle, Followup, Draw]] = []
        met = self.meet(bundle)
        drawing = self._drawing(draw_number, draws, None, met)
        followup, _ = self._run(met, drawing, lambda *step: steps.append(step))
        self._refuse_unmet(bundle, followup)
        return DerivedFollowup(followup, draws), lambda: next((b for step in steps if (b := self._proof(*step))), None)

    def begun(self, bundle: Bundle, first: int | None = None) -> bool:
        """Whether what a bundle needs has begun: with an earlier one of its episode, or of its segment, and lasts."""
        moving = self._moving(bundle)
        begun = all(self._lasts(step, moving, first) for step in range(len(self.mutations)))
        return begun and (self._baseline is None or self._baseline.begun(bundle, first))

    def handed_over(self, bundle: Bundle, first: int | None = None) -> tuple[Bundle, Begun] | None:
        """Return a bundle, and what has begun, for another process that is to derive its follow-up.

        None: it is to be derived here, as it looks back on earlier bundles, or something begins with it.
        """
        moving = self._moving(bundle)
        unknown_motion = self._needs_motion and moving.motion is None and moving.track is not None
        if self._needs_history or self._draw_history or unknown_motion or not self.begun(moving, first):
            return None
        rows = tuple(self._latest(step, moving, first) for step in range(len(self.mutations)))
        if self._baseline is None:
            return moving, (rows, None)
        milder = self._baseline.handed_over(moving, first)
        return None if milder is None else (milder[0], (rows, milder[1]))

    def take_over(self, bundle: Bundle, begun: Begun, first: int | None = None) -> None:
        """Take what has begun in another process, in place of all that was known, to derive a bundle's follow-up."""
        self._states = {(bundle.episode, first, step): [row] for step, row in enumerate(begun[0])}
        if self._baseline is not None:
            self._baseline.take_over(bundle, begun[1], first)

    @property
    def renews(self) -> bool:
        """Whether what has begun may be over before the episode is."""
        return any(type(mutation).ended is not Mutation.ended for mutation in self.mutations)

    def rebuild(self, bundle: Bundle, draws: Iterable[Draw]) -> Followup:
        """Make a follow-up again from recorded draws. Raises ValueError: there are fewer draws than steps, or more."""
        recorded = list(draws)
        left = iter(recorded)

        def draw(step: int, part: int, source: Bundle) -> Draw:
            for recorded_draw in left:
                return recorded_draw
            raise ValueError(f"got {len(recorded)} draws, too few for {self._names()} on this bundle")

        # Recorded draws hold what they took from the ego's motion: it is not estimated again.
        followup, _ = self._run(self.remember(bundle), draw, lambda *_: None)
        if spare := len(list(left)):
            raise ValueError(f"got {len(recorded)} draws, {spare} more than {self._names()} use on this bundle")
        return followup

    def _drawing(
        self, draw_number: str | int, draws: list[Draw], first: int | None, met: Bundle
    ) -> Callable[[int, int, Bundle], Draw]:
        """Return what draws a step, of the bundle that the steps before made of the source's (``met``)."""

        def draw(step: int, part: int, source: Bundle) -> Draw:
            key = self._key(source.episode, source.index, draw_number, step, part)
            mutation, state = self.mutations[step], self._state(step, source, first, met)
            rng = self._foreseen.pop(key, None) or (generator if mutation.random else generator_on_demand)(*key)
            with name_errors(mutation, "draw"):
                refuse_loose(mutation, source)
                drawn = mutation.draw(rng, source, state)
            refuse_return(mutation, "draw", drawn, dict)
            draws.append(drawn)
            return drawn

        return draw

    def _key(
        self, episode: int, index: int, draw_number: str | int, step: int, part: int
    ) -> tuple[int, str, int, int, str]:
        return self._seed, self._relation, episode, index, f"{draw_number}.{step}.{part}"

    def _run(
        self,
        bundle: Bundle,
        draw: Callable[[int, int, Bundle], Draw],
        proof: Callable[[int, Bundle, Followup, Draw], str | None],
    ) -> tuple[Followup, str | None]:
        bundles: tuple[tuple[int, Bundle], ...] = ((0, bundle),)
        effects = Effects()
        for step, mutation in enumerate(self.mutations):
            sent: list[tuple[int, Bundle]] = []
            for part, (delay_ns, source) in enumerate(bundles):
                if step and mutation.draw_history:
                    source = replace(source, earlier=())  # noqa: PLW2901
                drawn = draw(step, part, source)
                with name_errors(mutation, "apply"):
                    followup = mutation.apply(source, drawn)
                    refuse_return(mutation, "apply", followup, Followup)
                    followup = change_between(mutation, source, followup, drawn)
                sent += [(delay_ns + more_ns, b) for more_ns, b in followup.bundles]
                effects = effects.merged(followup.effects) if part == 0 else effects
                if broken := proof(step, source, followup, drawn):
                    return Followup(tuple(sent), effects), broken
            bundles = tuple(sent)
        return Followup(bundles, _of_all(effects, bundle, bundles)), None

    def _proof(self, step: int, source: Bundle, followup: Followup, drawn: Draw) -> str | None:
        mutation = self.mutations[step]
        with name_errors(mutation, "guarantee"):
            broken = mutation.guarantee(source, followup, drawn)
            broken = broken or prove_between(mutation, source, followup, drawn)
        refuse_return(mutation, "guarantee", broken, str, type(None))
        if broken is None and mutation.joint and followup.bundles:
            broken = without_reason(source, followup.first, mutation.changes, followup.effects.unchanged) or None
        return None if broken is None else f"{name_of(type(mutation))}: {broken}"

    def _refuse_unmet(self, bundle: Bundle, followup: Followup) -> None:
        """Raise NotApplicable for a follow-up in which no sensor that the relation is about shows the change."""
        reasons = followup.effects.unchanged
        if followup.bundles and (why := unmet_need(bundle, followup.first, self._requires, reasons)):
            raise NotApplicable(why)

    def _state(self, step: int, bundle: Bundle, first: int | None, met: Bundle) -> Any:
        if not self._lasts(step, met, first):
            begun = self._states.setdefault((bundle.episode, first, step), [])
            again = f".{bundle.index}" if begun else ""
            rng = generator(self._seed, self._relation, bundle.episode, first, f"begin.{step}{again}")
            with name_errors(self.mutations[step], "begin"):
                state = self.mutations[step].begin(rng, bundle)
            insort(begun, (bundle.index, state), key=lambda one: one[0])
        return self._latest(step, met, first)[1]

    def _lasts(self, step: int, met: Bundle, first: int | None) -> bool:
        """Whether what a mutation has begun is not over at a bundle of the source.

        By the source, since what another mutation makes of it differs from draw to draw.
        """
        index, state = self._latest(step, met, first)
        if index is None or index == met.index:
            return index is not None
        with name_errors(self.mutations[step], "ended"):
            return not self.mutations[step].ended(state, met)

    def _latest(self, step: int, met: Bundle, first: int | None) -> tuple[int | None, Any]:
        """Return the bundle at which the latest state up to a bundle has begun, and that state.

        An episode may be passed several times, such as once a draw: each time with the same states.
        """
        begun = self._states.get((met.episode, first, step), [])
        return next((state for state in reversed(begun) if state[0] <= met.index), (None, None))

    def _names(self) -> str:
        return " + ".join(name_of(type(m)) for m in self.mutations) or "no mutation"


def _of_all(effects: Effects, source: Bundle, sent: Sequence[tuple[int, Bundle]]) -> Effects:
    """Return the effects without the reasons of messages that another mutation changed."""
    if not effects.unchanged or not sent:
        return effects
    first = sent[0][1]
    untouched = {t for s in SENSORS for t in unchanged(messages_of(source, s), messages_of(first, s))}
    return replace(effects, unchanged={t: why for t, why in effects.unchanged.items() if t in untouched})


def _unfit(baseline: DerivedFollowup, followup: Followup) -> str | None:
    """Explain why a baseline cannot replace the source; None if it can."""
    if baseline.broken:
        return f"baseline: {baseline.broken}"
    if [delay_ns for delay_ns, _ in baseline.followup.bundles] != [0]:
        return f"baseline: {len(baseline.followup.bundles)} bundles, expected one, in the source's place"
    moves = [pair.effects.output_transform is not None for pair in (baseline.followup, followup)]
    return "baseline: a scene that is moved cannot be compared with one that is moved less" if any(moves) else None
