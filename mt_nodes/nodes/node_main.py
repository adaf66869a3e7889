# SPDX-License-Identifier: Apache-2.0
"""How every node that runs alone starts and ends."""

from __future__ import annotations

import faulthandler
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.logging import LoggingSeverity
from rclpy.node import Node
from rclpy.signals import (
    SignalHandlerOptions,
    get_current_signal_handlers_options,
    uninstall_signal_handlers,
)

from mt_nodes.base.environment import use_enclave
from mt_nodes.base.errors import MtError
from mt_nodes.nodes.node_help import node_help, wants_help

#: What a node logs when it can be talked to; launch files wait for it.
READY = "ready"
#: Its number, for what writes where ``sys.stderr`` is none.
STDERR = 2


def run_node(
    make: Callable[[], Node],
    args: list[str] | None,
    executor: Callable[[], Any] = SingleThreadedExecutor,
    signals: SignalHandlerOptions = SignalHandlerOptions.ALL,
    name: str = "",
) -> None:
    """Initialise rclpy, make the node, spin it until shutdown or Ctrl-C; known errors are one line and an exit code.

    Without rclpy's ``signals`` the node itself has to listen for them, and to set ``finished``. With the ``name`` of an
    executable, ``--help`` prints what it is and ends.
    """
    if name and wants_help(args):
        sys.stdout.write(node_help(name))
        return
    if name:
        use_enclave(name)
    if not faulthandler.is_enabled():
        faulthandler.enable(STDERR)  # where a library crashes is told in the log
    rclpy.init(args=args, signal_handler_options=signals)
    try:
        node = make()
        log = node.get_logger()
        if log.is_enabled_for(LoggingSeverity.INFO):
            # As `log.info` does, which looks for the line that calls it in the sources of all modules: 50 ms.
            where = (run_node.__name__, __file__, run_node.__code__.co_firstlineno)
            rclpy_implementation.rclpy_logging_rcutils_log(LoggingSeverity.INFO, log.name, READY, *where)
        else:  # launch files wait for it
            print(READY, file=sys.stderr, flush=True)
        spin(node, executor())
    except MtError as error:
        print(f"mt_nodes: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    finally:
        rclpy.try_shutdown()


def spin(node: Node, executor: Any) -> None:
    """Spin a node until shutdown, Ctrl-C, or until it sets ``finished``; then destroy it.

    Raises MtError: the node's ``failure``, where it set one.
    """
    executor.add_node(node)
    try:
        while rclpy.ok() and not getattr(node, "finished", False):
            executor.spin_once(timeout_sec=0.5)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except rclpy_implementation.RCLError:
        if rclpy.ok():
            raise  # else a signal shut the context down while a callback was publishing
    finally:
        _end_signals()
        executor.shutdown()
        node.destroy_node()
    if failure := getattr(node, "failure", None):
        raise failure


def _end_signals() -> None:
    """Hear no more signals, and have rclpy be done with those that came.

    A node under ``ros2 launch`` gets Ctrl-C twice, from the terminal and from ``launch``: the second would cut off the
    destruction of the node and leave its shared memory behind. And rclpy (Jazzy to Rolling of 2026) has a thread that
    goes, when a signal comes, through a list which an executor frees when it is shut down: on a busy machine the
    process would crash (SIGSEGV).
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: None)
    if get_current_signal_handlers_options() != SignalHandlerOptions.NO:
        uninstall_signal_handlers()  # ends the thread


def quick_executor(context: Context | None = None) -> Any:
    """Return the executor that hands messages on without Python in between, where rclpy has it (Jazzy and later).

    Its ``spin`` has to be given a timeout each time: without one it may hang, and does not hear signals.
    """
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)
