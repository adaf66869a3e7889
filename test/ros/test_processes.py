# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alive import alive

from mt_nodes.base import processes
from mt_nodes.base.errors import InfrastructureError, UsageError
from mt_nodes.base.processes import Child, Process, filled, is_stopped, uninterrupted, wait_until

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 100.0


@pytest.fixture
def children(tmp_path: Path) -> Iterator[list[Child]]:
    started: list[Child] = []
    yield started
    for child in started:
        child.stop(0.2)


def child_of(children: list[Child], tmp_path: Path, code: str, *args: str) -> Child:
    argv = (sys.executable, "-u", "-c", code, *args)
    children.append(Child(Process("the stack", argv, dict(os.environ), tmp_path / "logs" / "stack.log")))
    return children[-1]


def wrote(child: Child, lines: int) -> list[str]:
    """Wait until the log has so many lines, and return them."""
    log = child.process.log
    assert wait_until(lambda: log.exists() and log.read_text().count("\n") >= lines, LIMIT_S), log.read_text()
    return log.read_text().splitlines()


SLEEPER = "import time, os; print(os.getpid()); time.sleep(600)"
STUBBORN = "import signal, time, os; [signal.signal(s, lambda *a: print(a[0])) for s in (2, 15)]; print(os.getpid())\n"
FOREVER = "while True: time.sleep(1)"


def test_a_living_child_is_fine_and_ends_on_the_first_signal(children: list[Child], tmp_path: Path) -> None:
    child = child_of(children, tmp_path, SLEEPER)
    [pid] = map(int, wrote(child, 1))
    assert os.getpgid(pid) == child.pid, "one group, which a signal reaches as a whole"
    child.check()
    assert child.code is None
    child.stop(LIMIT_S)
    assert child.code is not None and not alive(child.pid) and not alive(pid)


@pytest.mark.parametrize("handling", [signal.SIG_IGN, signal.default_int_handler])
def test_a_stack_hears_an_interruption_though_a_shell_has_us_ignore_it(
    children: list[Child], tmp_path: Path, handling: Any
) -> None:
    """As with ``mt replay … &`` in a script; what is ignored is inherited."""
    before = signal.signal(signal.SIGINT, handling)
    try:
        child = child_of(children, tmp_path, SLEEPER)
        wrote(child, 1)
    finally:
        signal.signal(signal.SIGINT, before)
    child.stop(LIMIT_S)
    assert child.code == -signal.SIGINT


def test_a_child_that_ended_tells_its_code_and_its_last_lines(children: list[Child], tmp_path: Path) -> None:
    child = child_of(children, tmp_path, "for i in range(100): print('line', i)\nraise SystemExit(3)")
    assert wait_until(lambda: child.code is not None, LIMIT_S)
    with pytest.raises(InfrastructureError) as caught:
        child.check()
    text = str(caught.value)
    assert text.startswith("the stack ended with exit code 3; its log ") and str(child.process.log) in text
    assert "| line 99" in text and "| line 84" not in text


def test_a_child_that_was_killed_names_the_signal(children: list[Child], tmp_path: Path) -> None:
    for number, name in ((signal.SIGKILL, "SIGKILL"), (signal.SIGRTMIN + 3, f"signal {signal.SIGRTMIN + 3}")):
        child = child_of(children, tmp_path, SLEEPER)
        os.kill(child.pid, number)
        assert wait_until(lambda c=child: c.code is not None, LIMIT_S)  # type: ignore[misc]
        with pytest.raises(InfrastructureError, match=f"was ended by {name}"):
            child.check()


def test_the_tail_is_of_this_child_and_short_however_much_it_wrote(children: list[Child], tmp_path: Path) -> None:
    log = tmp_path / "logs" / "stack.log"
    log.parent.mkdir()
    log.write_text("of another run\n")
    quiet = child_of(children, tmp_path, "pass")
    assert wait_until(lambda: quiet.code is not None, LIMIT_S)
    assert quiet.tail() == f"it wrote nothing to {log}"
    chatty = child_of(children, tmp_path, "import sys; sys.stdout.write('x' * 10**6 + '\\n' + 'y' * 10 + '\\n\\xff')")
    assert wait_until(lambda: chatty.code is not None, LIMIT_S)
    assert len(chatty.tail()) < 2 * processes.TAIL_BYTES and "| yyyyyyyyyy" in chatty.tail()


@pytest.mark.parametrize("argv", [("/no/such/program",), (str(ROOT / "README.md"),)])
def test_a_program_that_cannot_be_started_is_a_mistake_of_the_stack_file(argv: tuple[str], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the stack: cannot start '/.*(no such program|not executable); name one"):
        Child(Process("the stack", argv, {}, tmp_path / "log"))


def test_a_child_that_ignores_signals_is_killed(children: list[Child], tmp_path: Path) -> None:
    child = child_of(children, tmp_path, STUBBORN + FOREVER)
    wrote(child, 1)
    child.stop(1.0)  # so long each signal has to be heard
    assert child.code == -signal.SIGKILL
    assert wrote(child, 3)[1:] == ["2", "15"], "asked twice, then killed"


def test_the_whole_group_ends_with_its_leader(children: list[Child], tmp_path: Path) -> None:
    grandchild = STUBBORN + FOREVER
    leader = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-u', '-c', {grandchild!r}])\n" + FOREVER
    child = child_of(children, tmp_path, "import time\n" + leader)
    pid = int(wrote(child, 1)[0])
    assert pid != child.pid and alive(pid)
    child.stop(LIMIT_S)
    assert not alive(child.pid)
    assert wait_until(lambda: not alive(pid), LIMIT_S)


#: Starts a grandchild that leaves group, session and parent behind, as a daemon does, and says who it is.
DAEMON = f"""
import subprocess, sys
inner = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-u', '-c', sys.argv[1]]).pid, flush=True)"
subprocess.run([sys.executable, "-c", inner, {STUBBORN + FOREVER!r}], start_new_session=True)
"""


@pytest.mark.parametrize("then", ["", "import time\n" + FOREVER])
def test_what_a_stack_left_behind_in_another_session_ends_with_it(
    children: list[Child], tmp_path: Path, then: str
) -> None:
    child = child_of(children, tmp_path, DAEMON + then)
    pid = int(wrote(child, 1)[0])
    if then:
        assert os.getsid(pid) != os.getsid(child.pid)
        wrote(child, 2)  # from here on it ignores signals
        child.stop(LIMIT_S)
    assert wait_until(lambda: child.code is not None, LIMIT_S)
    assert not alive(pid), "gone before the keeper is"
    assert child.code == (-signal.SIGINT if then else 0)


def test_a_program_that_proves_to_be_none_only_when_it_starts(children: list[Child], tmp_path: Path) -> None:
    script = tmp_path / "stack.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    children.append(Child(Process("the stack", (str(script),), dict(os.environ), tmp_path / "log")))
    assert wait_until(lambda: children[-1].code is not None, LIMIT_S)
    with pytest.raises(InfrastructureError, match=r"ended with exit code 127.*\n.*cannot start .*No such file"):
        children[-1].check()


def test_stopping_what_has_ended_is_no_error(children: list[Child], tmp_path: Path) -> None:
    child = child_of(children, tmp_path, "pass")
    assert wait_until(lambda: child.code is not None, LIMIT_S)
    child.stop(LIMIT_S)
    child.stop(LIMIT_S)


def test_no_child_outlives_its_parent_even_when_that_is_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from mt_nodes.base.processes import Child, Process\n"
        f"argv = (sys.executable, '-u', '-c', {DAEMON + SLEEPER!r})\n"
        "child = Child(Process('x', argv, dict(os.environ), Path(sys.argv[1])))\n"
        "print(child.pid, flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "log")], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    keeper, log = int(parent.stdout.readline()), tmp_path / "log"
    assert wait_until(lambda: log.exists() and log.read_text().count("\n") == 3, LIMIT_S), log.read_text()
    pids = [keeper, *map(int, log.read_text().split())]
    assert all(map(alive, pids)), "keeper, daemon, the daemon's word, the stack"
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not any(map(alive, pids)), LIMIT_S)


def test_waiting_asks_until_yes_or_until_time_is_up() -> None:
    event = threading.Event()
    asked = 0

    def ready() -> bool:
        nonlocal asked
        asked += 1
        return asked == 4

    assert wait_until(ready, LIMIT_S, every_s=0.0)
    assert asked == 4
    assert not wait_until(event.is_set, 0.0)


REMAP = ["-r", "/a:=/mt/source/a", "-r", "/b:=/mt/source/b"]
VALUES = {"arm": ["source"], "domain": ["41"], "remap": REMAP}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["run", "{arm}", "--domain={domain}"], ("run", "source", "--domain=41")),
        (["run", "--ros-args", "{remap}"], ("run", "--ros-args", *REMAP)),
        (["bash", "-c", "run --ros-args {remap}"], ("bash", "-c", f"run --ros-args {' '.join(REMAP)}")),
        (["{arm}{domain}", "{}", "{other}", "{", "a}"], ("source41", "{}", "{other}", "{", "a}")),
    ],
)
def test_placeholders_of_a_command(command: list[str], expected: tuple[str, ...]) -> None:
    assert filled(command, VALUES) == expected


def test_without_remap_rules_the_placeholder_vanishes() -> None:
    assert filled(["run", "{remap}", "x"], {"remap": []}) == ("run", "x")


def test_an_interruption_waits_for_the_end_of_the_block() -> None:
    # Whoever runs the tests may have it ignored.
    found = signal.signal(signal.SIGINT, signal.default_int_handler)
    before, steps = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt):
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            steps.append("the rest of the block")
        steps.append("after it")
    assert steps == ["the rest of the block"]
    assert signal.getsignal(signal.SIGINT) is before
    signal.signal(signal.SIGINT, found)


def test_interruptions_are_put_off_nowhere_but_in_the_main_thread() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def elsewhere() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert seen == [before]


def test_a_stopped_stack_is_known_and_hears_the_first_signal(children: list[Child], tmp_path: Path) -> None:
    child = child_of(children, tmp_path, SLEEPER)
    [pid] = map(int, wrote(child, 1))
    assert child.stopped() == [] and not is_stopped(pid)
    os.kill(pid, signal.SIGSTOP)
    assert wait_until(lambda: child.stopped() == [pid], LIMIT_S)
    child.stop(LIMIT_S)
    assert child.code == -signal.SIGINT and not alive(pid)


@pytest.mark.parametrize("code", [SLEEPER, STUBBORN + FOREVER])
def test_a_stopped_keeper_holds_nobody_up(children: list[Child], tmp_path: Path, code: str) -> None:
    child = child_of(children, tmp_path, code)
    pid = int(wrote(child, 1)[0])
    os.kill(child.pid, signal.SIGSTOP)
    assert wait_until(lambda: is_stopped(child.pid), LIMIT_S)
    child.stop(0.3)
    assert not alive(pid) and not alive(child.pid)


def test_who_lost_his_keeper_is_ended_with_the_suite(tmp_path: Path) -> None:
    """In a process of its own: this one adopts nobody."""
    pid = tmp_path / "pid"
    stack = f"{STUBBORN}open({str(pid)!r}, 'w').write(str(os.getpid()) + chr(10))\n{FOREVER}"
    code = f"""
import os, signal, sys
from pathlib import Path
from mt_nodes.base.processes import Child, Process, nobody_left_behind, wait_until
pid = Path({str(pid)!r})
with nobody_left_behind():
    argv, log = (sys.executable, "-c", {stack!r}), Path({str(tmp_path / "log")!r})
    child = Child(Process("stack", argv, dict(os.environ), log))
    assert wait_until(lambda: pid.exists() and pid.read_text().endswith(chr(10)), {LIMIT_S})
    os.kill(child.pid, signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=2 * LIMIT_S)
    assert not alive(int(pid.read_text()))
