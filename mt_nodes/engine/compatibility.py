# SPDX-License-Identifier: Apache-2.0
"""Whether a stack can be judged by a relation, and be fed from a bag."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mt_nodes.base.errors import UsageError
from mt_nodes.base.plugins import name_of
from mt_nodes.data.bags.bundles import Source
from mt_nodes.data.stack_topics import DIAGNOSTICS, INPUT_ROLES
from mt_nodes.relations.default_relations import DEFAULT, OTHER_DEFAULTS
from mt_nodes.relations.relation import Relation, Suite, load_relation
from mt_nodes.stacks.stack import Stack

#: A shipped stack for each sensor.
_STACKS = {"lidar": "reference_detector", "camera": "reference_camera", "radar": "reference_radar"}


def incompatibility(
    relation: Relation, stack: Stack, loop: bool = False, over_topics: bool | None = None
) -> str | None:
    """Say why a stack cannot be judged by a relation, None if it can.

    ``over_topics``: whether the stack is reached over ROS topics; None: not decided yet.
    """
    if relation.loop and not loop:
        return f"relation '{relation.id}' is of the closed loop, where `mt scenario` judges it"
    if loop and not relation.loop and relation.check is not None:
        name = name_of(type(relation.check))
        return f"relation '{relation.id}' has the check {name}; the closed loop needs one of drives, such as same_trace"
    facts = ("stateless", "map_free", "full_360", "tracks")
    for need in relation.requires:
        roles = need.split(" or ")
        if set(roles) <= set(INPUT_ROLES) and not set(roles) & set(stack.inputs):
            example = stack_for(roles).replace("what it has", "that")
            return f"relation '{relation.id}' requires a {need}; stack '{stack.name}' has no such input{example}"
        if need in ("lidar_only", "radar_only") and set(stack.inputs) != {need.removesuffix("_only")}:
            return f"relation '{relation.id}' requires {need}; stack '{stack.name}' takes {', '.join(stack.inputs)}"
        if need in facts and not getattr(stack, need):
            return (
                f"relation '{relation.id}' requires a stack that is {need}; '{stack.name}' is not, "
                f"or its file lacks {need}: true"
            )
    if (
        reason := _contradicting_sensors(relation, stack)
        or _without_transforms(relation, stack, over_topics)
        or _without_wires(relation, stack)
    ):
        return reason
    outputs = {*stack.answers, *({DIAGNOSTICS} & set(stack.outputs))}
    lacking = [n for n in (relation.check.needs if relation.check else ()) if n not in outputs]
    return (
        f"relation '{relation.id}' judges {', '.join(lacking)}; stack '{stack.name}' says no such" if lacking else None
    )


def _contradicting_sensors(relation: Relation, stack: Stack) -> str:
    """Say which of a stack's sensors would contradict the change: no follow-up would be honest."""
    sync_s = stack.sync_s if stack.callable else float("inf")
    found = (mutation.contradiction(stack.inputs, sync_s) for mutation in (*relation.mutate, *relation.baseline))
    reason = next(filter(None, found), "")
    return reason and (
        f"relation '{relation.id}' does not fit stack '{stack.name}', which takes {', '.join(stack.inputs)}: {reason}"
    )


def _without_transforms(relation: Relation, stack: Stack, over_topics: bool | None) -> str | None:
    """Say why changed transforms would not reach a stack: a relation that changes nothing for it holds in vain."""
    if not any(mutation.about_transforms for mutation in (*relation.mutate, *relation.baseline)):
        return None
    changes = f"relation '{relation.id}' changes the transforms that the stack is given"
    if over_topics or not stack.callable:
        return f"{changes}; over topics it gets the recorded ones; use a Python stack and --transport inprocess"
    if not stack.points_frame and not stack.boxes_frame:
        return f"{changes}; stack '{stack.name}' is given none, its file lacks points_frame"
    return None


def _without_wires(relation: Relation, stack: Stack) -> str | None:
    """Say why changed messages, such as fixes of satellite navigation, would not reach a stack."""
    changed = [m for m in (*relation.mutate, *relation.baseline) if m.about_wires]
    others = [topic for topic in stack.needs if topic not in ("/tf", "/tf_static")]
    if not changed or (others and not stack.callable):
        return None
    return (
        f"relation '{relation.id}' changes messages of a {changed[0].sensors[0]}; stack '{stack.name}' is not known to "
        "take any: name their topics in `needs` of the file of a ROS 2 program"
    )


def stack_for(roles: Collection[str]) -> str:
    """Return how to name a shipped stack that takes one of these inputs, for the end of an error."""
    name = next((name for role, name in _STACKS.items() if role in roles), "")
    return f"; for what it has there is --stack {name}" if name else ""


def default_relations(stack: Stack) -> tuple[str, ...]:
    """Return the relations that a stack is tested by unless others are asked for: they fit what it takes and says."""
    fit = (
        names
        for names in (DEFAULT, *OTHER_DEFAULTS)
        if not any(incompatibility(load_relation(n), stack) for n in names)
    )
    return next(fit, DEFAULT)


def check_requirements(suite: Suite, stack: Stack, loop: bool = False, over_topics: bool | None = None) -> None:
    """Refuse relations that cannot judge a stack, ``loop`` in a closed one; see :func:`incompatibility`.

    Raises UsageError: naming the first one and why.
    """
    # Control and sham are always offered: where a stack has nothing for them to change, their pairs say so.
    for relation in suite.relations:
        reason = incompatibility(relation, stack, loop, over_topics)
        if reason is not None:
            raise UsageError(reason)


def check_needs(sources: Sequence[Source], stack: Stack) -> None:
    """Refuse bags that lack a topic the stack needs besides its inputs. Raises UsageError."""
    for source in sources:
        for topic in stack.needs:
            if topic not in source.info:
                raise UsageError(
                    f"{source.reader.path}: stack '{stack.name}' needs {topic}, which the bag lacks; "
                    f"it has {', '.join(sorted(source.info))}"
                )
