# SPDX-License-Identifier: Apache-2.0
"""Checks of the states of traffic lights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from mt_nodes.base.arrays import Floats, Mask
from mt_nodes.base.assignment import linear_sum_assignment
from mt_nodes.base.params import param
from mt_nodes.data.effects import Effects
from mt_nodes.data.image_boxes import pair, warped
from mt_nodes.data.lanes import SignalStates
from mt_nodes.data.messages import Bundle
from mt_nodes.data.outputs import ImageBoxes, Output
from mt_nodes.data.transforms import UnknownTransform, move
from mt_nodes.data.verdict import Judgement, Outcome
from mt_nodes.relations.checks.base import at_least, nothing_to_judge
from mt_nodes.relations.checks.boxes import IN_DOUBT, hidden, image_of, whole
from mt_nodes.relations.checks.scored_check import ScoredCheck

Rows = npt.NDArray[np.intp]
#: State of a light of which the stack says that it cannot tell.
UNKNOWN = "unknown"
_NAMED = 3


@dataclass(frozen=True)
class SignalCheck(ScoredCheck):
    """Base of checks of traffic lights: which of the follow-up's lights is which of the source's.

    Lights with one name in both outputs are the same; others in an image are, where their boxes overlap by ``min_iou``
    or their middles lie within ``gate_px`` (lamps are small); others with a place, where these are within ``gate_m``.
    """

    needs: ClassVar[tuple[str, ...]] = ("signals",)
    scored: ClassVar[str] = "signals"

    min_iou: float = param(0.3, low=0.01, high=1.0, help="overlap (intersection over union) of boxes of one light")
    gate_px: float = param(8.0, low=0.0, high=500.0, unit="px", help="or distance of the middles of its boxes")
    gate_m: float = param(2.0, low=0.01, high=50.0, unit="m", help="distance of its places")
    least_height_px: float = param(3.0, low=0.0, unit="px", help="lower boxes are not demanded")
    depth_matters: bool = param(True, help="lights whose depth, on which the change depends, is in doubt are left out")

    def expected(self, source: SignalStates, effects: Effects, bundle: Bundle) -> tuple[SignalStates, Mask]:
        """Return the source's lights where the mutation leaves them, and which (K,) it may have hidden or changed."""
        doubtful = np.zeros(len(source), dtype=bool)
        image = image_of(bundle, _boxes(source))
        if image is not None and source.in_image.any():
            boxes, inside = _boxes(source), source.in_image
            if image.topic in effects.image_transforms:
                boxes = warped(boxes, effects.image_transforms[image.topic])
            added = [box for box in effects.image_boxes if box.topic == image.topic]
            near = ImageBoxes.make("", None, [box.box_px for box in added], [box.label for box in added])
            doubtful[inside] = hidden(boxes, near)
            if self.depth_matters and image.topic in effects.doubtful_depth:
                doubtful[inside] |= effects.doubtful_depth[image.topic].shares(boxes.box_px) > IN_DOUBT
            moved = source.box_px.copy()
            moved[inside] = boxes.box_px
            source = replace(source, box_px=moved)
        if effects.mirrored:
            source = replace(source, colour=_mirrored(source.colour))
        carry = effects.carry(source.frame_id, bundle.transforms) if _placed(source).any() else None
        return (source if carry is None else replace(source, stop=_moved(carry, source.stop))), doubtful

    def partners(self, before: SignalStates, after: SignalStates) -> Rows:
        """Return the row of each light (K,) in the follow-up, -1 for none: by name, then by image, then by place."""
        partner = np.full(len(before), -1)
        names = after.name.tolist()
        for row, name in enumerate(before.name.tolist()):
            if name and names.count(name) == 1:
                partner[row] = names.index(name)
        for rows, free, match in (
            (before.in_image, after.in_image, self._in_image),
            (_placed(before), _placed(after), self._in_place),
        ):
            left = np.flatnonzero((partner < 0) & rows & ~_shared_name(before, after))
            open_ = np.setdiff1d(np.flatnonzero(free), partner)
            paired, taken = match(before, after, left, open_)
            partner[left[paired]] = open_[taken]
        return partner

    def _in_image(self, before: SignalStates, after: SignalStates, rows: Rows, free: Rows) -> tuple[Rows, Rows]:
        paired, taken = pair(_boxes(before, rows), _boxes(after, free), self.min_iou)
        left, open_ = np.setdiff1d(np.arange(len(rows)), paired), np.setdiff1d(np.arange(len(free)), taken)
        more = _nearest(_middles(before, rows[left]), _middles(after, free[open_]), self.gate_px)
        return np.concatenate([paired, left[more[0]]]), np.concatenate([taken, open_[more[1]]])

    def _in_place(self, before: SignalStates, after: SignalStates, rows: Rows, free: Rows) -> tuple[Rows, Rows]:
        return _nearest(before.stop[rows, :2], after.stop[free, :2], self.gate_m)

    def demanded(self, source: SignalStates) -> Mask:
        """Return which lights (K,) of the source have a known state, a high score and, in an image, enough height."""
        sure = (source.colour != UNKNOWN) & (source.score >= self.thresholds.high)
        height_px = source.box_px[:, 3] - source.box_px[:, 1]
        return np.asarray(sure & ~(height_px < self.least_height_px))  # NaN: in no image


@dataclass(frozen=True)
class SignalStatesKept(SignalCheck):
    """Each traffic light whose state the source knows has the same state in the follow-up.

    A light that is not seen any more is lost, and so is one whose state has become ``unknown``, unless
    ``may_become_unknown``: then only another known state violates, and where no state is known any more nothing is
    decided. Lights that an added object may hide are not demanded. New lights are reported beside it.
    """

    may_become_unknown: bool = param(False, help="a light that is lost, or of unknown state, violates nothing")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Compare light by light."""
        assert source.signals is not None and followup.signals is not None
        try:
            before, doubtful = self.expected(source.signals, effects, bundle)
            after = _in_frame(followup.signals, before.frame_id, bundle)
        except UnknownTransform as error:
            return Judgement(Outcome.ERROR, reason=str(error), unit="lights")
        demanded = self.demanded(before) & ~doubtful
        if not demanded.any():
            reason = f"no light of known state with a score of {self.thresholds.high:g} or more"
            return nothing_to_judge(reason, "lights")
        after = _take(after, after.score >= self.thresholds.low)
        return self._decide(before, after, demanded)

    def _decide(self, before: SignalStates, after: SignalStates, demanded: Mask) -> Judgement:
        partner = self.partners(before, after)
        states = np.array([after.colour[j] if j >= 0 else UNKNOWN for j in partner.tolist()], dtype=np.str_)
        open_ = demanded & (states == UNKNOWN)
        if self.may_become_unknown:
            demanded = demanded & ~open_
            if not demanded.any():
                return nothing_to_judge("the state of no light is known in the follow-up", "lights")
        wrong = demanded & (states != before.colour)
        bound, missing = int(demanded.sum()), int(wrong.sum())
        new = len(after) - int((partner >= 0).sum())
        texts = [f"{described(before, i)} is {_became(after, int(partner[i]))}" for i in np.flatnonzero(wrong)[:_NAMED]]
        more = f" and {missing - _NAMED} more" if missing > _NAMED else ""
        reason = "; ".join(texts) + more if missing else f"{bound} keep their state"
        detail: dict[str, Any] = {"states": [before.colour[demanded].tolist(), states[demanded].tolist()]}
        if before.in_image[wrong].any():
            detail["lost_px"] = [
                [*row, state]
                for row, state in zip(before.box_px[wrong].round(1).tolist(), before.colour[wrong], strict=True)
            ]
        return at_least(
            bound - missing, bound, "lights", reason, lost=int((wrong & (partner < 0)).sum()), gained=new, detail=detail
        )


@dataclass(frozen=True)
class SignalFound(SignalCheck):
    """A traffic light that the mutation adds to the image is seen, in the state ``state``.

    It is one of the follow-up's lights within the added object's box that is none of the source's. Objects of which
    less than ``least_visible`` is in sight, or that the image cuts off, are not demanded. If nothing was added, as by
    control and sham, the source's own lights of that state must keep it (``signal_states_kept``).
    """

    demands_of_itself: ClassVar[bool] = True

    state: str = param("red", help="state of the added light")
    least_visible: float = param(0.8, low=0.0, high=1.0, help="share of the object that must be in sight")
    least_light_px: float = param(24.0, low=0.0, unit="px", help="height of the added object from which it is demanded")

    def judge(self, source: Output, followup: Output, effects: Effects, bundle: Bundle) -> Judgement:
        """Demand every visible added light."""
        assert source.signals is not None and followup.signals is not None
        if not effects.image_boxes:
            names = ("score_high", "score_low", "min_iou", "gate_px", "gate_m", "least_height_px", "depth_matters")
            kept = SignalStatesKept(**{name: getattr(self, name) for name in names})
            own = replace(source, signals=_take(source.signals, source.signals.colour == self.state))
            return kept.judge(own, followup, effects, bundle)
        before, after = source.signals, followup.signals
        image = image_of(bundle, _boxes(after if len(after) else before))
        boxes = [b for b in effects.image_boxes if image is not None and b.topic == image.topic]
        tall = [
            b for b in boxes if b.box_px[3] - b.box_px[1] >= self.least_light_px and b.visible >= self.least_visible
        ]
        shown = [b for b in tall if image is not None and whole(b.box_px, image)]
        if not shown:
            return nothing_to_judge(f"all {len(effects.image_boxes)} lights added are hidden or too small", "lights")
        after = _take(after, after.in_image & (after.score >= self.thresholds.low))
        old = set(self.partners(before, after).tolist())
        fresh = [i for i in range(len(after)) if i not in old and after.colour[i] == self.state]
        middles = _middles(after, np.array(fresh, dtype=np.intp))
        missing = [b for b in shown if not _within(middles, b.box_px).any()]
        text = (
            f"no {self.state} light seen at ({missing[0].box_px[0]:.0f}, {missing[0].box_px[1]:.0f}) px"
            if missing
            else ""
        )
        return at_least(
            len(shown) - len(missing),
            len(shown),
            "lights",
            text or f"found {len(shown)}",
            lost=len(missing),
            detail={"lost_px": [[*map(float, b.box_px), self.state] for b in missing]},
        )


def described(signals: SignalStates, row: int) -> str:
    """Describe a light by state and name or place: ``red light '12'``, ``red light at (374, 270) px``."""
    state = f"{signals.colour[row]} light"
    if signals.name[row]:
        return f"{state} '{signals.name[row]}'"
    if signals.in_image[row]:
        x0, y0, x1, y1 = signals.box_px[row].tolist()
        return f"{state} at ({(x0 + x1) / 2:.0f}, {(y0 + y1) / 2:.0f}) px"
    x, y, _ = signals.stop[row].tolist()
    return f"{state} at ({x:.1f}, {y:.1f}) m"


def _mirrored(states: npt.NDArray[np.str_]) -> npt.NDArray[np.str_]:
    """Return states with arrows to the other side."""
    sides = {"left": "right", "right": "left"}
    turned = ["_".join(sides.get(word, word) for word in state.split("_")) for state in states.tolist()]
    return np.array(["+".join(sorted(state.split("+"))) for state in turned], dtype=np.str_)


def _became(after: SignalStates, row: int) -> str:
    return "not seen any more" if row < 0 else str(after.colour[row])


def _boxes(signals: SignalStates, rows: Rows | None = None) -> ImageBoxes:
    rows = np.flatnonzero(signals.in_image) if rows is None else rows
    return ImageBoxes.make(signals.frame_id, None, signals.box_px[rows], signals.colour[rows].tolist())


def _middles(signals: SignalStates, rows: Rows) -> Floats:
    return np.asarray((signals.box_px[rows, :2] + signals.box_px[rows, 2:]) / 2.0).reshape(-1, 2)


def _placed(signals: SignalStates) -> Mask:
    return np.asarray(np.isfinite(signals.stop[:, :2]).all(axis=1))


def _shared_name(before: SignalStates, after: SignalStates) -> Mask:
    """Return which lights (K,) have a name where the follow-up names its lights, too: their names alone decide."""
    return np.asarray((before.name != "") & bool(len(after) and (after.name != "").all()))


def _nearest(before: Floats, after: Floats, gate: float) -> tuple[Rows, Rows]:
    """Return the rows of places (M, 2) and (K, 2) that belong together: least total distance, none beyond the gate."""
    if not len(before) or not len(after):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    apart = np.linalg.norm(before[:, None] - after[None], axis=2)
    rows, columns = linear_sum_assignment(np.minimum(apart, gate + 1.0))
    good = apart[rows, columns] <= gate
    return rows[good], columns[good]


def _within(places: Floats, box: Sequence[float]) -> Mask:
    x0, y0, x1, y1 = box
    return np.asarray((places >= (x0, y0)).all(axis=1) & (places <= (x1, y1)).all(axis=1))


def _take(signals: SignalStates, rows: Mask) -> SignalStates:
    columns = ("name", "colour", "stop", "score", "box_px")
    return replace(signals, **{name: getattr(signals, name)[rows] for name in columns})


def _moved(matrix: Floats, stop: Floats) -> Floats:
    xy = move(matrix, np.column_stack([stop[:, :2], np.zeros(len(stop))]))[:, :2]
    return np.column_stack([xy, stop[:, 2]])


def _in_frame(signals: SignalStates, frame_id: str, bundle: Bundle) -> SignalStates:
    if signals.frame_id == frame_id or not _placed(signals).any():
        return signals
    return replace(signals, stop=_moved(bundle.transforms.lookup(frame_id, signals.frame_id), signals.stop))
