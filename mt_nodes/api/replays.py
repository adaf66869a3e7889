# SPDX-License-Identifier: Apache-2.0
"""``mt_nodes.replay`` and ``mt_nodes.load``: run a replay, or read the results of a run."""

from __future__ import annotations

import dataclasses
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from mt_nodes.api.arguments_check import AnyPath, mapping_of, texts_of, whole_number_of
from mt_nodes.api.result import Result
from mt_nodes.base.errors import InfrastructureError, IsolationError, StackError, UsageError
from mt_nodes.engine.compatibility import default_relations
from mt_nodes.engine.plan import ReplayRequest, suite_process
from mt_nodes.engine.run_record import STACK_FILE, in_directory
from mt_nodes.engine.summary.deaths import describe_deaths
from mt_nodes.engine.summary.score_range import score_notes
from mt_nodes.runs.relation_choice import left_out_lines
from mt_nodes.runs.replay.execute import execute, in_process_arms
from mt_nodes.runs.replay.replay_run import Run
from mt_nodes.runs.replay.unused_transforms import transform_warnings
from mt_nodes.runs.run_execution import PairCounter, ShowCount, Summary, execute_in
from mt_nodes.stacks.pickled_callable import FILE, stack_rows
from mt_nodes.stacks.stack import load_stack

#: Name of a shipped stack, path of a stack file, or a callable.
AnyStack = AnyPath | Callable[..., Any]
_LOG = "\n    | "
#: Relations that a warning names for one reason; ``run.json`` has all.
_NAMES_LEFT_OUT = 6


def replay(
    bag: AnyPath | Sequence[AnyPath],
    stack: AnyStack = "reference_detector",
    relations: AnyPath | Sequence[AnyPath] = (),
    *,
    settings: Mapping[str, Any] | None = None,
    out: AnyPath | None = None,
    seed: int = 0,
    limit: int | None = None,
    draws: int = 1,
    faults: str | Sequence[str] = (),
    topics: Mapping[str, str] | None = None,
    transforms: AnyPath = "",
    waivers: AnyPath = "",
    plugins: AnyPath | Sequence[AnyPath] = (),
    mode: str = "twin",
    pace: str = "lockstep",
    rate: float = 1.0,
    qos: AnyPath = "",
    transport: str = "",
    report: bool = True,
    progress: ShowCount | None = None,
) -> Result:
    """Replay bags into a stack, source and follow-ups, and judge each pair; as ``mt replay`` does.

    Args:
        bag: bag directory, ``.mcap``, ``.db3`` or ROS 1 ``.bag``, or a data set such as ``kitti:DIR``; or several.
        stack: name of a shipped stack, path of a stack file, or a callable: points (N, 4) float32 ``x y z intensity``
            in, boxes (M, 7) ``x y z length width height yaw`` in metres and radians out, or any other answer that
            `docs/stacks.md` allows. Each arm has a copy of a callable in a process of its own; a class is called there.
        relations: names or files, patterns such as ``noise_*``, ``tag:fog``, suites; default: those that fit the stack.
            What a pattern or suite names and cannot judge the stack is left out, with a warning.
        settings: keys of the stack file, such as ``{"stateless": True}``, or for cameras
            ``{"inputs": "camera", "outputs": "boxes"}``.
        out: results directory, default ``mt_results/<time>``.
        seed: of all random draws.
        limit: bundles per bag at most.
        draws: follow-ups per relation and bundle.
        faults: planted in a reference stack.
        topics: role -> topic, where the bag has several candidates.
        transforms: YAML file with transforms that the bag lacks.
        waivers: YAML file with known violations that are accepted.
        plugins: directories with your own plugins.
        mode, pace, rate, qos: as of ``mt replay``.
        transport: ``inprocess`` calls a Python stack without topics, ``ros`` sends messages; default: ``inprocess``
            for Python stacks, ``ros`` for others.
        report: make tables and report at the end.
        progress: called with the number of pairs judged, to come, and violated.

    Returns:
        The result, whatever the relations came to.

    Raises:
        UsageError: an argument is wrong; the text says what to write.
        StackError: the stack died or hung, or on every frame raised or returned what cannot be read.
        InfrastructureError: a bag is damaged, or the results cannot be written.
        IsolationError: a ROS domain of an arm contains other nodes.
        KeyboardInterrupt: it was interrupted. What was judged until then is in the results directory in all cases.
    """
    request = ReplayRequest(
        bags=texts_of(bag, "bag"),
        relations=texts_of(relations, "relations"),
        stack_settings=mapping_of(settings, "settings"),
        mode=mode,
        pace=pace,
        transport=transport,
        limit=None if limit is None else whole_number_of(limit, "limit"),
        seed=whole_number_of(seed, "seed"),
        faults=texts_of(faults, "faults"),
        topics=mapping_of(topics, "topics"),
        transforms=os.fspath(transforms),
        qos=os.fspath(qos),
        draws=whole_number_of(draws, "draws"),
        rate=rate,
        plugins=tuple(str(Path(directory).resolve()) for directory in texts_of(plugins, "plugins")),
        waivers=os.fspath(waivers),
        report=report,
    )
    run = make_run(request, stack, None if out is None else os.fspath(out))
    for line in left_out_lines(run.left_out, _NAMES_LEFT_OUT):
        _warn(line)
    counter = PairCounter(run.pairs_to_come, progress or (lambda done, total, violated: None), _warn)
    result = carry_out(run, counter)
    _refuse_early_end(result)
    return result


def load(directory: AnyPath) -> Result:
    """Return the results of a finished run, from its results directory.

    Raises:
        UsageError: there are none.
        InfrastructureError: they are damaged.
    """
    from mt_nodes.engine.finish import read_summary
    from mt_nodes.report.run_files import summary_of_a_killed_run

    place = Path(directory)
    if not (place / "result.jsonl").is_file():
        got = "no such directory" if not place.is_dir() else "no result.jsonl in it"
        raise UsageError(f"{place}: {got}, expected a results directory, such as mt_results/latest")
    killed = not (place / "summary.json").exists()
    return Result(place, summary_of_a_killed_run(place) if killed else read_summary(place))


def make_run(request: ReplayRequest, stack: AnyStack, out: str | None) -> Run:
    """Make a run and its results directory; those of a callable hold it, too.

    Args:
        request: what is replayed; without relations those that fit the stack, without a transport that which fits it.
        stack: used in place of the request's.

    Raises:
        UsageError: it cannot run, and nothing was written; or the directory holds another run.
    """
    if isinstance(stack, (str, os.PathLike)):
        return Run.create(_startable(dataclasses.replace(request, stack=os.fspath(stack))), out)
    if not callable(stack):
        expected = "the name of a shipped stack, the path of a stack file, or a callable: points (N, 4) in, boxes out"
        raise UsageError(f"stack: got {type(stack).__name__} {stack!r:.100}, expected {expected}")
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, STACK_FILE)
        file.write_text(yaml.safe_dump(stack_rows(stack, Path(place, FILE))), encoding="utf-8")
        checked = Run.make(_startable(dataclasses.replace(request, stack=str(file))), Path(out or "."))
        checked.refuse_impossible()
        run: Run = in_directory(out, partial(_with_own_stack, checked), partial(_save_with_callable, Path(place, FILE)))
        return run


def carry_out(run: Run, counter: PairCounter) -> Result:
    """Execute a replay whose directory exists, in this process or in a suite process, whatever ends it early.

    Raises:
        MtError: nothing was run, or the suite process ended without a summary.
    """

    def in_process(progress: Callable[[Any], None]) -> Summary:
        listen = score_notes(lambda line: None, counter.warn)
        return execute(run, lambda ending: in_process_arms(run, ending), listen, progress)

    for warning in transform_warnings(run):
        counter.warn(warning)
    suite = None if run.request.transport == "inprocess" else suite_process(run.out, os.environ)
    return Result(run.out, execute_in(run, in_process, suite, counter, f"`mt replay --resume {run.out}` goes on"))


def completed(request: ReplayRequest) -> ReplayRequest:
    """Return a request with relations and a transport that fit its stack, where it has none.

    Raises:
        UsageError: there is no such stack.
    """
    if request.relations and request.transport:
        return request
    stack = load_stack(request.stack, request.stack_settings)
    return dataclasses.replace(
        request,
        relations=request.relations or default_relations(stack),
        transport=request.transport or ("inprocess" if stack.callable else "ros"),
    )


def _startable(request: ReplayRequest) -> ReplayRequest:
    """Return a completed request; over topics it must be carried out where signals arrive, to end its processes."""
    whole = completed(request)
    if whole.transport == "ros" and threading.current_thread() is not threading.main_thread():
        raise UsageError('transport "ros": got a call from another thread, expected one from the main thread')
    return whole


def _with_own_stack(run: Run, out: Path) -> Run:
    """Return a run whose stack file and callable are in its results directory."""
    place = out.resolve()
    request = dataclasses.replace(run.request, stack=str(place / STACK_FILE))
    stack = dataclasses.replace(run.stack, params={**run.stack.params, "file": str(place / FILE)}, directory=str(place))
    return dataclasses.replace(run, request=request, stack=stack, out=out)


def _save_with_callable(file: Path, run: Run) -> None:
    shutil.copy(file, run.out / FILE)
    run.save()


def _refuse_early_end(result: Result) -> None:
    """Raise what ended a run early, and the failures of a stack that answered nothing."""
    summary, resume = result.summary, f"`mt replay --resume {result.directory}` goes on"
    if summary["interrupted"]:
        raise KeyboardInterrupt(f"interrupted; {resume}")
    kinds = {"isolation": IsolationError, "usage": UsageError}
    kinds["infrastructure"] = StackError if summary.get("deaths") else InfrastructureError
    for name, kind in kinds.items():
        if text := summary[name]:
            head, bar, log = str(text).partition(_LOG)
            raise kind(f"{head}; what was judged until then is in {result.directory}{bar}{log}")
    if (deaths := summary.get("deaths")) and not any(summary["outcomes"].get(name) for name in ("HOLDS", "VIOLATED")):
        raise StackError(f"{describe_deaths(deaths)}; nothing could be judged, the results are in {result.directory}")


def _warn(warning: str) -> None:
    warnings.warn(warning, stacklevel=3)
