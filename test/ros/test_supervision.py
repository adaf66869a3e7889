# SPDX-License-Identifier: Apache-2.0
"""``mt`` exits with 0 only where its command came to an end; otherwise it is to everybody one process, as it was."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from mt_nodes.base.process_tree import children_of
from mt_nodes.base.processes import is_stopped, wait_until

LIMIT_S = 150.0
NO_VERDICT = r"mt: the process ended with exit code {} before the command was done, so there is no verdict: "
#: A command that does what it is asked; ``ready`` tells the test, and ``interrupts`` counts what it is interrupted by.
COMMAND = """
import atexit, ctypes, os, signal, sys, threading, time
from mt_nodes.cli.supervision import supervised

C = ctypes.CDLL(None)

def ready():
    print("ready", flush=True)

def sleep():
    # Many short ones: Python handles a signal that comes just before a long one only after it.
    for _ in range(6000):
        time.sleep(0.1)

def fork_that_returns():
    if os.fork():
        os.wait()
        C._exit(0)
    return 0

def interrupts():
    count = 0
    try:
        ready()
        sleep()
    except KeyboardInterrupt:
        count += 1
    try:
        time.sleep(0.25)
    except KeyboardInterrupt:
        count += 1
    return 10 + count

def command():
{lines}

print("before", end="")  # in the buffer of both
sys.exit(supervised(command))
"""
SLEEPS = "ready(); sleep()"


def as_from_a_terminal() -> None:
    """Take signals that a shell or nohup has its processes ignore, as where these tests run in one."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


class Command:
    """A process that is supervised, in a group of its own."""

    def __init__(self, ending: ExitStack, *lines: str, **more: Any) -> None:
        code = COMMAND.format(lines="\n".join(f"    {line}" for line in lines))
        usual = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "preexec_fn": as_from_a_terminal}
        self.process = subprocess.Popen([sys.executable, "-c", code], **{**usual, **more}, text=True)
        ending.callback(self._end)

    def _end(self) -> None:
        self.process.kill()
        self.process.communicate()

    @property
    def worker(self) -> int:
        [worker] = children_of(self.process.pid)
        return worker

    def ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "beforeready\n"

    def over(self) -> tuple[int, str, str]:
        out, error = self.process.communicate(timeout=LIMIT_S)
        return self.process.returncode, out, error


@pytest.fixture
def command() -> Iterator[Callable[..., Command]]:
    with ExitStack() as ending:

        def start(*lines: str, **more: Any) -> Command:
            return Command(ending, *lines, start_new_session=True, **more)

        yield start


@pytest.mark.parametrize("code", [0, 1, 4, 130, 141])
def test_a_command_that_returns_is_believed(command: Callable[..., Command], code: int) -> None:
    assert command(f"return {code}").over() == (code, "before", "")


@pytest.mark.parametrize("code", [0, 1, 3])
@pytest.mark.parametrize(
    "how",
    [
        "C._exit({})",
        "C.exit({})",
        "os._exit({})",
        "threading.Thread(target=C._exit, args=({},)).run()",
        "os.execv('/bin/sh', ['sh', '-c', 'exit {}'])",
    ],
)
def test_who_ends_the_process_instead_gives_no_verdict(command: Callable[..., Command], how: str, code: int) -> None:
    ended, _, error = command(how.format(code), "return 0").over()
    assert ended == 4 and re.match(NO_VERDICT.format(code), error) and error.count("\n") == 1


def test_an_error_that_nobody_took_is_no_failed_relation(command: Callable[..., Command]) -> None:
    ended, _, error = command("raise BaseException('what nobody takes')").over()
    assert ended == 4 and "what nobody takes" in error and re.search(NO_VERDICT.format(1), error)


def test_a_copy_of_the_process_returns_for_nobody(command: Callable[..., Command]) -> None:
    ended, _, error = command("return fork_that_returns()").over()
    assert ended == 4 and re.match(NO_VERDICT.format(0), error)


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("raise SystemExit(2)",), 2),
        (("raise SystemExit(None)",), 0),
        (("atexit.register(os._exit, 0)", "return 1"), 1),
        (("atexit.register(os._exit, 120)", "return 0"), 120),
    ],
)
def test_what_comes_after_the_end_makes_nothing_better(
    command: Callable[..., Command], lines: tuple[str, ...], code: int
) -> None:
    ended, _, error = command(*lines).over()
    assert (ended, error) == (code, "")


@pytest.mark.parametrize(
    ("how", "number"),
    [
        ("ctypes.string_at(0)", signal.SIGSEGV),
        ("os.abort()", signal.SIGABRT),
        ("os.kill(os.getpid(), signal.SIGKILL)", signal.SIGKILL),
        ("signal.signal(signal.SIGPIPE, signal.SIG_DFL); signal.raise_signal(signal.SIGPIPE)", signal.SIGPIPE),
        ("raise KeyboardInterrupt", signal.SIGINT),
    ],
)
def test_a_signal_that_ends_the_work_ends_all(command: Callable[..., Command], how: str, number: int) -> None:
    ended, _, error = command(how).over()
    assert ended == -number and "verdict" not in error


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_to_one_process_reaches_the_other(command: Callable[..., Command], number: int) -> None:
    started = command("import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0))", SLEEPS)
    started.ready()
    worker = started.worker
    started.process.send_signal(number)
    assert started.over()[0] == -number and not is_there(worker)


def test_who_kills_the_one_has_killed_the_other(command: Callable[..., Command]) -> None:
    started = command(SLEEPS)
    started.ready()
    worker = started.worker
    started.process.kill()
    assert started.over()[0] == -signal.SIGKILL
    assert wait_until(lambda: not is_there(worker), LIMIT_S)


def test_a_child_whose_parent_ended_before_it_could_ask_ends_as_well() -> None:
    code = "from mt_nodes.cli.supervision import _end_with; _end_with(1 << 30); print('lives')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"")


def test_an_interrupt_of_the_group_comes_once(command: Callable[..., Command]) -> None:
    started = command("return interrupts()")
    started.ready()
    os.killpg(started.process.pid, signal.SIGINT)
    assert started.over()[0] == 11


def test_an_interrupt_that_comes_in_a_destructor_comes_again(command: Callable[..., Command]) -> None:
    destructor = ("class Ends:", "    def __del__(self):", "        os.kill(os.getpid(), signal.SIGINT)", "Ends()")
    ended, _, error = command(*destructor, "sleep()").over()
    assert ended == -signal.SIGINT and "Exception ignored" not in error


def test_a_command_that_ignores_interrupts_goes_on(command: Callable[..., Command]) -> None:
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    started = command("ready(); time.sleep(1); return 7", **ignoring)
    started.ready()
    started.process.send_signal(signal.SIGINT)
    assert started.over()[0] == 7


def test_where_ended_children_are_ignored_the_code_is_known_all_the_same(command: Callable[..., Command]) -> None:
    ignoring = {"preexec_fn": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)}
    assert command("return 1", **ignoring).over()[0] == 1


def test_who_is_asked_to_stop_stops_wholly_and_goes_on(command: Callable[..., Command]) -> None:
    # A group of this session: a stop does nothing to one whose session leader is no parent of it.
    with ExitStack() as ending:
        started = Command(ending, "ready(); time.sleep(1); return 7", preexec_fn=os.setpgrp)
        started.ready()
        both = (started.process.pid, started.worker)
        started.process.send_signal(signal.SIGTSTP)
        assert all(wait_until(lambda pid=pid: is_stopped(pid), LIMIT_S) for pid in both)
        started.process.send_signal(signal.SIGCONT)
        assert started.over()[0] == 7


@pytest.mark.parametrize(("key", "code"), [(b"\x03", 11), (b"\x1a", 0)])
def test_the_keys_of_a_terminal_reach_both_once(key: bytes, code: int) -> None:
    """Ctrl-C and Ctrl-Z; a shell would see it stopped, and let it go on."""
    pid, terminal = pty.fork()
    if not pid:  # a shell in small: its child is a job of its own in front
        as_from_a_terminal()
        os.execv(sys.executable, [sys.executable, "-c", SHELL, COMMAND.format(lines="    return interrupts()")])
    said = b""
    while b"ready" not in said:
        said += os.read(terminal, 1024)
    os.write(terminal, key)
    while (line := re.search(rb"(code|stopped) (\d+)", said)) is None:
        said += os.read(terminal, 1024)
    assert line[1] == (b"code" if code else b"stopped") and int(line[2]) == (code or 2), said
    os.waitpid(pid, 0)
    os.close(terminal)


#: Runs a program in front, and says how it ended, or how many of its processes stand still.
SHELL = """
import os, signal, sys, time
from mt_nodes.base.processes import is_stopped, wait_until
from mt_nodes.base.process_tree import children_of
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if not pid:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
_, status = os.waitpid(pid, os.WUNTRACED)
if os.WIFSTOPPED(status):
    wait_until(lambda: all(map(is_stopped, children_of(pid))), 150.0)
    print("stopped", sum(map(is_stopped, (pid, *children_of(pid)))), flush=True)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
else:
    print("code", os.WEXITSTATUS(status), flush=True)
"""


def test_where_no_process_can_be_started_that_is_said() -> None:
    code = (
        "import os, sys; from mt_nodes.cli import supervision\n"
        "def fork(): raise OSError(11, 'Resource temporarily unavailable')\n"
        "os.fork = fork; sys.exit(supervision.supervised(lambda: 0))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (4, "mt: cannot start a process: Resource temporarily unavailable\n")


def is_there(pid: int) -> bool:
    """Whether a process lives."""
    return bool(Path(f"/proc/{pid}/cmdline").read_bytes()) if Path(f"/proc/{pid}").exists() else False
