# SPDX-License-Identifier: Apache-2.0
"""The bridge outside of a box: has the endpoints of the stack that is inside, as soon as that has them itself."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from rclpy.node import Node

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.errors import InfrastructureError, IsolationError, MtError, UsageError
from mt_nodes.base.processes import Flag, flag_of_signals, how_it_ended
from mt_nodes.nodes import qos
from mt_nodes.nodes.box_inside import profile_of
from mt_nodes.nodes.message_classes import message_class
from mt_nodes.nodes.node_main import quick_executor
from mt_nodes.nodes.raw_subscription import subscribe_raw
from mt_nodes.nodes.spinning_context import lone_node, plain_node
from mt_nodes.runs.vehicle.box_report import boxed as in_box
from mt_nodes.runs.vehicle.box_report import read_report
from mt_nodes.runs.vehicle.boxed_stack import NODE, BoxedStack
from mt_nodes.runs.vehicle.pipe import Pipe

REPORT = "box_report.json"


class Outside:
    """Endpoints in the domain of the arm."""

    def __init__(self, node: Node, boxed: BoxedStack, pipe: Pipe) -> None:
        self._outputs = [node.create_publisher(message_class(r.type), r.topic, qos.ANSWERS) for r in boxed.outputs]
        for number, row in enumerate(boxed.inputs):
            subscribe_raw(node, row.type, row.topic, self._passing(pipe, number), profile_of(row))

    def say(self, number: int, data: bytes) -> None:
        """Publish what came out."""
        self._outputs[number].publish(data)

    @staticmethod
    def _passing(pipe: Pipe, number: int) -> Callable[[bytes], None]:
        return lambda data: pipe.message(number, data)


def main(args: list[str] | None = None) -> None:
    """Bridge until the box ends or a signal comes."""
    parser = argparse.ArgumentParser(prog="box_outside", description="Started in place of a stack.")
    parser.add_argument("--spec", type=Path, required=True, help="what is inside, as JSON")
    given = parser.parse_args(args)
    ended = flag_of_signals()
    try:
        _carry_out(BoxedStack.load(given.spec), given.spec, ended)
    except MtError as error:
        print(f"box_outside: {error}", file=sys.stderr, flush=True)
        sys.exit(error.exit_code)


def _carry_out(boxed: BoxedStack, spec: Path, ended: Flag) -> None:
    with lone_node(NODE, plain_node, quick_executor) as (node, executor):
        ours, theirs = socket.socketpair()
        pipe, report = Pipe(ours), spec.with_name(f"{spec.stem}_{REPORT}")
        inner = (sys.executable, "-m", "mt_nodes.nodes.box_inside", "--spec", str(spec), "--pipe", str(theirs.fileno()))
        argv = in_box(boxed.box, inner, report, (theirs.fileno(),))
        box = subprocess.Popen(argv, env=ros_environment(os.environ, boxed.domain), pass_fds=(theirs.fileno(),))
        theirs.close()
        wrong: list[MtError] = []
        threading.Thread(target=_hear, args=(pipe, node, boxed, ended, wrong), name="pipe", daemon=True).start()
        try:
            while not ended.is_set():
                executor.spin_once(timeout_sec=0.2)
        finally:
            box.send_signal(signal.SIGINT)
            pipe.close()
            box.wait()
    _leave_as(box.returncode, report)
    if wrong:
        raise wrong[0]


def _hear(pipe: Pipe, node: Node, boxed: BoxedStack, ended: Flag, wrong: list[MtError]) -> None:
    """Take in what comes out until it ends, or is what may not come; nothing that it is may keep this from ending."""
    outside: Outside | None = None
    try:
        for got in pipe.received(len(boxed.outputs)):
            if isinstance(got, dict):
                outside = outside or Outside(node, boxed, pipe)
            elif outside is not None:
                outside.say(*got)
    except MtError as error:
        wrong.append(error)
    finally:
        ended.set()


def _leave_as(code: int, report: Path) -> None:
    """Pass on how the box ended; what is wrong was said inside, into the same log."""
    known = {int(error.exit_code): error for error in (IsolationError, UsageError, InfrastructureError)}
    if code in known:
        raise known[code]("what is in the box has ended; its reason is above")
    if code not in (0, -signal.SIGINT, -signal.SIGTERM):
        read_report(report)
        raise InfrastructureError(f"the box {how_it_ended(code)}")


if __name__ == "__main__":
    main()
