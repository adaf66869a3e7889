# SPDX-License-Identifier: Apache-2.0
"""What stacks commanded in the frames of a case, and by how much a change of it must exceed what has no reason."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from mt_nodes.base.arrays import Floats
from mt_nodes.base.errors import UsageError
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.ledger import read_ledger
from mt_nodes.relations.relation import CONTROL
from mt_nodes.rules.case_planning import CaseFrames
from mt_nodes.rules.prediction_judging import LEAST_CONTROLS, Bounds, Predictions, control_bounds, spread_bounds
from mt_nodes.runs.automt.automt_request import CONTROL_BOUND
from mt_nodes.runs.replay.commands_file import FILE, ArmCommand, CommandPair, read_commands

Both = tuple[Predictions, Predictions]
"""What was predicted for the source and for the follow-up."""
_NOTHING = ArmCommand()


@dataclass(frozen=True)
class StackPredictions:
    """What one stack commanded, by follow-up, and the follow-ups that it was given, answered or not."""

    commands: Mapping[Pair, CommandPair]
    given: frozenset[Pair]

    @classmethod
    def load(cls, directory: Path) -> StackPredictions:
        """Read what a stack commanded in a replay of cases; nothing where it broke down before the first answer.

        Raises InfrastructureError: a line is damaged.
        """
        if not (directory / FILE).is_file():
            return cls({}, frozenset())
        given = frozenset(Pair.parse(line["pair"]) for line in read_ledger(directory))
        return cls({one.pair: one for one in read_commands(directory)}, given)


def answered(tables: Sequence[StackPredictions], case: CaseFrames, relation: str, draw: int) -> list[int]:
    """Return the frames of a case whose follow-up any stack answered."""
    pairs = {frame: _pair(case, frame, relation, draw) for frame in range(case.first, case.last + 1)}
    return [frame for frame, pair in pairs.items() if any(pair in table.commands for table in tables)]


def predicted(tables: Sequence[StackPredictions], case: CaseFrames, relation: str, draw: int) -> Both:
    """Return what stacks predict for a case, (M, T): the T frames of it that any of M stacks answered.

    Where a stack was silent after the change, what it said to the source is known from the control arm. Of a frame
    whose follow-up it was not given, as where its arms had to agree first, it says nothing at all.
    """
    frames = answered(tables, case, relation, draw)
    rows = [[_commands(table, case, frame, relation, draw) for frame in frames] for table in tables]
    source, followup = ([[pair[i] for pair in row] for row in rows] for i in (0, 1))
    return _predictions(source, len(frames)), _predictions(followup, len(frames))


def undisturbed(tables: Sequence[StackPredictions], case: CaseFrames) -> Both:
    """Return what stacks predict for a case and for the same once more, where nothing was changed."""
    return predicted(tables, case, CONTROL, 0)


def of_stack(predictions: Predictions, row: int) -> Predictions:
    """Return what one stack predicts, (1, T)."""
    return Predictions(predictions.speed_mps[row : row + 1], predictions.steering_rad[row : row + 1])


def bounds_of(kind: str, source: Predictions, controls: Sequence[Bounds | str]) -> list[Bounds | str]:
    """Return the bounds of each stack for a case, or why there are none.

    Args:
        kind: of :data:`mt_nodes.runs.automt.automt_request.BOUNDS`. source: what stacks predict for the source.
        controls: of each stack from its control arm (:func:`bounds_by_control`).
    """
    if kind == CONTROL_BOUND:
        return list(controls)
    try:
        return [spread_bounds(source, kind)] * len(controls)
    except UsageError as error:
        return [str(error)] * len(controls)


def bounds_by_control(tables: Sequence[StackPredictions], cases: Sequence[CaseFrames]) -> list[Bounds | str]:
    """Return for each stack what it changes where nothing was changed, or why that is not known.

    Of too few cases each frame counts; single frames change more than medians do, so such a bound is the wider one.
    """
    both = [undisturbed(tables, case) for case in cases]
    return [_by_control([(of_stack(s, row), of_stack(f, row)) for s, f in both]) for row in range(len(tables))]


def _by_control(both: Sequence[Both]) -> Bounds | str:
    def changes(of: Sequence[Floats]) -> Floats:
        return np.concatenate(of) if of else np.empty((0, 2))

    cases = changes([np.column_stack(f.medians) - np.column_stack(s.medians) for s, f in both])
    frames = changes([_stacked(f) - _stacked(s) for s, f in both])
    for rows, what in ((cases, "cases"), (frames, "frames")):
        known = _known(rows)
        if len(known) >= LEAST_CONTROLS:
            bounds = control_bounds(known)
            return replace(bounds, how=bounds.how.replace("cases", what))
    return f"the control arm has {len(_known(frames))} frames, expected {LEAST_CONTROLS} or more"


def _known(rows: Floats) -> Floats:
    """Return rows of what is told at all; a quantity that is never told does not vary."""
    never = ~np.isfinite(rows).any(axis=0)
    rows = np.where(never, 0.0, rows)
    return np.asarray(rows[np.isfinite(rows).all(axis=1)]) if not never.all() else np.empty((0, 2))


def _stacked(one: Predictions) -> Floats:
    return np.column_stack([one.speed_mps[0], one.steering_rad[0]])


def _pair(case: CaseFrames, frame: int, relation: str, draw: int) -> Pair:
    return Pair(case.bag, frame, relation, str(draw))


def _commands(
    table: StackPredictions, case: CaseFrames, frame: int, relation: str, draw: int
) -> tuple[ArmCommand, ArmCommand]:
    pair = _pair(case, frame, relation, draw)
    if (line := table.commands.get(pair)) is not None:
        return line.source, line.followup
    control = table.commands.get(_pair(case, frame, CONTROL, 0)) if pair in table.given else None
    return control.source if control is not None else _NOTHING, _NOTHING


def _predictions(rows: Sequence[Sequence[ArmCommand]], frames: int) -> Predictions:
    def column(name: str) -> Floats:
        values = [[math.nan if (v := getattr(one, name)) is None else v for one in row] for row in rows]
        return np.array(values, dtype=np.float64).reshape(len(rows), frames)

    return Predictions(column("speed_mps"), column("steering_rad"))
