# SPDX-License-Identifier: Apache-2.0
"""What fuzzing found before, held to the same invariant again; and an invariant that can be broken."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(__file__).parents[1] / "corpus"
sys.path.insert(0, str(ROOT))

from fuzz import invariant  # noqa: E402
from fuzz.cases import Case, Target, applied  # noqa: E402
from mt_nodes.base.errors import ExitCode, InfrastructureError, IsolationError, MtError, UsageError  # noqa: E402

TARGETS: dict[str, Target] = {
    name: importlib.import_module(f"fuzz.{name}").TARGET
    for name in ("clouds", "images", "messages", "bags", "files", "inputs", "results")
}
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file())


def test_every_target_has_found_something_and_every_case_has_a_target() -> None:
    assert {path.relative_to(CORPUS).parts[0] for path in FILES} == set(TARGETS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CORPUS)))
def test_what_was_found_stays_mended(path: Path) -> None:
    name, kind, _ = path.relative_to(CORPUS).parts
    target = TARGETS[name]
    if kind not in target.kinds:
        pytest.skip(f"{kind} cannot be read here: no ROS")
    with invariant.little_memory():
        invariant.hold(target, Case(kind, path.read_bytes()))


@pytest.mark.parametrize(("name", "kind"), [(t.name, kind) for t in TARGETS.values() for kind in t.kinds])
def test_what_is_sound_comes_to_a_result(name: str, kind: str) -> None:
    """So that the edits begin with something that is read to its end."""
    target = TARGETS[name]
    end = invariant.hold(target, Case(kind, target.sound(kind)))
    assert end.startswith(("read", "replayed, exit 3")), "three bundles are too few for more"


@pytest.mark.parametrize("command", importlib.import_module("fuzz.results").COMMANDS)
def test_every_command_accepts_the_directory_that_is_damaged(command: str, tmp_path: Path) -> None:
    results = importlib.import_module("fuzz.results")
    end = results.do(Case("run", results.sound("run")), tmp_path, command)
    assert end == f"read: {command} {1 if command == 'resume' else 0}"


def forever(case: Case, place: Path) -> str:
    while True:
        pass


def swallowing(case: Case, place: Path) -> str:
    while True:
        try:
            forever(case, place)
        except Exception:  # noqa: BLE001 - as code does that reads damaged data
            continue


def raising(error: Exception) -> Callable[[Case, Path], str]:
    def check(case: Case, place: Path) -> str:
        raise error

    return check


def greedy(case: Case, place: Path) -> str:
    return str(len(bytearray(2 * invariant.MEMORY_BYTES)))


class Sneaky(MtError):
    """Known, but with the exit code of success."""

    exit_code = ExitCode.PASS


def two_lines() -> UsageError:
    error = UsageError("here: wrong")
    error.args = ("here: wrong\nvery",)
    return error


#: What a target may do wrong, and what is raised then.
WRONG: dict[str, tuple[Callable[[Case, Path], str], type[Exception], str]] = {
    "never ends": (forever, invariant.Broken, "no end"),
    "waits for ever": (lambda case, place: str(threading.Event().wait()), invariant.Broken, "no end"),
    "never ends and takes every error": (swallowing, invariant.Broken, "no end"),
    "an unknown error": (raising(KeyError("x")), KeyError, "x"),
    "takes all memory": (greedy, MemoryError, "^$"),
    "an error that does not say where": (raising(UsageError("wrong")), invariant.Broken, "does not name here"),
    "an error of two lines": (raising(two_lines()), invariant.Broken, "not one line"),
    "an error without a text": (raising(InfrastructureError("")), invariant.Broken, "not one line"),
    "an error that ends well": (raising(Sneaky("here: wrong")), invariant.Broken, "exit code"),
    "an error of nobody's input": (raising(IsolationError("here: wrong")), invariant.Broken, "exit code"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_invariant_can_be_broken(name: str) -> None:
    check, error, text = WRONG[name]
    target = Target("t", ("k",), st.nothing, lambda kind: b"", check, "here")
    with invariant.little_memory(), pytest.raises(error, match=text):
        invariant.hold(target, Case("k", b""), limit_s=0.5)


def test_a_known_error_that_is_told_well_holds() -> None:
    target = Target("t", ("k",), st.nothing, lambda kind: b"", raising(UsageError("here: wrong")), "here")
    assert invariant.hold(target, Case("k", b"")) == "refused with 2"


def test_known_errors_are_one_line_whatever_they_quote() -> None:
    assert str(UsageError("got 'a\nb\x1b[0m\x00', expected c")) == "got 'a\\nb\\x1b[0m\\x00', expected c"
    assert len(str(UsageError("x" * 100_000))) < 2000
    log = "died; its log ends:\n    | first\n    | second"
    assert str(InfrastructureError(log)) == log, "lines of a log may follow"


def test_edits_change_what_they_are_given() -> None:
    data = bytes(range(8))
    edits = {
        ("set", 2, 0, b"x"): b"\0\1x\3\4\5\6\7",
        ("replace", 2, 3, b"x"): b"\0\1x\5\6\7",
        ("cut", 2, 0, b""): b"\0\1",
        ("drop", 2, 4, b""): b"\0\1\4\5\6\7",
        ("double", 2, 4, b""): b"\0\1\2\3\2\3\4\5\6\7",
        ("zero", 2, 4, b""): b"\0\1\0\0\4\5\6\7",
    }
    for edit, expected in edits.items():
        assert applied(data, [edit]) == expected, edit
    assert applied(data, list(edits)[2:4]) == b"\0\1", "one after the other, also where nothing is left"
