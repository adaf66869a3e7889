# SPDX-License-Identifier: Apache-2.0
"""What whoever releases or packages this expects: licences, versions, changelog, addresses, containers."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import yaml

import mt_nodes

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {".py", ".sh", ".js", ".css", ".j2", ".lark", ".toml", ".cfg", ".xml", ".yml", ".cff", ".rviz"}
NAMES = {"Makefile", "Containerfile", "MANIFEST.in", ".dockerignore", "run"}
NOT_OURS = {
    ".git",
    ".venv",
    "build",
    "dist",
    "site",
    "__pycache__",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
}
#: In two parts: REUSE reads what stands behind the colon as the licence of this file.
SPDX = ": ".join(("SPDX-License-Identifier", "Apache-2.0"))
LISTED = re.compile(r"\b(apt|apt-get|pip|dnf|apk|conda|curl|wget)\b")


def sources() -> list[Path]:
    paths = (path for path in ROOT.rglob("*") if not NOT_OURS & {*path.relative_to(ROOT).parts})
    return [path for path in paths if path.is_file() and (path.suffix in SOURCES or path.name in NAMES)]


def test_every_source_file_says_its_licence() -> None:
    found = sources()
    assert len(found) > 800
    heads = {path: path.read_text(encoding="utf-8").splitlines()[:5] for path in found}
    assert [str(path) for path, head in heads.items() if head and not any(SPDX in line for line in head)] == []


def test_every_other_file_has_copyright_and_licence_by_reuse() -> None:
    text = (ROOT / "REUSE.toml").read_text()
    assert all(line in text for line in ("version = 1", 'path = "**"', 'SPDX-License-Identifier = "Apache-2.0"'))
    assert re.search(r'^SPDX-FileCopyrightText = ".+"$', text, re.M)
    licences = [path.name for path in (ROOT / "LICENSES").iterdir()]
    assert licences == ["Apache-2.0.txt"]
    assert (ROOT / "LICENSES" / "Apache-2.0.txt").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_changelog_has_the_form_that_it_names() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## (.+)$", text, re.M)
    assert versions[0] == "Unreleased" or versions[0].startswith(f"{mt_nodes.__version__} - ")
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", version) for version in versions[1:])
    for part in text.split("\n## ")[1:]:
        sections = re.findall(r"^### (.+)$", part, re.M)
        assert len(sections) == len(set(sections))
        assert set(sections) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_version_and_address_are_the_same_everywhere() -> None:
    manifest, set_up = ET.parse(ROOT / "package.xml").getroot(), (ROOT / "setup.py").read_text()
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    maintainer = manifest.find("maintainer")
    assert citation["version"] == manifest.findtext("version") == mt_nodes.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", mt_nodes.__version__)
    assert maintainer is not None
    assert f'maintainer="{maintainer.text}"' in set_up and f'maintainer_email="{maintainer.get("email")}"' in set_up
    assert "package.xml" in (ROOT / "SECURITY.md").read_text(encoding="utf-8"), "whom to write to"


def instructions(file: Path) -> list[tuple[str, str]]:
    lines = file.read_text().replace("\\\n", " ").splitlines()
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines if line and not line.startswith("#")]


def test_a_container_installs_what_a_bare_machine_does_by_the_same_scripts() -> None:
    found = instructions(ROOT / "Containerfile")
    names = [name for name, _ in found]
    assert names[0] == "FROM" and set(names) <= {"FROM", "COPY", "ARG", "RUN", "ENV", "WORKDIR", "ENTRYPOINT", "CMD"}
    commands = [text for name, text in found if name == "RUN"]
    assert commands == ["/opt/mt_nodes/scripts/system_packages.sh", '/opt/mt_nodes/scripts/setup.sh "$EXTRAS"']
    assert not any(LISTED.search(text) for _, text in found), "package lists are in scripts/"
    stages = re.findall(r"AS (\w+)", " ".join(text for name, text in found if name == "FROM"))
    developing = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert developing["build"] == {"dockerfile": "../Containerfile", "context": "..", "target": stages[0]}
    assert developing["postCreateCommand"] == "scripts/setup.sh test"
    assert not {"features", "onCreateCommand", "updateContentCommand"} & set(developing)
    copied = [word for name, text in found if name == "COPY" for word in text.split()[:-1]]
    assert all((ROOT / word).exists() for word in copied)
    assert set((ROOT / ".dockerignore").read_text().splitlines()) >= {".git", ".venv"}
