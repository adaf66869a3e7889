# SPDX-License-Identifier: Apache-2.0
"""The moves that make a pair of drives small: a shorter drive, a weaker change, less that differs, fewer others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from mt_nodes.base.arrays import Rows
from mt_nodes.base.errors import UsageError
from mt_nodes.relations.relation import Relation
from mt_nodes.relations.strength import strengths, strengths_in_world
from mt_nodes.relations.world_changes.base import Setting
from mt_nodes.relations.world_changes.parts import differing, things, without
from mt_nodes.runs.loop.episode_conductor import PERIOD_S
from mt_nodes.runs.shrink.drive_player import DrivePlayer, Drives, Worlds, same_draws
from mt_nodes.runs.shrink.minimal import fewest, shortest
from mt_nodes.runs.shrink.shrinker import Shrinker
from mt_nodes.runs.shrink.weakening import weaken
from mt_nodes.world.drive.scenario_checks import checked


class DriveMoves:
    """What is tried of one pair of drives. ``shrinker``: tries it. ``driver``: which pair it is."""

    def __init__(self, shrinker: Shrinker[Worlds, Drives], driver: DrivePlayer) -> None:
        self._shrinker, self._driver = shrinker, driver

    @property
    def all(self) -> tuple[Callable[[], None], ...]:
        """The moves, in order: the shorter a drive, the quicker all that follows."""
        return self._duration, self._strength, self._changes, self._others, self._window, self._duration

    def _tries(self, move: str, tried: str, form: Worlds) -> bool:
        """Try a form, unless its worlds cannot be made or driven through."""
        return _drivable(form) and self._shrinker.tries(move, tried, form)

    def _duration(self) -> None:
        """End both drives as early as still fails."""
        best, rows = self._shrinker.best, self._rows

        def fails(more: int) -> bool:
            return self._tries("duration", f"{(1 + more) * PERIOD_S:.1f} s", _lasting(best, (1 + more) * PERIOD_S))

        try:
            shortest(rows - 1, fails)
        finally:
            self._shrinker.row("drive", f"{rows * PERIOD_S:.1f} s", f"{self._rows * PERIOD_S:.1f} s")

    @property
    def _rows(self) -> int:
        played = self._shrinker.result.played
        assert played is not None, "only what fails is made small"
        return played.rows

    def _strength(self) -> None:
        """Weaken each parameter that has a weak end; a change of the world is drawn anew from the same seed."""
        best, relation = self._shrinker.best, self._driver.relation.role == "relation"
        axes = strengths(best.relation) if relation else ()
        if relation and (in_world := strengths_in_world(best.relation, best.setting)):
            if same_draws(self._driver.drawn(best), best.draws):
                axes += in_world
            else:
                self._shrinker.note("strength: draws from the seed are not those of the run, so nothing was drawn anew")
        weaken(self._shrinker, axes, self._weaker)

    def _weaker(self, relation: Relation) -> Worlds | None:
        form = replace(self._shrinker.best, relation=relation)
        draws = self._driver.drawn(form) if relation.scenario else ()
        return None if draws is None or not _drivable(weaker := replace(form, draws=draws)) else weaker

    def _changes(self) -> None:
        """Put back what of the follow-up's world differs, part by part."""
        shrinker, best = self._shrinker, self._shrinker.best
        followup = best.followup_world
        assert followup is not None, "it was driven through"
        parts = differing(best.setting, followup.setting)
        if not parts:
            return
        if not followup.effects.carried.stays:
            shrinker.note("parts: the follow-up's world lies elsewhere as a whole, so no part of it was put back")
            return

        def fails(remaining: Rows) -> bool:
            back = (*best.back, *(name for i, name in enumerate(parts) if i not in set(remaining.tolist())))
            return self._tries("parts", f"{len(remaining)} of {len(parts)}", replace(best, back=back))

        try:
            if not self._fails_unchanged(best, parts):
                fewest(np.arange(len(parts)), fails)
        finally:
            self._tell_parts(best.setting, parts)

    def _fails_unchanged(self, best: Worlds, parts: Sequence[str]) -> bool:
        """Tell whether the pair fails in a world that is the source's; there nothing is to be found."""
        unchanged = replace(best, back=(*best.back, *parts))
        words = f"none of {len(parts)}, as a check"
        if best.relation.mutate or not _drivable(unchanged):
            return False
        if fails := self._shrinker.counts("parts", words, unchanged).enough:
            self._shrinker.note(
                "parts: the pair fails in an unchanged world, too: by what its check asks of what the change says that "
                "it did, by noise, or by chance; no part was put back"
            )
        return fails

    def _tell_parts(self, source: Setting, parts: Sequence[str]) -> None:
        best, result = self._shrinker.best, self._shrinker.result
        left = [name for name in parts if name not in best.back]
        self._shrinker.row("parts of the world that differ", f"{len(parts)}", f"{len(left)}: {', '.join(left)}")
        if best.back:
            result.followup = False
            result.why = f"the source's again: {', '.join(best.back)}"

    def _others(self) -> None:
        """Leave out of both worlds whoever is the same in both, one by one."""
        best = self._shrinker.best
        followup = best.followup_world
        assert followup is not None, "it was driven through"
        other = differing(best.setting, followup.setting)
        names = [name for name in things(best.setting) if name not in other]
        if not names:
            return

        def fails(remaining: Rows) -> bool:
            removed = [name for i, name in enumerate(names) if i not in set(remaining.tolist())]
            form = replace(best, setting=without(best.setting, removed))
            return self._tries("others", f"{len(remaining)} of {len(names)}", form)

        try:
            if not fails(np.empty(0, dtype=np.int64)):
                fewest(np.arange(len(names)), fails)
        finally:
            now = things(self._shrinker.best.setting)
            left = [name for name in names if name in now]
            self._shrinker.row("others in both worlds", f"{len(names)}", f"{len(left)}: {', '.join(left)}".rstrip(": "))

    def _window(self) -> None:
        """Change what sensors see only from as late and up to as early as still fails."""
        if not self._shrinker.best.relation.mutate:
            return
        rows = self._rows
        first, end = self._shrinker.best.window
        was = min(rows, rows if end is None else end) - first
        try:
            shortest(was - 1, lambda more: self._tried_window(first, first + 1 + more))
            last = (self._shrinker.best.window[1] or rows) - 1
            shortest(last - first, lambda before: self._tried_window(last - before, last + 1))
        finally:
            first, end = self._shrinker.best.window
            now = min(rows, rows if end is None else end) - first
            self._shrinker.row("instants that are changed", str(was), str(now))

    def _tried_window(self, first: int, end: int) -> bool:
        form = replace(self._shrinker.best, window=(first, end))
        return self._tries("window", f"{first * PERIOD_S:.1f} to {end * PERIOD_S:.1f} s", form)


def _lasting(form: Worlds, duration_s: float) -> Worlds:
    scenario = replace(form.setting.scenario, duration_s=duration_s)
    return replace(form, setting=replace(form.setting, scenario=scenario))


def _drivable(form: Worlds) -> bool:
    """Tell whether one can drive through both worlds of a form."""
    if form.followup_world is None:
        return False
    try:
        for setting in (form.setting, form.followup_world.setting):
            checked(setting.scenario, setting.road)
    except UsageError:
        return False
    return True
