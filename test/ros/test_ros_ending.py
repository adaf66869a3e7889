# SPDX-License-Identifier: Apache-2.0
"""How nodes that run alone end: Ctrl-C and SIGTERM come at any moment, and Ctrl-C may come twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from mt_nodes.base.environment import ros_environment
from mt_nodes.base.errors import ExitCode

#: A node that does what ``{tick}`` says at its first tick, and what ``{destroy}`` says when it is destroyed.
NODE = """
import os, signal
import rclpy
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from std_msgs.msg import String
from mt_nodes.nodes.node_main import run_node

class Ending(Node):
    def __init__(self):
        super().__init__("ending")
        self.said = self.create_publisher(String, "said", 1)
        self.create_timer(0.01, self.tick)

    def tick(self):
        {tick}

    def destroy_node(self):
        {destroy}
        super().destroy_node()
        print("destroyed")

run_node(Ending, [])
"""
INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"


def ended(domain: int, code: str) -> subprocess.CompletedProcess[str]:
    env = ros_environment(os.environ, domain)
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=150, check=False
    )


@pytest.mark.parametrize(
    ("tick", "destroy"),
    [
        (INTERRUPT, "pass"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "pass"),
        ("rclpy.shutdown(); self.said.publish(String())", "pass"),
        (INTERRUPT, INTERRUPT),
    ],
    ids=["interrupted", "terminated", "shut down while it publishes", "interrupted twice"],
)
def test_a_node_that_is_told_to_end_does_so_quietly(domains: tuple[int, ...], tick: str, destroy: str) -> None:
    done = ended(domains[0], NODE.format(tick=tick, destroy=destroy))
    assert (done.returncode, done.stdout) == (0, "destroyed\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_that_nobody_caused_by_a_signal_is_told(domains: tuple[int, ...]) -> None:
    tick = 'raise rclpy_implementation.RCLError("broken")'
    done = ended(domains[0], NODE.format(tick=tick, destroy="pass"))
    assert done.returncode == 1
    assert "broken" in done.stderr


def test_a_crash_is_told_with_the_line_that_it_came_from(domains: tuple[int, ...]) -> None:
    done = ended(domains[0], NODE.format(tick="os.kill(os.getpid(), signal.SIGSEGV)", destroy="pass"))
    assert done.returncode == -signal.SIGSEGV
    assert "in tick" in done.stderr


UNTIL_SHUT_DOWN = """
import time

def until_shut_down():
    while rclpy.ok():
        time.sleep(0.001)
"""
#: Where a node may be told to end before it is ready: while it is made, and before it has an executor.
STARTING = {
    "made": ("self.create_timer(0.01, self.tick)", "{tell}; self.create_timer(0.01, self.tick)"),
    "executor": (
        "run_node(Ending, [])",
        "from rclpy.executors import SingleThreadedExecutor as Executor\n"
        "run_node(Ending, [], lambda: ({tell}, Executor())[1])",
    ),
}


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("moment", STARTING)
def test_a_node_that_is_told_to_end_while_it_starts_says_so_in_one_line(
    domains: tuple[int, ...], moment: str, number: str
) -> None:
    before, after = STARTING[moment]
    code = NODE.format(tick="pass", destroy="pass").replace(
        before, after.format(tell=f"os.kill(os.getpid(), signal.{number}), until_shut_down()")
    )
    done = ended(domains[0], UNTIL_SHUT_DOWN + code)
    assert done.returncode == ExitCode.INTERRUPTED, done.stderr
    assert done.stderr.endswith("mt_nodes: told to end before it was ready\n")
    assert "node_main.py" not in done.stderr


#: Interrupts itself when a signal has ended it and nothing of it is destroyed yet.
LATE = """
import os, signal
from mt_nodes.nodes import node_main

end_signals = node_main.end_signals

def ending():
    os.kill(os.getpid(), signal.SIGINT)
    end_signals()

node_main.end_signals = ending
"""


def test_an_interruption_that_python_hears_after_rclpy_cuts_nothing_off(domains: tuple[int, ...]) -> None:
    # rclpy's thread shuts the context down while the kernel's thread has not got to Python's handler yet.
    code = LATE + NODE.format(tick="rclpy.shutdown()", destroy="pass")
    done = ended(domains[0], code)
    assert (done.returncode, done.stdout) == (0, "destroyed\n"), done.stderr
    assert "Traceback" not in done.stderr


#: Tells, when the executor is shut down, which threads there still are of those that rclpy started to hear signals.
HEARING = """
import os
import rclpy
from rclpy.executors import SingleThreadedExecutor

threads = lambda: set(os.listdir("/proc/self/task"))
install, hearing = rclpy.install_signal_handlers, set()

def installing(options):
    before = threads()
    install(options)
    hearing.update(threads() - before)

class Executor(SingleThreadedExecutor):
    def shutdown(self, *args, **kwargs):
        print("threads", len(hearing), "of them left", len(hearing & threads()))
        return super().shutdown(*args, **kwargs)

rclpy.install_signal_handlers = installing
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
def test_nobody_hears_signals_any_more_when_an_executor_is_shut_down(domains: tuple[int, ...], number: str) -> None:
    # rclpy's thread reads, after a signal, a list that `shutdown` frees: SIGSEGV where it had been preempted meanwhile.
    node = NODE.replace("run_node(Ending, [])", "run_node(Ending, [], Executor)")
    code = HEARING + node.format(tick=f"os.kill(os.getpid(), signal.{number})", destroy="pass")
    done = ended(domains[0], code)
    assert (done.returncode, done.stdout) == (0, "threads 1 of them left 0\ndestroyed\n"), done.stderr


#: Spins as a process that asks something does, and gets a signal meanwhile; then tells which threads are left that
#: hear signals, when the executor is shut down and when nothing but the interpreter's end is to come.
ASKING = """
import atexit, os, signal, sys
import rclpy
from {module} import main
import {module} as asking

def tell_threads():
    print("threads", len(hearing), "of them left", len(hearing & threads()), file=sys.stderr)

def interrupted(node, *words):
    rclpy.spin_once(node, timeout_sec=0.01)
    os.kill(os.getpid(), signal.{number})
    while rclpy.ok():
        rclpy.spin_once(node, timeout_sec=0.1)

shutdown = SingleThreadedExecutor.shutdown
SingleThreadedExecutor.shutdown = lambda self, *args: (tell_threads(), shutdown(self, *args))[1]
atexit.register(tell_threads)
asking.{function} = interrupted
sys.argv = ["asking", *{words}]
main()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize(
    ("module", "function", "words"),
    [
        ("live_client", "command", ["status"]),
        ("doctor_probe", "probe", []),
        ("doctor_probe", "echo", ["--echo"]),
    ],
    ids=["mt live status", "mt doctor", "mt doctor's second process"],
)
def test_what_asks_hears_no_signals_any_more_when_its_executor_is_shut_down(
    domains: tuple[int, ...], module: str, function: str, words: list[str], number: str
) -> None:
    asking = ASKING.format(module=f"mt_nodes.nodes.{module}", function=function, words=words, number=number)
    done = ended(domains[0], HEARING + asking)
    told = {line for line in done.stderr.splitlines() if line.startswith("threads")}
    assert told == {"threads 1 of them left 0"}, done.stderr
    assert done.returncode in (0, 1, -signal.SIGINT), done.stderr
