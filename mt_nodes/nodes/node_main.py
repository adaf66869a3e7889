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
from rclpy.signals import SignalHandlerOptions, get_current_signal_handlers_options, uninstall_signal_handlers

from mt_nodes.base.environment import use_enclave
from mt_nodes.base.errors import ExitCode, MtError
from mt_nodes.nodes.node_help import node_help, wants_help

#: What a node logs when it can be talked to; launch files wait for it.
READY = "ready"
#: Its number, for what writes where ``sys.stderr`` is none.
STDERR = 2
#: With these rclpy hears SIGINT, and has Python hear it, too.
_INTERRUPTING = (SignalHandlerOptions.ALL, SignalHandlerOptions.SIGINT)


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
    interrupt = _FirstInterrupt()
    if signals in _INTERRUPTING and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, interrupt)  # before rclpy's handler, which calls it
    rclpy.init(args=args, signal_handler_options=signals)
    try:
        _run(make, executor, interrupt)
    except MtError as error:
        print(f"mt_nodes: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    finally:
        rclpy.try_shutdown()


class _FirstInterrupt:
    """Handles SIGINT as Python does, but once, and not at all when it is ``over``.

    A node under ``ros2 launch`` gets Ctrl-C twice, from the terminal and from ``launch``: the second would cut off the
    destruction of the node and leave its shared memory behind. And the first may come while a node ends that rclpy's
    own handler has told before.
    """

    def __init__(self) -> None:
        self.over = False

    def __call__(self, number: int, frame: object) -> None:
        if not self.over:
            self.over = True
            raise KeyboardInterrupt


def _run(make: Callable[[], Node], make_executor: Callable[[], Any], interrupt: _FirstInterrupt) -> None:
    """Make the node, spin it until shutdown, Ctrl-C, or until it sets ``finished``; then destroy it.

    Raises MtError: the node's ``failure``, where it set one. SystemExit: it was told to end before it was ready.
    """
    node: Any = None
    executor: Any = None
    ready = False
    try:
        try:
            node = make()
            executor = make_executor()
            executor.add_node(node)
            _tell_that_it_is_ready(node)
            ready = True
            while rclpy.ok() and not getattr(node, "finished", False):
                executor.spin_once(timeout_sec=0.5)
        except ExternalShutdownException:
            pass
        except MtError:
            raise
        except Exception as error:
            # A signal shuts the context down: in the middle of a start anything may fail, later what publishes.
            if rclpy.ok() or (ready and not isinstance(error, rclpy_implementation.RCLError)):
                raise
        interrupt.over = True
    except KeyboardInterrupt:
        pass
    finally:
        end_signals()
        if executor is not None:
            executor.shutdown()
        if node is not None:
            node.destroy_node()
    if failure := getattr(node, "failure", None):
        raise failure
    if not ready:
        print("mt_nodes: told to end before it was ready", file=sys.stderr)
        sys.exit(ExitCode.INTERRUPTED)


def _tell_that_it_is_ready(node: Node) -> None:
    log = node.get_logger()
    if log.is_enabled_for(LoggingSeverity.INFO):
        # As `log.info` does, which looks for the line that calls it in the sources of all modules: 50 ms.
        where = (run_node.__name__, __file__, run_node.__code__.co_firstlineno)
        rclpy_implementation.rclpy_logging_rcutils_log(LoggingSeverity.INFO, log.name, READY, *where)
    else:  # launch files wait for it
        print(READY, file=sys.stderr, flush=True)


def end_signals() -> None:
    """Hear no more signals, and have rclpy be done with those that came.

    rclpy (Jazzy to Rolling of 2026) has a thread that goes, when a signal comes, through a list which an executor frees
    when it is shut down: on a busy machine the process would crash (SIGSEGV).
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
