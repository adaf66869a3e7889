# SPDX-License-Identifier: Apache-2.0
"""What the launch files do: the processes and nodes of the plan as launch actions.

Needs ``launch`` and ``launch_ros``, which come with ROS 2; only launch files import this. ``ros2 launch`` ends with 1
after an error raised here and with 0 otherwise, so a run whose exit code is not 0 ends with an error that names it.

The suite is an ``ExecuteProcess``: it joins several domains and takes no ROS arguments. The nodes that run alone are
``launch_ros`` nodes, with parameters and remappings. Both are started as ``python -m``, by the Python that runs
``launch``: so the package is found whether colcon or pip installed it.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessIO, OnShutdown
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from mt_nodes.base.environment import free_domains, ros_environment, user_domain
from mt_nodes.base.errors import MtError, UsageError, suggest
from mt_nodes.base.jsonl import read_result
from mt_nodes.base.params import plain
from mt_nodes.base.processes import Process
from mt_nodes.cli.arguments import Argument, request_from_texts
from mt_nodes.cli.options import settings
from mt_nodes.data.transforms import dump_transforms
from mt_nodes.engine.plan import (
    LIVE_SUITE,
    NodePlan,
    demo_process,
    inline_process,
    realtime_nodes,
    simulator_processes,
    suite_process,
    suite_stop_s,
)
from mt_nodes.engine.run_record import STACK_FILE
from mt_nodes.nodes.launch_arguments import (
    DEMO_ARGUMENTS,
    DEMO_STOP_S,
    INLINE_ARGUMENTS,
    INLINE_STOP_S,
    LIVE_ARGUMENTS,
    NODE_ARGUMENTS,
    PARAMS_FILE,
    REPLAY_ARGUMENTS,
    ROS_ARGUMENTS,
    SIMULATOR_ARGUMENTS,
    SIMULATOR_STOP_S,
)
from mt_nodes.nodes.launch_ros_arguments import (
    log_words,
    namespace,
    params_file,
    place_of,
    remappings,
    ros_words,
    use_sim_time,
)
from mt_nodes.nodes.node_main import READY
from mt_nodes.runs.live.config import LiveConfig
from mt_nodes.runs.live.live_run import LiveRun
from mt_nodes.runs.live.settings import configured
from mt_nodes.runs.loop.rig import Rig
from mt_nodes.runs.replay.replay_run import NEVER_REPLAYED, Run
from mt_nodes.runs.vehicle.checkup import refuse_what_is_not_safe
from mt_nodes.stacks.stack import load_stack


def declared(arguments: Iterable[Argument]) -> list[Any]:
    """Return the actions that declare arguments."""
    return [DeclareLaunchArgument(a.name, default_value=a.default, description=a.help) for a in arguments]


def replay(context: Any) -> list[Any]:
    """Make a run directory of the arguments and start its suite. Raises MtError: what was asked cannot run."""
    texts = _texts(context, REPLAY_ARGUMENTS)
    run = Run.create(request_from_texts(REPLAY_ARGUMENTS, texts), texts["out"])
    suite = _with_ros(suite_process(run.out, context.environment), texts, context)
    return _suite(suite, run.out, suite_stop_s(run.stack))


def live(context: Any) -> list[Any]:
    """Make a run directory of a configuration file and start its suite beside the stack that runs.

    Raises MtError: what was asked cannot run.
    """
    return _live(context, lambda config: None)


def vehicle(context: Any) -> list[Any]:
    """Do as :func:`live` does, once ``mt doctor --vehicle`` finds no error in this computer and the configuration.

    Raises MtError: what was asked cannot run, or not here.
    """
    return _live(context, refuse_what_is_not_safe)


def _live(context: Any, check: Callable[[LiveConfig], None]) -> list[Any]:
    texts = _texts(context, LIVE_ARGUMENTS)
    config = configured(Path(texts["config"]), settings(texts["set"].split()))
    check(config)
    run = LiveRun.create(config, texts["out"])
    suite = _with_ros(suite_process(run.out, context.environment, LIVE_SUITE), texts, context)
    return _suite(suite, run.out, suite_stop_s(run.stack))


def inline(context: Any) -> list[Any]:
    """Start ``mt inline``, in the domain of the shell where the configuration names none.

    Raises MtError: ``arm`` is neither true nor false.
    """
    texts = _texts(context, INLINE_ARGUMENTS)
    if texts["arm"] not in ("true", "false"):
        raise UsageError(f"arm: got '{texts['arm']}', expected true or false")
    process = inline_process(
        texts["config"], texts["arm"] == "true", texts["duration"], texts["out"], context.environment
    )
    return _supervised(process, INLINE_STOP_S, lambda code: f"mt inline ended with exit code {code}")


def _with_ros(process: Process, texts: Mapping[str, str], context: Any) -> Process:
    """Return a process with the ROS arguments of the launch file and of what encloses it."""
    return dataclasses.replace(process, argv=(*process.argv, *ros_words(texts, context.launch_configurations)))


def _suite(suite: Process, out: Path, stop_s: float) -> list[Any]:
    """Return the actions of a suite process; its end is told with its summary, and is the end of the launch."""

    def tell(code: int) -> str:
        from mt_nodes.cli.outcome import print_summary

        file = out / "summary.json"
        if not file.exists():
            raise MtError(f"the suite ended with exit code {code} and without a summary; see {suite.log}")
        summary = read_result(file)
        print_summary(summary, out)
        return f"exit code {code}: {summary['exit_why']}"

    keep = RegisterEventHandler(_kept_in(suite.log))
    return [LogInfo(msg=f"results go to {out}"), keep, *_supervised(suite, stop_s, tell)]


def demo(context: Any) -> list[Any]:
    """Start ``mt demo``."""
    texts = _texts(context, DEMO_ARGUMENTS)
    process = demo_process(texts["out"], texts["seed"], context.environment)
    return _supervised(process, DEMO_STOP_S, lambda code: f"mt demo ended with exit code {code}")


def nodes(context: Any) -> list[Any]:
    """Start replayer, mutator, monitor and two instances of a stack, each a node that runs alone.

    The replayer starts when all others are up. The monitor's verdicts stay on their topic until the user interrupts.
    Raises MtError: what was asked cannot run.
    """
    texts = _texts(context, NODE_ARGUMENTS)
    scratch = tempfile.TemporaryDirectory(prefix="mt_nodes_")
    out = Path(scratch.name)
    run = Run.make(request_from_texts(NODE_ARGUMENTS, texts), out)
    given = [user_domain({"ROS_DOMAIN_ID": texts["domain"]})] if texts["domain"] else []
    domains = (*given, *free_domains(2 - len(given), exclude=given).domains)  # leased until this process ends
    plans = realtime_nodes(run.request, run.stack, _names(run), out, (domains[0], domains[1]))
    run.save()
    *first, replayer = [_node(plan, texts, context) for plan in plans]
    place = place_of(texts, context.launch_configurations)
    hint = f"verdicts: ROS_DOMAIN_ID={domains[0]} ros2 topic echo {place}/mt/verdicts"
    return [
        RegisterEventHandler(OnShutdown(on_shutdown=lambda event, context: scratch.cleanup())),
        RegisterEventHandler(_when_ready(first, replayer)),
        LogInfo(msg=f"source arm in ROS domain {domains[0]}, follow-up arm in {domains[1]}; {hint}"),
        *first,
    ]


def simulator(context: Any) -> list[Any]:
    """Start a world, and the stack that drives through it, in the domain of the shell; its end ends the launch.

    Raises MtError: there is no such stack.
    """
    texts = _texts(context, SIMULATOR_ARGUMENTS)
    stack = load_stack(texts["stack"])
    scratch = tempfile.TemporaryDirectory(prefix="mt_nodes_")
    out = Path(scratch.name)
    (out / STACK_FILE).write_text(json.dumps(plain(stack)), encoding="utf-8")
    dump_transforms(Rig.for_stack(stack).mounts, out / "transforms.yaml")
    own = {a.name: texts[a.name] for a in SIMULATOR_ARGUMENTS if a not in (*ROS_ARGUMENTS, PARAMS_FILE)}
    world, driver = simulator_processes(own, stack, out, context.environment)
    world = _with_ros(world, texts, context)
    keep = RegisterEventHandler(OnShutdown(on_shutdown=lambda event, context: scratch.cleanup()))
    drives = [] if driver is None else [_process(driver, stack.stop_timeout_s)]
    return [keep, *drives, *_supervised(world, SIMULATOR_STOP_S, lambda code: f"the drive ended with exit code {code}")]


def described(arguments: Iterable[Argument], start: Callable[[Any], list[Any]]) -> list[Any]:
    """Return what a launch description consists of: the arguments, and what starts when they are known."""
    return [*declared(arguments), OpaqueFunction(function=start)]


def _texts(context: Any, arguments: Iterable[Argument]) -> dict[str, str]:
    known = {a.name for a in arguments}
    for name in {word.partition(":=")[0] for word in context.argv} - known:
        # `launch` takes any name; only what looks like one of ours is surely not meant for another launch file.
        if difflib.get_close_matches(name, known, n=1, cutoff=0.8):
            raise UsageError(f"unknown argument '{name}'{suggest(name, known)}")
    return {name: LaunchConfiguration(name).perform(context) for name in known}


def _supervised(process: Process, stop_s: float, tell: Callable[[int], str]) -> list[Any]:
    """Return the action of a process whose end is the end of the launch; ``tell`` says in words how it ended.

    An error that ``tell`` raises ends the launch as an exit code does.
    """

    def ended(event: Any, context: Any) -> Any:
        words = tell(event.returncode)
        sys.stdout.flush()
        if event.returncode:
            raise MtError(words)
        return EmitEvent(event=Shutdown(reason=words))

    return [_process(process, stop_s, on_exit=ended)]


def _process(process: Process, stop_s: float, **more: Any) -> Any:
    return ExecuteProcess(
        cmd=list(process.argv),
        env=dict(process.env),
        name=process.name,
        output="both",
        output_format="{line}",
        sigterm_timeout=str(stop_s),
        **more,
    )


def _kept_in(log: Path) -> Any:
    """Return the handler that adds what processes print to a log of the run, too."""

    def keep(event: Any) -> None:
        with log.open("ab") as file:
            file.write(event.text)

    return OnProcessIO(on_stdout=keep, on_stderr=keep)


def _names(run: Run) -> dict[str, str]:
    """Return the names that the bag's topics go by; a recorded output of the stack must not be taken for a live one."""
    mapped, _ = run.topics()
    recorded = set(run.sources[0].info) - NEVER_REPLAYED
    return {topic: mapped[topic].topic if topic in mapped else f"/recorded{topic}" for topic in recorded}


def _node(plan: NodePlan, texts: Mapping[str, str], context: Any) -> Any:
    program, *words = plan.argv
    return Node(
        executable=program,
        arguments=words,
        exec_name=plan.name,
        namespace=namespace(texts) or None,
        parameters=[*params_file(texts), {**plan.parameters, "use_sim_time": use_sim_time(texts)}],
        remappings=[*plan.remappings, *remappings(texts)],
        ros_arguments=log_words(texts),
        env=ros_environment(context.environment, plan.domain),
        output="both",
        on_exit=_node_ended(plan.name),
    )


def _node_ended(name: str) -> Callable[[Any, Any], Any]:
    """Return the handler that ends the launch when a node ends by itself, which the replayer does with its bag."""

    def ended(event: Any, context: Any) -> Any:
        if (event.returncode or name != "replayer") and not context.is_shutdown:
            raise MtError(f"{name} ended with exit code {event.returncode}")
        return LogInfo(msg=f"{name} has ended")

    return ended


def _when_ready(nodes: list[Any], then: Any) -> Any:
    """Return the handler that starts ``then`` when each of the nodes has said that it is ready."""
    waiting = list(nodes)

    def heard(event: Any) -> Any:
        if event.action in waiting and READY in event.text.decode(errors="replace"):
            waiting.remove(event.action)
            return None if waiting else then
        return None

    return OnProcessIO(on_stdout=heard, on_stderr=heard)
