# SPDX-License-Identifier: Apache-2.0
"""Too little address space ends every command with a reason and exit code 4; it neither crashes nor runs for ever."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mt_nodes.api.demo_drive import demo_drive

LIMIT_S = 120.0
#: A command under a limit that leaves it 40 MB: ``body`` is what it does.
LIMITED = """
import ctypes, os, resource, sys
from pathlib import Path
from mt_nodes.cli.supervision import supervised

buffer, C = ctypes.create_string_buffer(1 << 20), ctypes.CDLL(None)
limit = 4096 * int(Path("/proc/self/statm").read_text().split()[0]) + {spare}
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

def command():
    {body}
    return 0

sys.exit(supervised(command))
"""
#: Five seconds of processor time in the kernel without a page fault, as a library that repeats a refused allocation.
SPIN = "while sum(os.times()[:2]) < 5.0: C.getrandom(buffer, len(buffer), 0)"
SPARE = 40_000_000


def ended(body: str, spare: int = SPARE) -> tuple[int, str]:
    """Run a command under a limit; return exit code and standard error."""
    code = LIMITED.format(body=body, spare=spare)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return done.returncode, done.stderr


def test_a_library_that_repeats_a_refused_allocation_is_ended_with_a_reason() -> None:
    """Without the watch it would end with 0 after five seconds; OpenBLAS would never end."""
    code, error = ended(SPIN)
    assert code == 4
    assert error.startswith("mt: out of memory: a library repeats an allocation that is refused, at a limit of ")
    assert error.count("\n") == 1


def test_the_same_work_is_left_alone_where_memory_is_left() -> None:
    """The limit is none that the command is near to."""
    assert ended(SPIN.replace("5.0", "3.0"), 10**9) == (0, "")


@pytest.mark.parametrize("crash", ["ctypes.string_at(0)", "os.abort()"])
def test_a_crash_under_a_limit_names_the_limit(crash: str) -> None:
    """SIGSEGV and SIGABRT are how libraries in C end that get no memory."""
    code, error = ended(crash)
    assert code == 4
    assert "MB of address space, which is probably too little; allow more (`ulimit -v`)" in error


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated drive."""
    path: Path = tmp_path_factory.mktemp("drive") / "drive"
    demo_drive(path, seed=0, frames=2)
    return path


@pytest.mark.parametrize(
    ("megabytes", "threads"),
    [(150, ""), (150, "1"), (200, ""), (250, ""), (540, ""), pytest.param(400, "", marks=pytest.mark.long)],
)
def test_a_replay_with_too_little_address_space_ends_with_a_reason(
    megabytes: int, threads: str, drive: Path, tmp_path: Path
) -> None:
    """On two cores 150 and 200 MB end NumPy's OpenBLAS, with 250 no thread starts, with more no other library loads.

    With one thread of OpenBLAS, 150 MB suffice until the bag is opened.
    """
    env = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    words = ["replay", str(drive), "--transport", "inprocess", "--out", str(tmp_path / "out")]
    command = ["prlimit", f"--as={megabytes}000000", sys.executable, "-m", "mt_nodes.cli.main", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=env)
    assert done.returncode == 4, done.stderr
    assert "out of memory: " in done.stderr.splitlines()[-1], done.stderr
    assert "Traceback" not in done.stderr
