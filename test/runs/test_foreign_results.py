# SPDX-License-Identifier: Apache-2.0
"""Results of others are data: no command executes the plugins and callables that they name, unless it is told to."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from campaign_runs import drives

from mt_nodes.base import plugins
from mt_nodes.base.jsonl import write_result
from mt_nodes.cli.main import main
from mt_nodes.engine import provenance
from mt_nodes.engine.run_record import read_record, refuse_foreign_record
from mt_nodes.runs.campaign.campaign_store import FILE

RELATION = "noise_outside_roi_10"
PAIR = f"0/0/{RELATION}/0"
EVIL = """from pathlib import Path
Path({mark!r}).write_text("code of the results was executed")

def detect(points):
    return []
"""


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of a run that ended well."""
    place = tmp_path_factory.mktemp("honest")
    [drive] = drives(place, 1, 2)
    words = ["replay", str(drive), "--relations", RELATION, "--transport", "inprocess", "--out", str(place / "out")]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)  # commands about results begin where the run did
        main(words)
    return place / "out"


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    """What exists if code of the results was executed."""
    return tmp_path / "mark"


@pytest.fixture(autouse=True)
def unchanged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each test begins with no directory of plugins, no trust, a key and a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plugins, "_directories", [])
    monkeypatch.delenv("MT_NODES_TRUST", raising=False)
    monkeypatch.setenv("MT_NODES_RECORD_KEY", "k" * 64)
    plugins.catalogue.cache_clear()


def evil(honest: Path, out: Path, mark: Path, names: str) -> Path:
    """Return results that look like the honest ones, but name code that lies in them."""
    shutil.copytree(honest, out)
    code = out / "evil"
    code.mkdir()
    (code / "evil.py").write_text(EVIL.format(mark=str(mark)))
    (code / "stack.yaml").write_text("{name: evil, callable: 'evil:detect'}")
    record = json.loads((out / "run.json").read_text())
    del record["crc32"]
    changes: dict[str, Any] = {
        "plugins": {"plugins": [str(code)]},
        "stack": {"stack": str(code / "stack.yaml")},
        "settings": {"stack_settings": {"callable": "evil:detect", "directory": str(code)}},
    }
    record["request"].update(changes[names])
    write_result(out / "run.json", record)
    return out


COMMANDS = [
    ["replay", "--resume", "{out}"],
    ["reproduce", "{out}", PAIR],
    ["shrink", "{out}", PAIR],
    ["blame", "{out}", PAIR],
    ["bisect", "step", "--failures", "{out}", "--pair", PAIR],
    ["verify", "{out}"],
    ["report", "{out}"],
    ["report", "--coverage", "{out}"],
    ["watch", "{out}"],
    ["show", "{out}"],
    ["show", "{out}", PAIR],
    ["compare", "{out}", "{out}"],
    ["replay", "failures", "add", "{out}"],
    ["review", "new", "{out}"],
]


@pytest.mark.parametrize("names", ["plugins", "stack", "settings"])
def test_no_command_executes_what_results_of_others_name(
    honest: Path, tmp_path: Path, mark: Path, names: str, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that would have to refuse, and say what they would execute; verify says what it could not check."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    out = evil(honest, tmp_path / "out", mark, names)
    refused = []
    for words in COMMANDS:
        code = exit_code([word.format(out=out) for word in words])
        said = "".join(capfd.readouterr())
        assert not mark.exists(), words
        if "names code that would be executed" in said:
            refused.append(words[0])
            assert code != 0 and "--trust" in said and "evil" in said
    assert {"replay", "reproduce", "shrink", "blame", "bisect", "verify"} <= set(refused), refused


def exit_code(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as ended:  # of the parser
        return int(str(ended.code))


def test_who_is_told_to_executes_it(honest: Path, tmp_path: Path, mark: Path, capfd: Any) -> None:
    """The test above can fail: with --trust the same directory has its code executed."""
    out = evil(honest, tmp_path / "out", mark, "plugins")
    main(["reproduce", str(out), PAIR, "--trust", "--out", str(tmp_path / "again")])
    assert mark.exists()


def test_plugins_of_the_command_line_are_told(honest: Path, tmp_path: Path, mark: Path, capfd: Any) -> None:
    """Whoever names the directory himself needs no further word."""
    out = evil(honest, tmp_path / "out", mark, "plugins")
    main(["verify", str(out), "--plugins", str(out / "evil")])
    said = capfd.readouterr()
    assert mark.exists() and "names code" not in said.out + said.err


def test_ones_own_results_need_no_word_until_they_are_changed(
    honest: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seal covers what is asked, and the files beside it that name code; without code nothing is asked for."""
    said = {"request": {"stack": "mine.yaml"}, "directory": "/home"}
    (tmp_path / "stack.yaml").write_text("a")
    sealed = provenance.seal(tmp_path, said)
    provenance.refuse_foreign(tmp_path, said, sealed, said["request"])
    other = {**said, "directory": "/tmp"}
    for about in (other, {**said, "request": {"stack": "yours.yaml"}}):
        with pytest.raises(provenance.UsageError, match=r"names code that would be executed: stack (mine|yours)\.yaml"):
            provenance.refuse_foreign(tmp_path, about, sealed, about["request"])
    for name in ("stack.yaml", "callable.pkl"):
        (tmp_path / name).write_text("b")
        with pytest.raises(provenance.UsageError):
            provenance.refuse_foreign(tmp_path, said, sealed, said["request"])
        (tmp_path / name).write_text("a") if name == "stack.yaml" else (tmp_path / name).unlink()
    provenance.refuse_foreign(tmp_path, {}, "", {"stack": "reference_detector", "plugins": []})
    with provenance.knowing({"stack": "mine.yaml"}):
        provenance.refuse_foreign(tmp_path, said, "", said["request"])


def test_the_key_is_this_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is kept; where nothing can be stored it is handed to the processes of the run."""
    monkeypatch.delenv("MT_NODES_RECORD_KEY")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first = provenance.seal(tmp_path, {})
    assert provenance.seal(tmp_path, {}) == first
    assert (tmp_path / "cache/mt_nodes/record.key").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/none")
    assert provenance.seal(tmp_path, {}) != first
    assert provenance.seal(tmp_path, {}) == provenance.seal(tmp_path, {})


def test_a_campaign_of_others_is_not_gone_on_with(tmp_path: Path, mark: Path, monkeypatch: Any, capfd: Any) -> None:
    """Its items are read by the code that its stacks name."""
    code = tmp_path / "code"
    code.mkdir()
    (code / "mine.py").write_text(EVIL.format(mark=str(mark)))
    (code / "stack.yaml").write_text("{name: mine, callable: 'mine:detect'}")
    [drive] = drives(tmp_path, 1, 2)
    file = tmp_path / "campaign.yaml"
    file.write_text(
        json.dumps(
            {"bags": [str(drive)], "relations": [RELATION], "stacks": ["code/stack.yaml"], "transport": "inprocess"}
        )
    )
    out = tmp_path / "out"
    assert main(["campaign", str(file), "--out", str(out)]) == 3 and (out / FILE).exists()
    assert main(["campaign", "--resume", str(out)]) == 3, "one's own needs no word"
    [cell] = (out / "cells").iterdir()
    refuse_foreign_record(cell, read_record(cell))
    mark.unlink()
    monkeypatch.setenv("MT_NODES_RECORD_KEY", "x" * 64)
    with pytest.raises(provenance.UsageError, match="names code"):
        refuse_foreign_record(cell, read_record(cell))
    assert main(["campaign", "--resume", str(out)]) == 2
    assert "names code that would be executed: stack" in capfd.readouterr().err and not mark.exists()
