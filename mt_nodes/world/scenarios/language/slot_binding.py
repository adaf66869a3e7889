# SPDX-License-Identifier: Apache-2.0
"""Assigns arguments to the slots of a constructor; ``...`` is aligned from the right, by kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mt_nodes.world.scenarios.language.functions import Function, Slot
from mt_nodes.world.scenarios.language.kinds import KINDS
from mt_nodes.world.scenarios.language.problems import Edit, Findings, Problem, Repair, Span, ValueRefusal
from mt_nodes.world.scenarios.language.slots import fits
from mt_nodes.world.scenarios.language.values import AttributeValues, Item


@dataclass(frozen=True)
class ElidedItems:
    """``...`` among the arguments."""


@dataclass(frozen=True)
class Model:
    """A name that implies the type of the current definition, as ``ped1_model`` does for ``ped1``; ``take`` uses it."""

    name: str
    item: Item
    take: Callable[[], None]


def bind(
    function: Function, name: str, at: Span, items: Sequence[Item], findings: Findings, model: Model | None = None
) -> dict[str, Any]:
    """Return the values of a constructor's slots by name, None if empty.

    ``name``: of the constructor. ``at``: place of the call. ``model``: gives the type if ``...`` left it out.
    Raises Refused: a value is of the wrong kind, there is no slot for it, or a required slot is empty.
    """
    items = list(items)
    dots = [k for k, item in enumerate(items) if isinstance(item.data, ElidedItems)]
    if len(dots) > 1:
        raise ValueRefusal(Problem(items[dots[1]].at, "'...' a second time", "it once"))
    if dots:
        items = _aligned(function, items, dots[0], findings, model)
    elif not function.more and items and isinstance(items[-1].data, AttributeValues):
        items = _attributes_last(function, items)
    slots = function.slots
    if function.more:
        slots = (*slots[:-1], *[slots[-1]] * max(1, len(items) - len(slots) + 1))
    if len(items) > len(slots):
        raise ValueRefusal(
            Problem(items[len(slots)].at, f"{len(items)} values in {name}(…)", _signature(name, function))
        )
    items += [Item(None, at)] * (len(slots) - len(items))
    return _converted(slots, items, name, at, findings, function.more)


def _converted(
    slots: Sequence[Slot], items: Sequence[Item], name: str, at: Span, findings: Findings, more: bool
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    wrong = False
    for slot, item in zip(slots, items, strict=True):
        try:
            if item.data is None and slot.needed:
                raise ValueRefusal(
                    Problem(item.at, f"no {slot.name} in {name}(…)", KINDS[slot.kind].about.replace("`", "'"))
                )
            value = None if item.data is None else KINDS[slot.kind].make(item)
        except ValueRefusal as refusal:
            findings.refused(refusal)
            wrong = True
            continue
        several = more and slot is slots[-1]
        values[slot.name] = (*values.get(slot.name, ()), value) if several else value
    if wrong:
        raise ValueRefusal
    return values


def _signature(name: str, function: Function) -> str:
    return f"at most {len(function.slots)}: {name}({', '.join(slot.name for slot in function.slots)})"


def _attributes_last(function: Function, items: list[Item]) -> list[Item]:
    """Move attributes to the end, after any slots that were left out."""
    left_out = len(function.slots) - len(items)
    if function.slots[-1].kind == "Attributes" and left_out > 0:
        return [*items[:-1], *[Item(None, items[-1].at)] * left_out, items[-1]]
    return items


def _aligned(function: Function, items: list[Item], k: int, findings: Findings, model: Model | None) -> list[Item]:
    """Return the items with empty ones for ``...``: what follows it goes as far to the right as it fits."""
    before, dots, behind = items[:k], items[k], items[k + 1 :]
    filled: list[Item] = [*before, *[Item(None, dots.at)] * (len(function.slots) - len(before))]
    high = len(function.slots)
    for item in reversed(behind):
        high = next(
            (
                s
                for s in range(high - 1, k - 1, -1)
                if item.data is None or fits(KINDS[function.slots[s].kind].make, item)
            ),
            -1,
        )
        if high < 0:
            raise ValueRefusal(
                Problem(item.at, "what fits no slot after '...'", "a value of a slot that '...' left out")
            )
        filled[high] = item
    left_out = (high if behind else len(function.slots)) - k
    text, taken = ", " * (left_out - 1) if behind else "", ""
    slot = next((s for s, one in enumerate(function.slots) if one.name == "type"), None)
    if model and not behind and slot is not None and slot >= k:
        filled[slot] = Item(model.item.data, dots.at)
        model.take()
        text, taken = ", " * (slot - k) + model.name, f", with '{model.name}' for the type"
    hint = f"taken for {left_out} empty slot{'s' * (left_out != 1)}{taken}"
    findings.repaired(
        Repair(Problem(dots.at, "'...'", "each slot, or nothing between commas", hint), _edit(items, k, text, left_out))
    )
    return filled


def _edit(items: Sequence[Item], k: int, text: str, left_out: int) -> tuple[Edit, ...]:
    """Return the edit that replaces ``...`` by empty slots, or removes it at the end or where it stands for none."""
    at = items[k].at
    if text or (left_out and k + 1 < len(items)):
        return (Edit(at.start, at.end, text),)
    if k > 0 and items[k - 1].data is not None:
        return (Edit(items[k - 1].at.end, at.end, ""),)
    return (Edit(at.start, items[k + 1].at.start if not left_out and k + 1 < len(items) else at.end, ""),)
