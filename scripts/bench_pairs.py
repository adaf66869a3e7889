# SPDX-License-Identifier: Apache-2.0
"""Pairs a second of a replay, and where the time goes: the very run of ``mt replay``, with a stopwatch in it."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mt_nodes.base.environment import keep_freed_memory, ros_environment
from mt_nodes.base.jsonl import read_result
from mt_nodes.data.bags import bundles
from mt_nodes.data.cdr import wire
from mt_nodes.engine import journal, judging, ledger, lockstep, recorder
from mt_nodes.engine.plan import ReplayRequest
from mt_nodes.relations import pipeline
from mt_nodes.runs.replay import execute

TRANSPORTS = ("inprocess", "ros")
STACKS = ("reference_detector", "reference_whole_cloud")
#: What a run spends its time on before the first bundle and after the last, in order; the rest are stages of the play.
PHASES = ("import", "load the run", "join domains", "start stacks", "play", "stop stacks", "summary, report")
_BEGAN, _CLOCK = "MT_BENCH_BEGAN_NS", time.CLOCK_MONOTONIC


class Stopwatch:
    """Seconds by stage, each without the stages within it; those of other threads by themselves."""

    def __init__(self) -> None:
        self.main: Counter[str] = Counter()
        self.beside: Counter[str] = Counter()
        self._inner_s = [0.0]
        self._thread = threading.get_ident()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a block."""
        own, began = threading.get_ident() == self._thread, time.perf_counter()
        if own:
            self._inner_s.append(0.0)
        try:
            yield
        finally:
            took = time.perf_counter() - began
            if own:
                self.main[name] += took - self._inner_s.pop()
                self._inner_s[-1] += took
            else:
                self.beside[name] += took

    def watch(self, owner: Any, function: str, name: str) -> None:
        """Time every call of a function or method."""
        original = getattr(owner, function)

        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.stage(name):
                return original(*args, **kwargs)

        setattr(owner, function, timed)

    def watch_iterator(self, owner: Any, function: str, name: str) -> None:
        """Time every step of what a method of an owner's instances gives."""
        original: Callable[[Any], Iterator[Any]] = getattr(owner, function)

        def timed(instance: Any) -> Iterator[Any]:
            steps, last = original(instance), object()
            while True:
                with self.stage(name):
                    found = next(steps, last)
                if found is last:
                    return
                yield found

        setattr(owner, function, timed)


def measure(bag: Path, stack: str, transport: str, limit: int | None = None) -> dict[str, Any]:
    """Replay in a process of its own; return pairs, pairs a second, seconds by phase, milliseconds a pair by stage."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "run"
        request = ReplayRequest((str(bag),), stack=stack, transport=transport, limit=limit)
        began_s = time.monotonic()
        execute.Run.create(request, str(out))
        created_s = time.monotonic() - began_s
        env = {**ros_environment(os.environ), _BEGAN: str(time.clock_gettime_ns(_CLOCK))}
        env = env if transport == "ros" else {**os.environ, _BEGAN: env[_BEGAN]}
        with (Path(place) / "log").open("w") as log:
            done = subprocess.run([sys.executable, __file__, str(out)], env=env, stdout=log, stderr=log, check=False)
        if done.returncode:
            sys.exit(f"bench: replay ended with {done.returncode}:\n{(Path(place) / 'log').read_text()}")
        found = json.loads((out / "bench.json").read_text())
        pairs = read_result(out / "summary.json")["offered"]
    return _figures(found, pairs) | {"stack": stack, "transport": transport, "check_request_s": round(created_s, 3)}


def _figures(found: dict[str, Any], pairs: int) -> dict[str, Any]:
    main: dict[str, float] = found["main"]
    stages = {name: seconds for name, seconds in main.items() if name not in PHASES}
    in_play = sum(stages.values()) + main["play"]
    per_pair = {name: round(1e3 * seconds / pairs, 3) for name, seconds in sorted(stages.items(), key=lambda s: -s[1])}
    return {
        "pairs": pairs,
        "followups": found["followups"],
        "pairs_per_s": round(pairs / in_play, 1),
        "followups_per_s": round(found["followups"] / in_play, 1),
        "phases_s": {name: round(in_play if name == "play" else main.get(name, 0.0), 3) for name in PHASES},
        "ms_per_pair": {**per_pair, "rest": round(1e3 * main["play"] / pairs, 3)},
        "beside_ms_per_pair": {name: round(1e3 * seconds / pairs, 3) for name, seconds in found["beside"].items()},
    }


def carry_out(out: Path) -> None:
    """Be the process that replays; write ``bench.json`` beside the results."""
    watch, transport = Stopwatch(), read_result(out / "run.json")["request"]["transport"]
    followups = Counter[str]()
    if transport == "ros":
        from mt_nodes.nodes import suite

        _watch_topics(watch)
        run: Callable[[], Any] = functools.partial(suite.main, ["--run", str(out)])
    else:
        keep_freed_memory()
        run = functools.partial(_in_process, out)
    watch.main["import"] = (time.clock_gettime_ns(_CLOCK) - int(os.environ[_BEGAN])) / 1e9
    _watch_core(watch)
    kept = recorder.Recorder.followup
    recorder.Recorder.followup = lambda *args: (followups.update(all=1), kept(*args))[1]  # type: ignore[method-assign]
    with suppress(SystemExit):
        run()
    told = {"main": watch.main, "beside": watch.beside, "followups": followups["all"]}
    (out / "bench.json").write_text(json.dumps(told))


def _in_process(out: Path) -> None:
    run = execute.Run.load(out)
    execute.execute(run, lambda ending: execute.in_process_arms(run, ending), lambda line: None, lambda verdicts: None)


def _watch_core(watch: Stopwatch) -> None:
    from mt_nodes.engine.callable_arm import CallableArm

    watch.watch_iterator(bundles.BagSource, "readings", "read")
    for owner, function, name in (
        (execute.Run, "load", "load the run"),
        (execute, "in_process_arms", "start stacks"),
        (execute, "launch", "start stacks"),
        (execute, "await_ready", "start stacks"),
        (lockstep.Lockstep, "run", "play"),
        (pipeline.MutationPipeline, "derive", "derive"),
        (pipeline.MutationPipeline, "_proof", "guarantee"),
        (ledger.Ledger, "followup", "ledger"),
        (ledger, "sha256_of_followup", "hash"),
        (wire, "encode_message", "encode"),
        (CallableArm, "wait", "stack"),
        (judging.Engine, "judge", "judge"),
        (journal.Journal, "verdict", "journal"),
        (recorder.Recorder, "_keep_evidence", "evidence"),
        (recorder.Recorder, "_keep_view", "picture"),
        (recorder.Recorder, "finish", "summary, report"),
    ):
        watch.watch(owner, function, name)


def _watch_topics(watch: Stopwatch) -> None:
    from mt_nodes.nodes import suite
    from mt_nodes.nodes.bundle_publisher import BundlePublisher
    from mt_nodes.nodes.control import ControlNode
    from mt_nodes.nodes.live_view import LiveView
    from mt_nodes.nodes.output_listener import OutputListener
    from mt_nodes.nodes.ros_arm import RosArm
    from mt_nodes.nodes.spinning_context import SpinningContext

    for owner, function, name in (
        (suite, "open_arms", "join domains"),
        (SpinningContext, "__init__", "join domains"),
        (RosArm, "stop", "stop stacks"),
        (RosArm, "wait", "stack"),
        (BundlePublisher, "publish", "publish"),
        (OutputListener, "_take", "decode"),
        (ControlNode, "line", "/mt/* topics"),
        (ControlNode, "status", "/mt/* topics"),
        (LiveView, "show", "live view"),
    ):
        watch.watch(owner, function, name)


if __name__ == "__main__":
    carry_out(Path(sys.argv[1]))
