# SPDX-License-Identifier: Apache-2.0
"""Results directories: each file of a finished run changed, with and without a checksum that fits, then used."""

from __future__ import annotations

import atexit
import contextlib
import copy
import hashlib
import io
import json
import os
import re
import shutil
import sqlite3
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz import bags
from fuzz.cases import Case, Target, edited
from fuzz.files import changed
from fuzz.invariant import LONGEST_TEXT, require
from mt_nodes.base.errors import ExitCode, MtError
from mt_nodes.base.jsonl import read_result, seal, unseal, write_result
from mt_nodes.cli.main import main

PAIR = "0/0/noise_outside_roi_10/0"
#: Kind -> the file of it, and how it is protected.
SEALED, LINES, PLAIN, ROWS = "sealed", "lines", "plain", "rows"
FILES = {
    "run": ("run.json", SEALED),
    "summary": ("summary.json", SEALED),
    "stack": ("stack.yaml", PLAIN),
    "journal": ("result.jsonl", LINES),
    "ledger": ("ledger.jsonl", LINES),
    "scores": ("scores.jsonl", LINES),
    "evidence": ("evidence/*.mcap", PLAIN),
    "draws": ("draws/*.npz", PLAIN),
}
#: Files of a finished campaign, with prefixes of kinds.
CAMPAIGN = {
    "campaign": ("campaign.sqlite", PLAIN),
    "campaign_rows": ("campaign.sqlite", ROWS),
    "campaign_summary": ("summary.json", SEALED),
    "campaign_cost": ("cost.json", SEALED),
}
#: What is done with a damaged directory, each as it is typed; ``{out}`` is it, ``{whole}`` the undamaged one.
COMMANDS: dict[str, tuple[str, ...]] = {
    "watch": ("watch", "{out}"),
    "report": ("report", "{out}"),
    "resume": ("replay", "--resume", "{out}"),
    "show": ("show", "{out}"),
    "show pair": ("show", "{out}", PAIR),
    "compare": ("compare", "{out}", "{whole}"),
    "reproduce": ("reproduce", "{out}", PAIR),
    "verify": ("verify", "{out}"),
}
CAMPAIGN_COMMANDS: dict[str, tuple[str, ...]] = {
    **{name: COMMANDS[name] for name in ("watch", "report", "show", "verify")},
    "resume": ("campaign", "--resume", "{out}", "--minutes", "0"),
}
#: Of these exit code 0 is a statement about the results.
VERDICTS = ("resume", "verify")


def count(points: Any) -> Any:
    """Report two cars, or one for an odd number of points: eleven points of noise lose one."""
    cars = 2 - len(points) % 2
    return np.array([[12.0 + 6.0 * i, 3.0, 0.5, 4.0, 2.0, 1.5, 0.0] for i in range(cars)])


@lru_cache
def whole() -> Path:
    """Return the directory of a run with violated pairs; it lasts as long as this process."""
    place = Path(tempfile.mkdtemp(prefix="mt_fuzz_results_"))
    atexit.register(shutil.rmtree, place, True)
    (place / "drive.mcap").write_bytes(bags.sound("mcap"))
    stack = {**bags.STACK, "callable": "fuzz.results:count"}
    (place / "stack.yaml").write_text(json.dumps(stack), encoding="utf-8")
    relation = {"id": "noise_outside_roi_10", "kind": "necessary", "because": "for tests", "min_decided": 1}
    odd = {**relation, "mutate": [{"noise_outside_roi": {"points": 11}}], "check": {"obstacles_kept": {}}}
    (place / "relation.yaml").write_text(json.dumps(odd), encoding="utf-8")
    asked = ("--stack", str(place / "stack.yaml"), "--relations", str(place / "relation.yaml"))
    words = (str(place / "drive.mcap"), *asked, "--transport", "inprocess", "--out", str(place / "out"))
    code, said = typed("replay", *words)
    require(code == ExitCode.FAIL, f"the run to be damaged ended with {code}: {said}")
    return place / "out"


@lru_cache
def whole_campaign() -> Path:
    """Return the directory of a campaign over the same drive; it lasts as long as this process."""
    place = whole().parent
    asked = {"bags": [str(place / "drive.mcap")], "relations": [str(place / "relation.yaml")], "transport": "inprocess"}
    (place / "campaign.yaml").write_text(json.dumps({**asked, "stacks": [str(place / "stack.yaml")]}), encoding="utf-8")
    code, said = typed("campaign", str(place / "campaign.yaml"), "--out", str(place / "campaign"))
    require(code == ExitCode.FAIL, f"the campaign to be damaged ended with {code}: {said}")
    return place / "campaign"


def typed(*words: str) -> tuple[int, str]:
    """Type ``mt`` and words; return the exit code and what was written to standard error."""
    out, error, before = io.StringIO(), io.StringIO(), Path.cwd()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            return int(main(list(words))), error.getvalue()
    finally:
        os.chdir(before)  # a run that goes on does so where it began


def _origin(kind: str) -> tuple[Path, str, str]:
    """Return the sound directory of a kind, the file that is damaged in it, and how that is protected."""
    return (whole_campaign(), *CAMPAIGN[kind]) if kind in CAMPAIGN else (whole(), *FILES[kind])


def path_of(kind: str, directory: Path) -> Path:
    """Return the file of a kind, in a directory that has it."""
    return min(directory.glob(_origin(kind)[1]))


def sound(kind: str) -> bytes:
    """Return the file of the undamaged run."""
    return path_of(kind, _origin(kind)[0]).read_bytes()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a file; change what it says and its checksums with it, or its bytes."""
    kind = draw(st.sampled_from(KINDS))
    how, data = _origin(kind)[2], sound(kind)
    if how == ROWS:
        return Case(kind, _rows_otherwise(draw, data))
    if how == PLAIN or draw(st.integers(0, 3)) == 0:
        return Case(kind, draw(edited(data)))
    return Case(kind, _said_otherwise(draw, data) if how == SEALED else _lines_otherwise(draw, data))


def _rows_otherwise(draw: st.DrawFn, data: bytes) -> bytes:
    """Change values in tables, JSON in what it says; as of a campaign that was not summed up: no digest is left."""
    with tempfile.NamedTemporaryFile(suffix=".sqlite") as file, contextlib.closing(_opened(file, data)) as db:
        db.execute("DELETE FROM meta WHERE name = 'digest'")
        table = draw(st.sampled_from(("meta", "meta", "drives", "items", "parts")))
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        column = draw(st.sampled_from(columns))
        rows = db.execute(f"SELECT {columns[0]}, {column} FROM {table} ORDER BY {columns[0]}").fetchall()
        key, before = rows[draw(st.integers(0, len(rows) - 1))]
        with contextlib.suppress(sqlite3.IntegrityError):
            db.execute(f"UPDATE {table} SET {column} = ? WHERE {columns[0]} = ?", (_value_otherwise(draw, before), key))
        db.commit()
        return Path(file.name).read_bytes()


def _opened(file: Any, data: bytes) -> sqlite3.Connection:
    file.write(data)
    file.flush()
    db = sqlite3.connect(file.name)
    db.execute("PRAGMA journal_mode = DELETE")
    return db


def _value_otherwise(draw: st.DrawFn, before: Any) -> Any:
    """Return another value of a column: what JSON says changed, or any that SQLite can hold."""
    try:
        document = json.loads(before)
        if isinstance(document, (dict, list)):
            return _text(changed(draw, copy.deepcopy(document)))
    except (TypeError, ValueError):
        pass
    return draw(st.sampled_from((None, -1, 2**40, 1.5, "", "no\nJSON", b"\xff\x00", "done", "[]", "{}", "null")))


def _said_otherwise(draw: st.DrawFn, data: bytes) -> bytes:
    document = {key: value for key, value in json.loads(data).items() if key != "crc32"}
    for _ in range(draw(st.integers(1, 3))):
        document = changed(draw, copy.deepcopy(document))
    return _sealed(document)


def _sealed(document: Any) -> bytes:
    with tempfile.TemporaryDirectory(prefix="mt_fuzz_") as place:
        path = Path(place) / "sealed.json"
        try:
            write_result(path, json.loads(_text(document)))
        except (AttributeError, MtError):  # it is no mapping any more
            return _text(document).encode()
        return path.read_bytes()


def _text(document: Any) -> str:
    return json.dumps(document, default=repr, ensure_ascii=True)


def _lines_otherwise(draw: st.DrawFn, data: bytes) -> bytes:
    """Change what a line says, drop it, repeat it, or move it to the end."""
    rows = data.decode().splitlines()
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, max(0, len(rows) - 1)))
        what = draw(st.sampled_from(("say", "say", "say", "drop", "double", "last")))
        if not rows:
            break
        if what == "say":
            rows[at] = _line_otherwise(draw, rows[at])
        elif what == "double":
            rows.insert(at, rows[at])
        else:
            moved = rows.pop(at)
            rows += [moved] if what == "last" else []
    return "".join(f"{row}\n" for row in rows).encode("utf-8", "backslashreplace")


def _line_otherwise(draw: st.DrawFn, row: str) -> str:
    try:
        line = changed(draw, unseal(row, "line"))
        return seal(json.loads(_text(line)))
    except (MtError, ValueError, TypeError, AttributeError):  # nothing is left that can be sealed
        return row[: len(row) // 2]


def fits(kind: str, data: bytes) -> bool:
    """Whether every checksum in a file is that of what stands there; True where it has none."""
    how = _origin(kind)[2]
    try:
        if how == LINES:
            return data.endswith(b"\n") and all(unseal(row, "") is not None for row in data.decode().splitlines())
        if how == SEALED:
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                read_result(Path(file.name))
        return True
    except (MtError, ValueError):
        return False


def check(case: Case, place: Path) -> str:
    """Do with a directory that has the file of the case what the case says, by its bytes."""
    commands = tuple(CAMPAIGN_COMMANDS if case.kind in CAMPAIGN else COMMANDS)
    command = commands[hashlib.sha256(case.data).digest()[0] % len(commands)]
    return do(case, place, command)


def do(case: Case, place: Path, command: str) -> str:
    """Type a command for a directory that has the file of the case; hold what comes of it to the invariant."""
    out = place / "out"
    shutil.copytree(_origin(case.kind)[0], out)
    path_of(case.kind, out).write_bytes(case.data)
    words = (CAMPAIGN_COMMANDS if case.kind in CAMPAIGN else COMMANDS)[command]
    code, error = typed(*(word.format(out=out, whole=whole()) for word in words))
    require("Traceback" not in error, f"{command}, traceback from {_innermost(error)}: {error[-600:]}")
    require(code in (*range(5), 130), f"{command}: exit code {code}")
    rows = [row for row in error.splitlines() if row.startswith("mt: ") and not row.startswith("mt: warning: ")]
    require(code != ExitCode.USAGE or len(rows) == 1, f"{command}: exit code 2 for no one line: {error[:600]!r}")
    require(all(len(row) <= LONGEST_TEXT for row in rows), f"{command}: a line of {max(map(len, rows), default=0)}")
    if not fits(case.kind, case.data):
        require(code != ExitCode.PASS or command not in VERDICTS, f"{command}: exit code 0 of a damaged {case.kind}")
    return f"{'read' if code in (0, 1) else 'refused'}: {command} {code}"


def _innermost(error: str) -> str:
    """Return the last line of ours in a traceback, without what is quoted: failures are told apart by it."""
    found = re.findall(r'File "[^"]*mt_nodes/([^"]*)", line (\d+)', error)
    return " line ".join(found[-1]) if found else "elsewhere"


KINDS = (*FILES, *CAMPAIGN)
TARGET: Target = Target("results", KINDS, cases, sound, check, "")
