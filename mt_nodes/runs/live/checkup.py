# SPDX-License-Identifier: Apache-2.0
"""Holds a configuration of ``mt live`` against what runs: what is wrong, and what to type. Imports no ROS."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mt_nodes.base.child_probe import ask_child
from mt_nodes.base.environment import ros_environment
from mt_nodes.data.bags.topic_roles import ROLES
from mt_nodes.data.cdr import codec
from mt_nodes.runs.doctor import Finding
from mt_nodes.runs.live.config import NOT_GIVEN, OWN_ARMS
from mt_nodes.runs.live.cost_checkup import heard_of, judge_cost
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.settings import configured
from mt_nodes.stacks.stack import Stack

PROBE = "mt_nodes.nodes.graph_probe"
KINDS = {
    "lidar": (codec.POINT_CLOUD,),
    "camera": (codec.IMAGE, codec.COMPRESSED_IMAGE),
    "camera_info": (codec.CAMERA_INFO,),
    "radar": ROLES["radar"],
}
#: For so long each domain is looked at.
LOOK_S = 3.0
#: Whoever differs from these in a live domain is not heard, or hears us not.
SAME = "the same ROS_AUTOMATIC_DISCOVERY_RANGE, DDS profile and user as the stack's"


@dataclass(frozen=True)
class Graph:
    """What was seen in one ROS domain; endpoints are mappings with ``node``, ``type``, ``reliability``, ``durability``.

    ``kept`` has topic, type, rate and files of what was heard, where it was to be kept.
    A subscriber has also why it would not get what we would publish (``refused``, empty if it would), and how we would
    (``offered``).
    """

    domain: int
    nodes: Sequence[str]
    publishers: Mapping[str, Sequence[Mapping[str, str]]]
    subscribers: Mapping[str, Sequence[Mapping[str, str]]]
    heard: Mapping[str, int]
    clocks: Mapping[str, Mapping[str, Any]]
    kept: Sequence[Mapping[str, Any]] = ()


def check_live_config(
    file: Path, typed: Mapping[str, Any], env: Mapping[str, str], cost: bool = False
) -> Iterator[Finding]:
    """Look at everything that a run with this configuration needs of the graph; nothing is published for it.

    Raises UsageError: the configuration, or what it names, is wrong. MtError: the child failed.
    ``file``: the configuration. ``typed``: what takes the place of what it says. ``env``: environment of the child that
    looks. ``cost``: whether to measure what the relations take of this computer, on what is heard.
    """
    run = LiveRun.make(configured(file, typed), Path())
    stack, config = run.stack, run.request
    arms = {arm: stack.domain.get(arm) for arm in OWN_ARMS[config.mode]}
    with (
        ExitStack() as ending,
        ThreadPoolExecutor() as pool,
    ):  # each look lasts some seconds, and nobody is in another's way
        hear: dict[str, Any] = {"hear": stack.sensor_topics, "given": _given(stack), "qos": config.qos}
        if cost:
            hear["keep"] = ending.enter_context(TemporaryDirectory())
        live = pool.submit(_look, config.live_domain, stack, env, **hear)
        own = {arm: None if domain is None else pool.submit(_look, domain, stack, env) for arm, domain in arms.items()}
        control = config.control_domain
        clocks = None if control == NOT_GIVEN else pool.submit(_look, control, None, env, clocks=True)
        costs = list(judge_cost(run, heard_of(live.result().kept, Path(hear["keep"])))) if cost else []
    yield from judge_live(run, live.result())
    yield from (judge_arm(run, arm, None if graph is None else graph.result()) for arm, graph in own.items())
    yield from judge_clocks(None if clocks is None else clocks.result())
    yield from costs


def judge_live(run: LiveRun, graph: Graph) -> Iterator[Finding]:
    """Judge the domain of the live stack."""
    stack, shadow = run.stack, run.request.mode == "shadow"
    title = f"live domain {graph.domain}"
    if not graph.nodes:
        yield Finding("error", title, "no node is there", f"start the stack; or set live_domain, and use {SAME}")
        return
    yield Finding("ok", title, f"nodes: {', '.join(graph.nodes)}")
    kinds = {topic: KINDS[role] for role, topics in stack.topics.items() for topic in topics}
    for topic in _given(stack):
        yield _published(topic, kinds.get(topic, ()), graph, "inputs or needs")
        if shadow and graph.publishers[topic]:
            yield from _subscribed(topic, graph)
    if not shadow:
        return
    for topic, kind in _answer_types(stack).items():
        yield _published(topic, (kind,), graph, "outputs")
    if not stack.external and (missing := sorted({*stack.nodes} - {*graph.nodes})):
        fix = "start all of the stack, or mend nodes in the stack file"
        yield Finding("warn", title, f"nodes of the stack file are not there: {', '.join(missing)}", fix)


def judge_arm(run: LiveRun, arm: str, graph: Graph | None) -> Finding:
    """Judge the domain of one instance that is not the live one; None: a free one is taken."""
    stack = run.stack
    if graph is None:
        return Finding("ok", f"{arm} arm", "a free domain is taken, and the stack started there")
    title = f"{arm} arm, domain {graph.domain}"
    if not stack.external:
        if unknown := [node for node in graph.nodes if node not in stack.allow_nodes]:
            fix = "stop them, or leave domain out of the stack file: then a free one is taken"
            return Finding("error", title, f"holds nodes: {', '.join(unknown)}; follow-ups would reach them", fix)
        return Finding("ok", title, "nobody is there; the stack is started there")
    environment = f"ROS_DOMAIN_ID={graph.domain}"
    if missing := sorted({*stack.nodes} - {*graph.nodes}):
        fix = f"start the stack there ({environment}), or mend nodes in the stack file"
        return Finding(
            "error", title, f"not there: {', '.join(missing)}; nodes: {', '.join(graph.nodes) or 'none'}", fix
        )
    if unknown := sorted({*graph.nodes} - {*stack.nodes, *stack.allow_nodes}):
        fix = "stop them, or list them in nodes or allow_nodes of the stack file"
        return Finding("error", title, f"holds nodes that the stack file does not name: {', '.join(unknown)}", fix)
    answer_types = _answer_types(stack)
    lacking = [f"nobody subscribes to {topic}" for topic in _given(stack) if not graph.subscribers[topic]]
    lacking += [f"nobody publishes {topic}" for topic in answer_types if not graph.publishers[topic]]
    lacking += [
        f"{topic} is published as {row['type']}, not {kind}"
        for topic, kind in answer_types.items()
        for row in graph.publishers[topic]
        if row["type"] != kind
    ]
    if lacking:
        fix = f"start all of the stack there ({environment}), or mend its topics in the stack file"
        return Finding("error", title, "; ".join(lacking), fix)
    return Finding("ok", title, f"the stack is there: {', '.join(stack.nodes)}")


def judge_clocks(graph: Graph | None) -> Iterator[Finding]:
    """Judge what is known of the clocks of other computers; None: the control domain is not fixed."""
    title = "clock offset"
    if graph is None:
        fix = "for a stack on another computer, fix control_domain and start there: ros2 run mt_nodes clock_echo"
        yield Finding("info", title, "not asked for: control_domain is not fixed", fix)
    elif not graph.clocks:
        fix = f"for a stack on another computer, start there: ROS_DOMAIN_ID={graph.domain} ros2 run mt_nodes clock_echo"
        yield Finding("info", title, f"no clock_echo answers in domain {graph.domain}", fix)
    else:
        for name, row in graph.clocks.items():
            off = f"{name} is {row['offset_ms']:+.1f} ms ahead of us, give or take {row['bound_ms']:.1f} ms"
            late = row.get("warning", "")
            yield Finding("warn" if late else "ok", title, off, "synchronise both with chrony or PTP" if late else "")


def _published(topic: str, kinds: Sequence[str], graph: Graph, key: str) -> Finding:
    """Judge who publishes what we tap; ``kinds`` are the types that it may be of, empty: any."""
    rows, where = graph.publishers[topic], f"ROS_DOMAIN_ID={graph.domain}"
    if not rows:
        fix = f"see {where} ros2 topic list; mend {key} in the stack file, or start who publishes it"
        return Finding("error", topic, f"nobody publishes it in domain {graph.domain}", fix)
    types = sorted({row["type"] for row in rows})
    if len(types) > 1 or (kinds and types[0] not in kinds):
        fix = f"mend {key} in the stack file, or stop who else publishes it"
        return Finding(
            "error", topic, f"published as {', '.join(types)}, expected {' or '.join(kinds) or 'one type'}", fix
        )
    if len({row["durability"] for row in rows}) > 1:
        detail = "some publish it transient local and some volatile: we hear only those that are like the first"
        return Finding("warn", topic, detail, f"see {where} ros2 topic info -v {topic}")
    nodes = ", ".join(sorted({row["node"] for row in rows}))
    if graph.heard.get(topic) == 0:
        return Finding("warn", topic, f"{nodes} publishes it, but nothing came in {LOOK_S:g} s", f"use {SAME}")
    return Finding("ok", topic, f"{types[0]} of {nodes}, {rows[0]['reliability']}, {rows[0]['durability']}")


def _subscribed(topic: str, graph: Graph) -> Iterator[Finding]:
    """Judge who hears it in the live domain: an instance of ours will ask for the same."""
    rows = graph.subscribers[topic]
    if not rows:
        fix = "start all of the stack, or mend inputs or needs in the stack file"
        yield Finding("warn", topic, f"nobody subscribes to it in domain {graph.domain}: is it the stack's input?", fix)
    for row in rows:
        if row["refused"]:
            detail = f"{row['node']} would not hear our instance's arm, which is {row['offered']}: {row['refused']}"
            profile = f"{{reliability: {row['reliability']}, durability: {row['durability']}}}"
            yield Finding("error", topic, detail, f"set qos: to a file with the line {topic}: {profile}")


def _given(stack: Stack) -> list[str]:
    """Return what an instance of ours is given, the leading topic first."""
    return list(dict.fromkeys((*stack.sensor_topics, *stack.needs)))


def _answer_types(stack: Stack) -> dict[str, str]:
    """Return topic and type of what the stack says."""
    return {topic: kind for topic, kind in stack.message_types.items() if topic not in stack.needs}


def _look(domain: int, stack: Stack | None, env: Mapping[str, str], **more: Any) -> Graph:
    topics = [*_given(stack), *_answer_types(stack)] if stack else []
    reply = ask_child(PROBE, ros_environment(env, domain), json.dumps({"topics": topics, "lasting_s": LOOK_S, **more}))
    return Graph(domain, **reply)
