# SPDX-License-Identifier: Apache-2.0
"""One replay from request to summary, whatever carries the messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from mt_nodes.arms import Arm, CallableArm
from mt_nodes.errors import InfrastructureError, IsolationError
from mt_nodes.lockstep import Lockstep, start
from mt_nodes.realtime import Realtime
from mt_nodes.recorded import PrepareAgain
from mt_nodes.results import Case, Recorder
from mt_nodes.runs import Run
from mt_nodes.verdict import Verdict

Progress = Callable[[Sequence[Verdict]], None]
Arms = tuple[Arm, Arm]


def execute(
    run: Run,
    open_arms: Callable[[ExitStack], Arms],
    listen: Callable[[str], None],
    progress: Progress,
    show: Callable[[Sequence[Verdict], Case], None] = lambda verdicts, case: None,
) -> dict[str, Any]:
    """Run it, and return the summary; whatever ends it early is in the summary and in its exit code.

    Args:
        run: what to do.
        open_arms: makes the arms (the same one twice unless the mode is ``twin``) and puts their end on the stack.
        listen: called with each journal and ledger line, as it was written.
        progress: called with each group of verdicts.
        show: called with the verdicts of a pair and what they were judged by.

    Raises:
        UsageError: found out only while running, such as a frame that no transform leads to.
    """
    trouble: dict[str, Any] = {}
    with Recorder(run, listen, show) as recorder:
        try:
            with ExitStack() as ending:
                source, followup = open_arms(ending)
                start(source, followup)
                _driver(run, recorder, progress).run(run.episodes, source, followup)
        except KeyboardInterrupt:
            trouble["interrupted"] = True
        except IsolationError as error:
            trouble["isolation"] = str(error)
        except InfrastructureError as error:
            trouble["infrastructure"] = str(error)
        return recorder.finish(**trouble)


def in_process_arms(run: Run) -> Arms:
    """Return arms that call the stack's callable here; a stateless one serves both."""
    source = CallableArm("source", run.stack, run.leading_topics)
    apart = run.request.mode == "twin" and not run.stack.stateless
    return source, CallableArm("followup", run.stack, run.leading_topics) if apart else source


def _driver(run: Run, recorder: Recorder, progress: Progress) -> Lockstep | Realtime:
    request, stack = run.request, run.stack
    traits: dict[str, Any] = {
        "stateless": stack.stateless,
        "publishes_when_empty": stack.publishes_when_empty,
        "draws": request.draws,
    }
    if request.pace == "realtime":
        return Realtime(run.suite, request.seed, recorder, rate=request.rate, progress=progress, **traits)
    if run.only is not None:
        traits |= {"only": run.only, "prepare": PrepareAgain(run.offers[0].relation, Path(request.recorded))}
    return Lockstep(run.suite, request.seed, recorder, mode=request.mode, progress=progress, **traits)
