# SPDX-License-Identifier: Apache-2.0
"""The moves that make a pair of a replay small: a shorter window, a weaker change, less of what it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask, Rows
from mt_nodes.base.wording import counted
from mt_nodes.data.image_boxes import iou
from mt_nodes.data.outputs import Detections, ImageBoxes, Output
from mt_nodes.engine.reduction.difference import Difference
from mt_nodes.engine.reduction.reduction import Reduction
from mt_nodes.relations.mutations.base import Followup
from mt_nodes.relations.strength import strengths
from mt_nodes.runs.shrink.minimal import fewest, shortest
from mt_nodes.runs.shrink.pair_player import Player, RecordablePlay, SmallerPair, Target
from mt_nodes.runs.shrink.shrinker import Shrinker
from mt_nodes.runs.shrink.weakening import weaken

#: What lies so near to an obstacle is that obstacle, however it is boxed: a metre, or half of its length.
_NEAR_M = 1.0
#: A box that shares so much with another is that box.
_SHARED = 0.3
#: So many objects are told of, those whose score falls most first, and none whose score falls by less.
_MOST, _LEAST_FALL = 5, 0.02


@dataclass
class ScorePath:
    """Scores along the way from the source to the smallest follow-up.

    ``atoms``: how many atoms of the change were there at each step; the first step has none. ``violated``: whether the
    pair was, at each step. ``answers``: what the stack said.
    """

    atoms: list[int] = field(default_factory=list)
    violated: list[bool] = field(default_factory=list)
    answers: list[Output] = field(default_factory=list)

    def add(self, atoms: int, violated: bool, answer: Output) -> None:
        """Take in one step."""
        self.atoms.append(atoms)
        self.violated.append(violated)
        self.answers.append(answer)

    def as_plain(self, source: Output) -> dict[str, Any] | None:
        """Return what JSON can hold: of the objects of the source's answer those whose score falls; None: of none."""
        objects = [row for role in ("detections", "boxes") for row in self._falling(source, role)]
        objects.sort(key=lambda row: min(row["scores"]) - row["scores"][0])
        if not objects:
            return None
        return {"atoms": self.atoms, "violated": self.violated, "objects": objects[:_MOST]}

    def _falling(self, source: Output, role: str) -> list[dict[str, Any]]:
        objects = getattr(source, role)
        if objects is None or not len(objects):
            return []
        scores = np.column_stack([objects.score, *(_scores(objects, getattr(answer, role)) for answer in self.answers)])
        falls = np.flatnonzero(scores[:, 0] - scores.min(axis=1) >= _LEAST_FALL)
        return [
            {"label": str(objects.label[i]), "at": _place(objects, i), "scores": _rounded(scores[i])}
            for i in falls.tolist()
        ]


def _scores(objects: Any, candidates: Any) -> Floats:
    """Return (M,) the best score of what is said where each object was seen, 0 where nothing is."""
    if candidates is None or not len(candidates):
        return np.zeros(len(objects))
    if isinstance(objects, ImageBoxes):
        same = iou(objects.box_px, candidates.box_px) >= _SHARED
    else:
        away = np.linalg.norm(objects.center_m[:, None, :2] - candidates.center_m[None, :, :2], axis=2)
        same = away <= np.maximum(_NEAR_M, objects.size_m[:, 0] / 2.0)[:, None]
    return np.asarray(np.where(same, candidates.score[None, :], 0.0).max(axis=1))


def _place(objects: Detections | ImageBoxes, row: int) -> list[float]:
    """Return x, y of an obstacle in metres, or the edges of a box in pixels."""
    return _rounded(objects.box_px[row] if isinstance(objects, ImageBoxes) else objects.center_m[row, :2])


def _rounded(values: Floats) -> list[float]:
    return [round(float(value), 3) for value in values]


def steps_of(count: int, most: int) -> Sequence[int]:
    """Return 0 to ``count`` in ``most`` steps or fewer, as evenly as whole numbers are."""
    return sorted({round(step) for step in np.linspace(0, count, min(count, most) + 1).tolist()})


#: So many steps lie between the source and the smallest form.
_STEPS = 8
#: So many needed points are told.
_MOST_POINTS = 50


class PairMoves:
    """What is tried of one pair. ``shrinker``: tries it. ``player``: which pair it is."""

    def __init__(self, shrinker: Shrinker[SmallerPair, RecordablePlay], player: Player) -> None:
        self._shrinker, self._player = shrinker, player

    @property
    def all(self) -> tuple[Callable[[], None], ...]:
        """The moves, in order; a weaker change may do with a shorter window."""
        return self._window, self._strength, self._points, self._window, self._scores

    def _window(self) -> None:
        """Give the stack fewer bundles."""
        whole = self._player.pair.bundle is None
        if not whole and self._player.stateless:
            return
        was = self._shrinker.best.left
        try:
            if whole:
                self._ends()
            self._begins(self._shrinker.best.left.end - 1)
        finally:
            now = self._shrinker.best.left
            self._shrinker.row("bundles", str(was.end - was.first), str(now.end - now.first))

    def _begins(self, last: int) -> None:
        """Begin as late as still fails; ``last`` is the bundle that must be in it."""
        best = self._shrinker.best

        def fails(before: int) -> bool:
            left = replace(best.left, first=last - before)
            words = counted(before + left.end - last, "bundle")
            return self._shrinker.tries("window", words, replace(best, left=left))

        shortest(last - best.left.first, fails)

    def _ends(self) -> None:
        """End as early as still fails."""
        best = self._shrinker.best

        def fails(more: int) -> bool:
            left = replace(best.left, end=best.left.first + 1 + more)
            return self._shrinker.tries("window", counted(1 + more, "bundle"), replace(best, left=left))

        shortest(best.left.end - 1 - best.left.first, fails)

    def _strength(self) -> None:
        """Weaken each parameter that has a weak end."""
        axes = strengths(self._shrinker.best.relation) if self._player.relation.role == "relation" else ()
        weaken(self._shrinker, axes, lambda weaker: replace(self._shrinker.best, relation=weaker))

    def _points(self) -> None:
        """Leave out what the change did, atom by atom."""
        shrinker = self._shrinker
        if self._player.pair.bundle is None:
            shrinker.note("points: the pair stands for many inputs; none of them was made smaller")
            return
        target = self._player.target(shrinker.best.relation)
        difference = target.difference
        if difference is None or not difference.parts:
            why = "the follow-up is no single input" if difference is None else "both inputs are alike"
            shrinker.note(f"points: {why}, there is nothing to leave out")
            return
        atoms = len(difference.kinds)
        fails_without = self._tried_atoms(np.empty(0, dtype=np.int64), atoms, None)
        if fails_without:
            # Such as a check that asks for what the change put there: without it anything fails, and means nothing.
            shrinker.note(
                "points: the pair fails with an unchanged last input, too: by what its check asks of what the mutation "
                "says that it did, by what the stack remembers, or by chance; only what the mutation still vouches for "
                "was tried"
            )
        was = self._player.target(self._player.relation).difference
        try:
            fewest(np.arange(atoms), lambda left: self._tried_atoms(left, atoms, target if fails_without else None))
        finally:
            self._count_atoms(target, difference, was or difference)

    def _scores(self) -> None:
        """Tell what points are needed, and how scores fall while they are added one after the other."""
        shrinker, best = self._shrinker, self._shrinker.best
        difference = None if self._player.pair.bundle is None else self._player.target(best.relation).difference
        if difference is None or not difference.parts:
            return
        left = np.ones(len(difference.kinds), dtype=bool) if best.left.mask is None else best.left.mask
        atoms, path, source = np.flatnonzero(left), ScorePath(), None
        shrinker.result.needed = added_points(difference, left)
        for count in steps_of(len(atoms), _STEPS):
            remaining = np.zeros_like(left)
            remaining[atoms[:count]] = True
            words = f"scores: {count} of {len(atoms)}"
            played = shrinker.play(replace(best, left=replace(best.left, mask=remaining)), words)
            source, answer = played.answers(self._player.pair)
            if source is None or answer is None:
                return
            path.add(count, self._player.fails(played), answer)
        if source is not None:
            shrinker.result.path = path.as_plain(source)

    def _tried_atoms(self, atoms: Rows, count: int, vouched: Target | None) -> bool:
        """Try some atoms alone; ``vouched``: only where the mutation's guarantee holds of them."""
        remaining = np.zeros(count, dtype=bool)
        remaining[atoms] = True
        best = self._shrinker.best
        smaller = replace(best, left=replace(best.left, mask=remaining))
        if vouched is not None and broken_guarantee(vouched, smaller.left):
            return False
        if len(atoms):
            return self._shrinker.tries("points", f"{len(atoms)} of {count}", smaller)
        return self._shrinker.counts("points", f"none of {count}, as a check", smaller).enough

    def _count_atoms(self, target: Target, difference: Difference, was: Difference) -> None:
        """Tell what of the difference is left, against that of the pair as it was."""
        left, result = self._shrinker.best.left, self._shrinker.result
        before, now = was.counts(), difference.counts(left.mask)
        for kind in {**before, **now}:
            self._shrinker.row(kind, f"{before.get(kind, 0):,}", f"{now.get(kind, 0):,}")
        if not left.whole:
            result.why = broken_guarantee(target, left)
            result.followup = not result.why


def added_points(difference: Difference, remaining: Mask) -> list[list[float]]:
    """Return x, y, z and, if there is one, intensity of returns or detections that only a reduced follow-up has."""
    given, reduced = difference.given, difference.reduced(remaining)
    rows = []
    for old, new in zip((*given.clouds, *given.radars), (*reduced.clouds, *reduced.radars), strict=True):
        if old is new or old.points.dtype != new.points.dtype:
            continue
        fresh = np.flatnonzero(~np.isin(_as_bytes(new.points), _as_bytes(old.points)))[:_MOST_POINTS]
        strength = [new.points[new.intensity_field][fresh]] if new.intensity_field else []
        rows += np.column_stack([new.xyz[fresh], *strength]).astype(np.float64).round(3).tolist()
    return rows[:_MOST_POINTS]


def _as_bytes(points: npt.NDArray[np.void]) -> npt.NDArray[np.void]:
    packed = np.ascontiguousarray(points)
    return packed.view(np.dtype((np.void, packed.dtype.itemsize)))


def broken_guarantee(target: Target, left: Reduction) -> str:
    """Say why a reduced follow-up is none of the mutation any more, empty where it still is one."""
    derived, mutations = target.prepared.derived, target.relation.mutate
    assert derived is not None, "a follow-up was reduced"
    if len(mutations) != 1 or len(derived.draws) != 1:
        return "the relation has several mutations in a row, which cannot be asked about their sum"
    less: Followup = left.of(derived, target.difference).followup
    try:
        return mutations[0].guarantee(target.bundle, less, derived.draws[0]) or ""
    except (LookupError, ValueError, TypeError, ArithmeticError) as error:
        return f"the mutation's own proof cannot read it: {type(error).__name__}"
