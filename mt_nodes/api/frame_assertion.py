# SPDX-License-Identifier: Apache-2.0
"""Single frames as assertions: a stack in this process, for tests that try hundreds of frames."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mt_nodes.api.frames import Frame
from mt_nodes.api.judge import FrameVerdict, judge
from mt_nodes.api.mutate import mutate
from mt_nodes.base.errors import NotApplicable, UsageError
from mt_nodes.base.params import build
from mt_nodes.data.outputs import Output
from mt_nodes.data.verdict import Outcome
from mt_nodes.relations.relation import Relation, load_relation
from mt_nodes.stacks.callable_host import CallableHost
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import Stack, load_stack

#: A shipped stack, a stack file, or a callable.
FrameStack = str | os.PathLike[str] | Callable[..., Any]


def assert_frame_holds(
    frame: Frame,
    stack: FrameStack,
    relation: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    faults: str | Sequence[str] = (),
) -> list[FrameVerdict]:
    """Return the verdicts of a frame if it violates no relation and decides one at least.

    Args:
        frame: what the source arm is given.
        stack: as of ``replay``; it is called in this process, and made anew for each arm.
        relation: name or file of a relation, or several.
        seed: of the draws.
        settings: keys that a stack file would have.
        faults: planted in a reference stack.

    Raises:
        AssertionError: the frame violates a relation, no answer could be judged, or, outside of Hypothesis, nothing
            was demanded. In a test of Hypothesis such a frame is rejected, as by ``assume``: it counts as no example.
        UsageError: no such relation or stack.
    """
    __tracebackhide__ = True
    names = [relation] if isinstance(relation, (str, os.PathLike)) else [*relation]
    if not names:
        raise UsageError("assert_frame_holds: got no relation, expected the name of one, or several")
    if not isinstance(frame, Frame):
        raise UsageError(f"assert_frame_holds: frame: got {type(frame).__name__}, expected one of mt_nodes.frames")
    judged = [_judged(frame, stack, os.fspath(name), seed, settings or {}, faults) for name in names]
    verdicts = [verdict for verdict in judged if isinstance(verdict, FrameVerdict)]
    for verdict in verdicts:
        if verdict.outcome not in (Outcome.HOLDS, Outcome.NOT_APPLICABLE):
            raise AssertionError(f"{verdict}\n  frame: {frame!r}\n  seed: {seed}")
    if not any(verdict.outcome is Outcome.HOLDS for verdict in verdicts):
        _reject("; ".join(map(str, judged)))
    return verdicts


def _judged(
    frame: Frame, stack: FrameStack, relation: str, seed: int, settings: Mapping[str, Any], faults: str | Sequence[str]
) -> FrameVerdict | NotApplicable:
    loaded = load_relation(relation)
    try:
        changed = mutate(frame, relation, seed=seed)
    except NotApplicable as why:
        return why
    arms: tuple[Frame, ...] = (changed.baseline or frame, changed)
    before, after = (_answer(_host(stack, loaded, settings, faults, frame), arm) for arm in arms)
    own = os.fspath(stack) if isinstance(stack, (str, os.PathLike)) else ""
    return judge(relation, before, after, changed, stack=own, settings=settings)


def _host(
    stack: FrameStack, relation: Relation, settings: Mapping[str, Any], faults: str | Sequence[str], frame: Frame
) -> CallableHost:
    """Return a new instance of the stack."""
    planted = tuple(filter(None, (faults,) if isinstance(faults, str) else faults))
    if isinstance(stack, (str, os.PathLike)):
        loaded = load_stack(os.fspath(stack), settings)
        if not loaded.callable:
            raise UsageError(
                f"assert_frame_holds: stack '{loaded.name}' is a ROS 2 program; frames need a Python stack"
            )
        return CallableHost.make(with_faults(loaded, planted) if planted else loaded)
    if planted:
        raise UsageError("assert_frame_holds: faults: only reference stacks have some; name one as the stack")
    needs = relation.check.needs if relation.check else ()
    rows = {"callable": "your:stack", "inputs": dict.fromkeys(frame.sensors), "outputs": dict.fromkeys(needs)}
    function: Any = stack() if inspect.isclass(stack) else stack
    takes_stamp = "stamp_ns" in inspect.signature(function).parameters
    return CallableHost(function, build(Stack, {"name": "stack", **rows, **settings}, "settings"), takes_stamp)


def _answer(host: CallableHost, frame: Frame) -> Output:
    """Return what a stack says of a frame. Raises UsageError: the frame lacks what it takes."""
    bundle, stack = frame.bundle, host.stack
    messages: dict[str, Sequence[Any]] = {
        "lidar": bundle.clouds,
        "camera": bundle.images,
        "camera_info": bundle.camera_infos,
        "radar": bundle.radars,
    }
    given: dict[str, Any] = {}
    for role, topics in stack.topics.items():
        if len(messages.get(role, ())) < len(topics):
            raise UsageError(
                f"assert_frame_holds: stack '{stack.name}' takes a {role}, the frame has {', '.join(frame.sensors)}"
            )
        given |= dict(zip(topics, messages[role], strict=False))
    return host(given if stack.joins else given[stack.leading_topic], bundle.transforms)


def _reject(reason: str) -> None:
    """Tell Hypothesis that a frame is no example; elsewhere it is a failure: nothing was tested."""
    hypothesis = sys.modules.get("hypothesis")
    if hypothesis is not None and hypothesis.currently_in_test_context():
        hypothesis.event("nothing demanded")
        hypothesis.reject()
    raise AssertionError(f"nothing was demanded: {reason}")
