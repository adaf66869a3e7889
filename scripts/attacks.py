# SPDX-License-Identifier: Apache-2.0
"""Attacks every kind of run in every way that is known, and writes what came of it to ``scripts/attacks.json``.

A cell of the table is one attack on one kind of run: short runs under it, or tests that are it, or the reason why it
does not apply. A run holds if it ends in time, with an exit code that is documented and without a traceback; if
``mt verify`` finds its results whole; if an honest stack is blamed for nothing, and a wrong one never passes; and if no
file that it wrote holds the key of a language model, which stands in its environment. Exit 1 when one does not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from attack_inputs import Bags, plugin_folders
from attack_runs import KIND_OF_ANSWER, KINDS, Attack, Ended, Runs, clock_library

from mt_nodes.base.safety_settings import BoxSettings
from mt_nodes.runs.vehicle.box_report import boxed, what_can_be_boxed

FIGURES = Path(__file__).with_name("attacks.json")
ROOT = Path(__file__).resolve().parents[1]
#: Lines of the journal after which runs are killed, where they write fewer than 40.
KILLED_AFTER = {"closed loop": (1, 2, 3), "moral": (1, 6, 12)}
#: How a short run of an honest stack ends: with a verdict, be it that there is too little input for one.
SOUND = {**dict.fromkeys(KINDS, (0, 3)), "inline": (0,)}
#: What `mt inline` says where it replaced nothing.
NOTHING = re.compile(r"\d+ clouds, 0 replaced")
#: As they stand in the table.
TIMES, DASH = chr(0xD7), chr(0x2013)
Row = dict[str, Any]
Cell = Callable[[str, "Bench"], Row]
NO_TOPICS = "there are no topics: the suite calls the stack itself"
OWN_WORLD = "the suite makes the world, its stamps and its transforms itself"
NO_ANSWERS = "it judges no answers"
NO_BOX = "the box is that of `mt live` on a vehicle; here limits of processes, memory and files hold"
NO_STACK = "no code of the stack runs in it"
NO_JOURNAL = (
    "it judges nothing and keeps no journal; its relay forwards on when it is killed (`test_vehicle_inline.py`)"
)
MADE = "the suite takes an answer as the return value of a call"


class Bench:
    """What cells share: runs, and what they are given."""

    def __init__(self, place: Path) -> None:
        self.place = place
        #: Cell of an earlier run, whose tries are not repeated.
        self.before: Row = {}
        self.runs, self.bags = Runs(place / "runs", clock_library(place)), Bags(place / "bags")
        self.plugins = plugin_folders(place / "plugins")
        self._sound: set[str] = set()

    def begin(self, kind: str) -> None:
        """Carry out a run of a kind without an attack, once: were that refused, attacks would try nothing.

        Raises:
            SystemExit: it did not end with a verdict.
        """
        if kind in self._sound:
            return
        ended = self.runs.run(kind, Attack(self.bags.sound))
        if ended.code not in SOUND[kind] or ended.wrong or NOTHING.match(ended.why):
            raise SystemExit(f"{kind} without an attack: exit code {ended.code}: {ended.why} {ended.wrong}")
        self._sound.add(kind)


def clocks(kind: str, bench: Bench) -> Row:
    """Set the wall clock back and forward by an hour while a run goes on."""
    sound = Attack(bench.bags.sound)
    return _runs(kind, bench, [(f"{jump:+d} s", replace(sound, jump_s=jump)) for jump in (-3600, 3600)], honest=True)


def stamps(kind: str, bench: Bench) -> Row:
    """Let the stamps of the input jump, stand still, or be zero."""
    return _runs(kind, bench, [(name, Attack(bag)) for name, bag in bench.bags.stamps().items()], honest=True)


def transforms(kind: str, bench: Bench) -> Row:
    """Give transforms that make a loop, two parents, no rotation, or nothing."""
    return _runs(kind, bench, [(name, Attack(bag)) for name, bag in bench.bags.transforms().items()], honest=True)


def answers(kind: str, bench: Bench) -> Row:
    """Let the stack answer with what is no answer."""
    given = Attack(bench.bags.sound)
    wrong = KIND_OF_ANSWER["drives" if kind in ("closed loop", "moral") else "detects"]
    return _runs(kind, bench, [(name, replace(given, code=code)) for name, code in wrong.items()], honest=False)


def programs(kind: str, bench: Bench) -> Row:
    """Let a stack over topics answer late, twice, with wrong stamps, frames, numbers, or another type."""
    given = Attack(bench.bags.sound)
    wrong = ("stamp zero", "stamp of yesterday", "stamp of tomorrow", "late", "doubled", "another type")
    wrong += ("unknown frame", "not a number")
    return _runs(kind, bench, [(name, replace(given, program=name)) for name in wrong], honest=None)


def plugins(kind: str, bench: Bench) -> Row:
    """Load folders of plugins that end the process, take a shipped name, are no Python, or lead in circles."""
    given = Attack(bench.bags.sound)
    rows = [(name, replace(given, plugins=folder)) for name, folder in bench.plugins.items()]
    return _runs(kind, bench, rows, honest=None)


def kills(kind: str, bench: Bench) -> Row:
    """Kill every process of a run at some line of its journal; ``mt report`` has to work."""
    given = Attack(bench.bags.sound)
    rows = [
        (f"after {count} lines", replace(given, killed_after=count)) for count in KILLED_AFTER.get(kind, (1, 12, 40))
    ]
    return _runs(kind, bench, rows, honest=None)


def _runs(kind: str, bench: Bench, attacks: Iterable[tuple[str, Attack]], honest: bool | None) -> Row:
    """Carry out runs; ``honest``: the stack is (no FAIL), is not (no PASS), or it depends on the attack (neither)."""
    bench.begin(kind)
    details, wrong = dict(bench.before.get("how", {})), list(bench.before.get("wrong", []))
    codes = Counter({int(code): count for code, count in bench.before.get("codes", {}).items()})
    for name, attack in attacks:
        if name in details:
            continue
        ended = bench.runs.run(kind, attack)
        codes[ended.code] += 1
        details[name] = f"{ended.code}: {ended.why.replace(str(bench.place), '')[:160]}"
        problem = ended.wrong or _verdict(ended, honest)
        wrong += [f"{name}: {problem}"] if problem else []
        print(f"    {name}: {details[name]} {'WRONG: ' + problem if problem else ''}", flush=True)
    return {
        "tries": len(details),
        "codes": {str(c): n for c, n in sorted(codes.items())},
        "how": details,
        "wrong": wrong,
    }


def _verdict(ended: Ended, honest: bool | None) -> str:
    if honest is True and ended.code == 1:
        return f"an honest stack is blamed: {ended.why}"
    if honest is False and ended.code == 0:
        return "a stack that does not answer passes"
    return ""


#: What a stack in a box tries; each prints ``reached`` when it got out.
ESCAPES = {
    "TCP to this machine": "s = socket.create_connection(('127.0.0.1', PORT), 5)",
    "UDP to another machine": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 9))",
    "multicast of DDS": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('239.255.0.1', 7400))",
    "abstract socket": "socket.socket(socket.AF_UNIX).connect('\\0mt_attack')",
    "raw packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "CAN": "socket.socket(socket.AF_CAN, socket.SOCK_RAW)",
    "shared memory": "open('/dev/shm/SEGMENT')",
    "POSIX semaphore": "open('/dev/shm/sem.SEGMENT')",
    "memory of the suite": "open('/proc/OUTER/mem')",
    "environment of the suite": "open('/proc/OUTER/environ')",
    "root of the suite": "os.listdir('/proc/OUTER/root')",
    "descriptors of the suite": "os.listdir('/proc/OUTER/fd')",
    "signal to the suite": "os.kill(OUTER, 0)",
    "ptrace": "import ctypes; assert ctypes.CDLL(None).ptrace(16, OUTER, 0, 0) == 0",
    "kernel switches": "open('/proc/sys/kernel/hostname', 'w')",
    "mount": "import ctypes; assert ctypes.CDLL(None).mount(b'x', b'/mnt', b'tmpfs', 0, None) == 0",
    "user namespace": "import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0",
    "kernel module": "import ctypes; assert ctypes.CDLL(None).syscall(175, 0, 0, 0) == 0",
    "device of the machine": "os.open('/dev/kmsg', os.O_RDONLY)",
    "set the clock": "time.clock_settime(time.CLOCK_REALTIME, time.time())",
}
#: These harm nobody: they are tried outside the box first, and have to get through there, or they would prove nothing.
HARMLESS = (
    *(
        "TCP to this machine",
        "abstract socket",
        "raw packets",
        "shared memory",
        "POSIX semaphore",
        "signal to the suite",
    ),
    *("environment of the suite", "root of the suite", "descriptors of the suite"),
)


def escapes(kind: str, bench: Bench) -> Row:
    """Try to get out of the box that a stack beside a live one runs in."""
    if not what_can_be_boxed().whole:
        return {"not_applicable": f"this system allows no whole box: {'; '.join(what_can_be_boxed().shortfalls)}"}
    details, wrong = {}, []
    segment = Path("/dev/shm") / f"mt_attack_{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as hidden:
        hidden.bind("\0mt_attack")
        hidden.listen()
        for name in (segment, segment.with_name(f"sem.{segment.name}")):
            name.write_text("x")
        try:
            for name, code in ESCAPES.items():
                port, outer = str(server.getsockname()[1]), str(os.getpid())
                attempt = code.replace("PORT", port).replace("SEGMENT", segment.name).replace("OUTER", outer)
                reached = _tried(attempt, in_box=True)
                if name in HARMLESS and _tried(attempt, in_box=False) != "reached":
                    reached = "it does not get through outside of a box either"
                details[name] = reached or "refused"
                wrong += [f"{name}: {reached}"] if reached else []
        finally:
            for path in (segment, segment.with_name(f"sem.{segment.name}")):
                path.unlink()
    return {"tries": len(details), "codes": {}, "how": details, "wrong": wrong}


def _tried(code: str, in_box: bool) -> str:
    """Return how an attempt ended, in a box or outside; empty if it was refused."""
    program = (
        f"import os, socket, sys, time\ntry:\n    {code}\n    print('reached')\nexcept (OSError, AssertionError):\n"
    )
    argv: tuple[str, ...] = (sys.executable, "-c", f"{program}    print('refused')\n")
    with tempfile.TemporaryDirectory() as place:
        command = boxed(BoxSettings(), argv, Path(place) / "report.json") if in_box else argv
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    said = done.stdout.strip()
    return "" if said == "refused" else said or f"it ended with {done.returncode}: {done.stderr.strip()[-200:]}"


def tests(*names: str) -> Cell:
    """Return a cell that is tests of the repository: files, or ``file::test``."""

    def run(kind: str, bench: Bench) -> Row:
        argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *names)
        done = subprocess.run(argv, cwd=ROOT, check=False, capture_output=True, text=True, timeout=900)
        passed = re.search(r"(\d+) passed", done.stdout)
        count = int(passed[1]) if passed else 0
        problem = done.returncode or not count
        wrong = [done.stdout.strip().splitlines()[-1]] if problem else []
        return {"tries": count, "codes": {}, "how": {"tests": ", ".join(names)}, "wrong": wrong}

    return run


def without(reason: str) -> Cell:
    """Return a cell that does not apply."""
    return lambda kind, bench: {"not_applicable": reason}


def _row(cell: Cell, **others: Cell) -> dict[str, Cell]:
    """Return a row: one cell for every kind but those named (by first word)."""
    return {
        kind: next((c for name, c in others.items() if kind.replace(" ", "_").startswith(name)), cell) for kind in KINDS
    }


WORLD = {"closed": without(OWN_WORLD), "moral": without(OWN_WORLD)}
BRIDGES = tests("test/ros/test_ros_adversarial.py", "test/ros/test_leak_watch.py")
FOREIGN = tests("test/ros/test_ros_graph_guard.py")
TABLE: dict[str, dict[str, Cell]] = {
    "wall clock set back and forward by an hour": _row(clocks),
    "stamps of the input jump, stand still or are zero": _row(stamps, **WORLD),
    "transforms in a loop, with two parents, without a rotation": _row(transforms, **WORLD),
    "return values of wrong types, NaN, exceptions, silence": _row(answers, inline=without(NO_ANSWERS)),
    "answers late, twice, with wrong stamps, frames or types": _row(
        without(MADE), replay_over=programs, live=programs, inline=without(NO_ANSWERS)
    ),
    "ways out of the box": _row(without(NO_BOX), live=escapes, inline=without(NO_STACK)),
    "bridges and remappings onto actuators": _row(
        without(NO_TOPICS),
        replay_over=FOREIGN,
        live=BRIDGES,
        inline=tests("test/ros/test_vehicle_inline.py::test_a_topic_that_somebody_else_publishes_is_refused"),
    ),
    "folders of adversarial plugins": _row(plugins),
    "every process killed, then `mt report`": _row(kills, inline=without(NO_JOURNAL)),
}


def main() -> None:
    """Attack, print a line a cell, write the table; exit 1 when something did not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="attacks whose name has this in it")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS, metavar="KIND,…")
    parser.add_argument("--missing", action="store_true", help="make only the tries that the figures lack")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="JSON file of the table; other cells stay")
    given = parser.parse_args()
    table: dict[str, dict[str, Row]] = json.loads(given.figures.read_text())["table"] if given.figures.exists() else {}
    searched, failed = 0, 0
    with tempfile.TemporaryDirectory(prefix="mt_attacks_") as directory:
        bench = Bench(Path(directory))
        for attack in (name for name in TABLE if given.only in name):
            for kind in given.kinds:
                began_s = time.monotonic()
                bench.before = table.get(attack, {}).get(kind, {}) if given.missing else {}
                row = TABLE[attack][kind](kind, bench)
                table.setdefault(attack, {})[kind] = row
                failed += bool(row.get("wrong"))
                print(f"{attack}, {kind}: {describe(row)} ({time.monotonic() - began_s:.0f} s)", flush=True)
                searched = bench.runs.files_searched
                _write(given.figures, table)
    print(
        f"{sum(r.get('tries', 0) for rows in table.values() for r in rows.values())} tries, {searched} files searched"
    )
    sys.exit(bool(failed))


def _write(path: Path, table: dict[str, dict[str, Row]]) -> None:
    order = [(name, table[name]) for name in TABLE if name in table]
    path.write_text(json.dumps({"table": dict(order)}, indent=1, ensure_ascii=False) + "\n")


def describe(row: Row) -> str:
    """Return a cell in words."""
    if "not_applicable" in row:
        return f"{DASH} {row['not_applicable']}"
    codes = [f"exit {code}" + (f" {TIMES}{n}" if n > 1 else "") for code, n in row["codes"].items()]
    wrong = f"; WRONG: {'; '.join(row['wrong'])}" if row["wrong"] else ""
    return f"{row['tries']}: {', '.join(codes) or 'all refused'}{wrong}"


if __name__ == "__main__":
    main()
