# SPDX-License-Identifier: Apache-2.0
"""How nodes that run alone end: Ctrl-C and SIGTERM come at any moment, and Ctrl-C may come twice."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mt_nodes.base.environment import ros_environment

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


def ended(domain: int, tick: str, destroy: str = "pass") -> subprocess.CompletedProcess[str]:
    code = NODE.format(tick=tick, destroy=destroy)
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
    done = ended(domains[0], tick, destroy)
    assert (done.returncode, done.stdout) == (0, "destroyed\n"), done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_that_nobody_caused_by_a_signal_is_told(domains: tuple[int, ...]) -> None:
    done = ended(domains[0], 'raise rclpy_implementation.RCLError("broken")')
    assert done.returncode == 1
    assert "broken" in done.stderr
