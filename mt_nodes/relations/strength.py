# SPDX-License-Identifier: Apache-2.0
"""Strength of a relation's change, on a scale from 0 (next to nothing) to 1 (as in the relation)."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from mt_nodes.base import plugins
from mt_nodes.base.errors import UsageError, suggest
from mt_nodes.base.params import Param, plain, spec_of
from mt_nodes.relations.mutations.base import Mutation
from mt_nodes.relations.relation import Relation

if TYPE_CHECKING:
    from mt_nodes.relations.world_changes.base import Setting

#: Ends with this ratio or more are interpolated logarithmically.
LOG_FROM_RATIO = 10.0


@dataclass(frozen=True)
class Strength:
    """One parameter of a relation's change, from its weakest to its strongest value.

    Attributes:
        step: index of the mutation, or of the change of the world.
        weak, strong: values at the fractions 0 and 1; ``weak`` may be the larger one (visibility in fog).
        pair: it is an interval of the relation, which the search narrows to one value (places only).
        part: ``mutate``, or ``scenario`` for a change of the world.
    """

    step: int
    mutation: str
    parameter: str
    weak: float
    strong: float
    whole: bool = False
    pair: bool = False
    unit: str = ""
    part: str = "mutate"

    @property
    def name(self) -> str:
        """``mutation.parameter``."""
        return f"{self.mutation}.{self.parameter}"

    @property
    def log(self) -> bool:
        """Whether interpolation is logarithmic."""
        low, high = sorted((self.weak, self.strong))
        return low > 0 and high / low >= LOG_FROM_RATIO

    def value(self, fraction: float) -> float | int:
        """Return the value at a fraction of 0 (weak) to 1 (strong); integers are rounded towards the weak end.

        Raises ValueError: the fraction is outside of 0 to 1.
        """
        if not 0.0 <= fraction <= 1.0:
            raise ValueError(f"got fraction {fraction!r} of {self.name}, expected 0 to 1")
        if fraction in (0.0, 1.0):
            exact = self.strong if fraction else self.weak
        elif self.log:
            exact = math.exp(math.log(self.weak) + fraction * math.log(self.strong / self.weak))
        else:
            exact = self.weak + fraction * (self.strong - self.weak)
        low, high = sorted((self.weak, self.strong))
        exact = min(max(exact, low), high)  # rounding must not lead out of the range
        return self._whole(exact) if self.whole else exact

    def _whole(self, exact: float) -> int:
        near = round(exact)
        if math.isclose(exact, near, rel_tol=1e-9):
            return near
        return math.floor(exact) if self.strong > self.weak else math.ceil(exact)

    def fraction(self, value: float) -> float:
        """Return the fraction of a value, limited to 0 … 1; 0 if both ends are equal."""
        if self.strong == self.weak:
            return 0.0
        if self.log and value > 0:
            along = math.log(value / self.weak) / math.log(self.strong / self.weak)
        else:
            along = (value - self.weak) / (self.strong - self.weak)
        return min(max(along, 0.0), 1.0)

    @property
    def finest(self) -> float:
        """The least difference of fractions that can change the value: one step for integers, else 0."""
        if not self.whole or self.strong == self.weak:
            return 0.0
        near = self.strong + (1 if self.weak > self.strong else -1)
        return abs(1.0 - self.fraction(near))


def strengths(relation: Relation, reach: str = "relation") -> tuple[Strength, ...]:
    """Return the strength parameters of a relation's mutations that differ from their weak ends.

    A baseline with the same parameter is the weak end: a change below it would reverse the comparison.

    Args:
        relation: its own values are the strong ends.
        reach: ``relation``: up to the relation's own values, so that a violation is one of the relation itself;
            ``range``: up to the ends of the parameters' ranges, on the side of the relation's values.
    """
    found = [
        strength
        for step, mutation in enumerate(relation.mutate)
        for field in dataclasses.fields(mutation)  # type: ignore[arg-type]
        if field.init and (strength := _strength(relation, step, mutation, field, reach)) is not None
    ]
    return tuple(one for one in found if one.weak != one.strong)


def strengths_in_world(relation: Relation, setting: Setting) -> tuple[Strength, ...]:
    """Return the strengths of a relation's changes of the world, whose weak ends come from the source's world.

    ``relation``: of the closed loop; its own values are the strong ends. ``setting``: of the source.
    """
    found = []
    for step, change in enumerate(relation.scenario):
        specs = {field.name: spec_of(field) for field in dataclasses.fields(change)}  # type: ignore[arg-type]
        for name, weak in change.weak_ends(setting).items():
            spec, strong, whole = specs[name], getattr(change, name), _whole_numbers(type(change), name)
            least = min(max(weak, weak if spec.low is None else spec.low), weak if spec.high is None else spec.high)
            strength = Strength(step, plugins.name_of(type(change)), name, least, strong, whole, False, spec.unit)
            found.append(replace(strength, part="scenario"))
    return tuple(one for one in found if one.weak != one.strong)


def _strength(
    relation: Relation, step: int, mutation: Mutation, field: dataclasses.Field[Any], reach: str
) -> Strength | None:
    spec, value = spec_of(field), getattr(mutation, field.name)
    if spec.neutral is None or isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    weak = _least(relation, mutation, field.name, spec.neutral)
    strong = value if reach == "relation" or value == weak else _end(spec, weak, value)
    whole = _whole_numbers(type(mutation), field.name)
    return Strength(step, plugins.name_of(type(mutation)), field.name, weak, strong, whole, unit=spec.unit)


def _least(relation: Relation, mutation: Mutation, name: str, neutral: float) -> float:
    """Return the weak end: the baseline's value of the parameter of such a mutation, else its neutral value."""
    same = [float(getattr(m, name)) for m in relation.baseline if type(m) is type(mutation)]
    return same[0] if same else neutral


def _end(spec: Param, weak: float, value: float) -> float:
    """Return the end of the range beyond a value, away from the weak end; the value itself if there is none."""
    end = spec.high if value > weak else spec.low
    return value if end is None else end


def _whole_numbers(cls: type, name: str) -> bool:
    hint = typing.get_type_hints(cls)[name]
    kinds = {a for a in (typing.get_args(hint) or (hint,)) if a is not Ellipsis and a is not type(None)}
    return kinds == {int}


def axis(relation: Relation, name: str, ends: tuple[float, float] | None = None) -> Strength:
    """Return one parameter of a relation's mutations to search over, strength or place.

    Raises UsageError: there is no such parameter, it is no number, or its ends are unknown or out of range.
    ``name``: ``mutation.parameter``, or ``parameter`` if only one mutation has it. ``ends``: weak and strong end; None:
    those of :func:`strengths`, for an interval (nearest and farthest, say) the interval itself.
    """
    step, mutation, field = _field_of(relation, name)
    spec, value = spec_of(field), getattr(mutation, field.name)
    full = f"{plugins.name_of(type(mutation))}.{field.name}"
    pair = _interval(value)
    if not pair and (isinstance(value, (bool, str)) or not isinstance(value, (int, float, type(None)))):
        raise UsageError(f"{full}: got {plain(value)!r}; only numbers can be searched over")
    if ends is None:
        own = _strength(relation, step, mutation, field, "relation")
        ends = (own.weak, own.strong) if own else (value[0], value[1]) if pair else None
    if ends is None or ends[0] == ends[1]:
        raise UsageError(f"{full}: how far it may go is not known here; say it: {full}=WEAK..STRONG")
    for end in ends:
        if (spec.low is not None and end < spec.low) or (spec.high is not None and end > spec.high):
            raise UsageError(f"{full}: got {end:g}, expected {spec.low:g} to {spec.high:g} {spec.unit}".rstrip())
    whole = _whole_numbers(type(mutation), field.name)
    return Strength(step, plugins.name_of(type(mutation)), field.name, *ends, whole, pair, spec.unit)


def _interval(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(isinstance(v, (int, float)) for v in value)


def _field_of(relation: Relation, name: str) -> tuple[int, Mutation, dataclasses.Field[Any]]:
    known = {
        (f"{plugins.name_of(type(m))}.{f.name}", step): (step, m, f)
        for step, m in enumerate(relation.mutate)
        for f in dataclasses.fields(m)  # type: ignore[arg-type]
        if f.init
    }
    matches = [at for at in known if name in (at[0], at[0].partition(".")[2])]
    if len(matches) == 1:
        return known[matches[0]]
    names = sorted({at[0] for at in known})
    if matches:
        raise UsageError(f"relation '{relation.id}' has {name} {len(matches)} times; name one that is there once")
    raise UsageError(f"relation '{relation.id}' has no parameter '{name}'{suggest(name, names)}; it has {names}")


def is_place(relation: Relation, axis: Strength) -> bool:
    """Whether an axis is a place, and not a strength of a change."""
    specs = {f.name: spec_of(f) for f in dataclasses.fields(relation.mutate[axis.step])}  # type: ignore[arg-type]
    return specs[axis.parameter].neutral is None


def at(relation: Relation, axes: Sequence[Strength], fractions: Sequence[float]) -> Relation:
    """Return the relation with its parameters at these fractions of their axes; it keeps its id, and so its draws.

    Raises UsageError: the mutation refuses the combination of values.
    """
    return with_values(relation, axes, [axis.value(f) for axis, f in zip(axes, fractions, strict=True)])


def with_values(relation: Relation, axes: Sequence[Strength], values: Sequence[float]) -> Relation:
    """Return the relation with these values of the axes' parameters; see :func:`at`."""
    changed: dict[tuple[str, int], dict[str, Any]] = {}
    for axis, value in zip(axes, values, strict=True):
        changed.setdefault((axis.part, axis.step), {})[axis.parameter] = (value, value) if axis.pair else value
    lists = {part: list(getattr(relation, part)) for part, _ in changed}
    for (part, step), parameters in changed.items():
        lists[part][step] = replace(lists[part][step], **parameters)
    parts: dict[str, Any] = {part: tuple(steps) for part, steps in lists.items()}
    return replace(relation, **parts)


def value_of(relation: Relation, axis: Strength) -> float:
    """Return a relation's value for an axis that is no interval."""
    return float(getattr(getattr(relation, axis.part)[axis.step], axis.parameter))


def overall(relation: Relation, axes: Sequence[Strength], fractions: Sequence[float]) -> float:
    """Return the overall strength of a change, 0 … 1: the mean over the strength axes; 1 if there are none."""
    counted = [f for axis, f in zip(axes, fractions, strict=True) if not is_place(relation, axis)]
    return sum(counted) / len(counted) if counted else 1.0


def values_of(axes: Sequence[Strength], fractions: Sequence[float]) -> Mapping[str, float | int]:
    """Return the values at these fractions by the axes' names."""
    return {axis.name: axis.value(fraction) for axis, fraction in zip(axes, fractions, strict=True)}
