# SPDX-License-Identifier: Apache-2.0
"""The jobs for GitHub Actions and GitLab that are there to be copied: what they type is typed here, as they would."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from recordings import drive as recording
from recordings import write_bag

from mt_nodes.cli.main import _parsed

CI = Path(__file__).parents[2] / "examples/ci"
GITHUB = yaml.safe_load((CI / "github/mt_nodes.yml").read_text(encoding="utf-8"))
GITLAB = yaml.safe_load((CI / "gitlab/mt_nodes.gitlab-ci.yml").read_text(encoding="utf-8"))
#: Two of GitHub's shells: the one that a step gets by itself, and that of GitLab's runner for a script.
SHELL = ("bash", "-e", "-o", "pipefail")
#: A stack that costs nothing; each cloud of the drive has 50 points, and a faulty one is blinded by ten times as many.
STACK = """
import numpy as np

def detect(points):
    return np.array([[10.0, 0.0, 0.8, 4.0, 2.0, 1.6, 0.0]])[: 0 if {faulty} and len(points) > 500 else 1]
"""


def step(job: str, name: str) -> dict[str, Any]:
    return next(s for s in GITHUB["jobs"][job]["steps"] if s.get("name") == name)


def scripts() -> list[str]:
    """Everything that either file has a shell do."""
    github = [s["run"] for job in GITHUB["jobs"].values() for s in job["steps"] if "run" in s]
    gitlab = [line for job in GITLAB.values() for key in ("before_script", "script") for line in job.get(key, ())]
    return [*github, *gitlab]


def commands() -> list[str]:
    found = [line for script in scripts() for line in script.splitlines()]
    return [match[0] for line in found if (match := re.search(r"\bmt (replay|compare|campaign)\b[^|;]*", line))]


@dataclass(frozen=True)
class Repository:
    """A checkout of somebody's stack, in which a job runs."""

    path: Path
    drive: Path

    def sh(self, script: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run what a step or job has, its variables set as the file says but for the drive."""
        told = {**GITHUB["env"], "BAGS": str(self.drive), "PATH": f"{self.drive.parent / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run(
            [*SHELL, "-c", script],
            check=False,
            cwd=self.path,
            env={**os.environ, **told, **env},
            text=True,
            capture_output=True,
        )

    def stack(self, faulty: bool = False) -> None:
        """Write the stack under test."""
        (self.path / "detector.py").write_text(STACK.format(faulty=faulty))
        about = {"callable": "detector:detect", "points_frame": "base_link", "stateless": True}
        (self.path / "stack.yaml").write_text(yaml.safe_dump(about))


#: In place of `mt`: a replay calls the stack in its own process and not over topics, for the jobs are tested here and
#: not the transport; and what was typed before, word for word, about the same files leaves what it left then.
MT = """#!/bin/bash
case "$1" in
  replay) about="detector.py $(echo *.yaml)"; more="--transport inprocess" ;;
  compare) about="main_results/result.jsonl results/result.jsonl"; more="" ;;
  *) exec {mt} "$@" ;;
esac
kept={kept}/$( (printf '%s\\n' "$@"; tail -n +1 $about) | sha256sum | cut -c1-16)
if [ ! -e "$kept.code" ]; then
  {mt} "$@" $more >"$kept.out" 2>"$kept.err"
  code=$?
  if [ "$1" = replay ] && [ -d results ]; then mv results "$kept"; fi
  echo "$code" >"$kept.code"
fi
if [ -d "$kept" ]; then cp -r "$kept" results; fi
cat "$kept.out"
cat "$kept.err" >&2
exit "$(cat "$kept.code")"
"""


@pytest.fixture(scope="module")
def drives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two drives, and the program that replays them."""
    place = tmp_path_factory.mktemp("drives")
    for name, clouds in (("drive", 20), ("short", 3)):
        write_bag(place / name, recording(clouds))
    for folder in ("bin", "kept"):
        (place / folder).mkdir()
    real = f"{shlex.quote(sys.executable)} -m mt_nodes.cli.main"
    (place / "bin" / "mt").write_text(MT.format(mt=real, kept=shlex.quote(str(place / "kept"))))
    (place / "bin" / "mt").chmod(0o755)
    return place


@pytest.fixture
def repository(tmp_path: Path, drives: Path) -> Repository:
    made = Repository(tmp_path, drives / "drive")
    made.stack()
    return made


def on_github(repository: Repository, main: bool) -> subprocess.CompletedProcess[str]:
    """Run the steps of a replay, one after the other, as their conditions have it."""
    output = repository.path / "output"
    output.write_text("")
    done = repository.sh(step("replay", "Replay")["run"], GITHUB_OUTPUT=str(output))
    assert done.returncode == 0, done.stderr
    (code,) = re.findall(r"^code=(\d+)$", output.read_text(), re.M)
    judged = repository.sh(step("replay", "Judge")["run"], CODE=code)
    if main and code in "01":
        kept = repository.sh(step("replay", "Keep what main came to")["run"])
        assert kept.returncode == 0, kept.stderr
    return judged


def on_gitlab(repository: Repository, main: bool) -> subprocess.CompletedProcess[str]:
    branch = "main" if main else "topic"
    return repository.sh("\n".join(GITLAB["mt_replay"]["script"]), CI_DEFAULT_BRANCH="main", CI_COMMIT_BRANCH=branch)


Service = Callable[[Repository, bool], "subprocess.CompletedProcess[str]"]
SERVICES = pytest.mark.parametrize("service", [on_github, on_gitlab], ids=["github", "gitlab"])


def test_every_command_is_one_of_ours() -> None:
    assert len(commands()) >= 6
    for text in commands():
        words = shlex.split(re.sub(r'"\$\{waivers\[@\]\}"', "--waivers waivers.yaml", text).split(" || ")[0])[1:]
        words = ["5" if word == "$MINUTES" else word for word in words]
        _parsed(words)


def test_expressions_of_github_stay_out_of_shells() -> None:
    """What a pull request may name would be run by the shell that it is pasted into."""
    assert not [script for script in scripts() if "${{" in script]


@SERVICES
def test_what_fails_newly_is_red_and_what_failed_before_is_not(service: Service, repository: Repository) -> None:
    assert service(repository, True).returncode == 0
    repository.stack(faulty=True)
    _next(repository)
    red = service(repository, False)
    assert red.returncode == 1
    assert "newly failing" in red.stdout
    _next(repository)
    assert service(repository, True).returncode == 1  # it is merged all the same
    _next(repository)
    assert service(repository, False).returncode == 0
    assert (repository.path / "results/junit.xml").is_file()


@SERVICES
def test_where_main_is_not_known_a_failure_is_red_unless_it_is_waived(service: Service, repository: Repository) -> None:
    repository.stack(faulty=True)
    assert service(repository, False).returncode == 1
    waived = [
        {"relation": r, "reason": "known", "expires": "2999-01-01"} for r in GITHUB["env"]["RELATIONS"].split(",")
    ]
    (repository.path / "waivers.yaml").write_text(yaml.safe_dump(waived))
    _next(repository)
    assert service(repository, False).returncode == 0


@SERVICES
def test_what_is_not_decided_is_a_warning(service: Service, repository: Repository, drives: Path) -> None:
    done = service(Repository(repository.path, drives / "short"), False)
    if service is on_github:
        assert done.returncode == 0
        assert "::warning::" in done.stdout
    else:
        assert done.returncode == GITLAB[".mt"]["allow_failure"]["exit_codes"] == 3


@SERVICES
def test_what_main_had_decided_and_is_not_any_more_is_red(
    service: Service, repository: Repository, drives: Path
) -> None:
    assert service(repository, True).returncode == 0
    _next(repository)
    done = service(Repository(repository.path, drives / "short"), False)
    assert done.returncode == (3 if service is on_github else 1)
    assert "no longer decided: noise_outside_roi_10 (PASS before, INCONCLUSIVE after)" in done.stdout
    assert (repository.path / "main_results/summary.json").is_file()


@SERVICES
def test_a_run_that_went_wrong_is_red(service: Service, repository: Repository) -> None:
    (repository.path / "stack.yaml").write_text("callable: nowhere:detect\n")
    assert service(repository, False).returncode == 2


def _next(repository: Repository) -> None:
    """A checkout of another run has no results yet."""
    subprocess.run(["rm", "-r", str(repository.path / "results")], check=True)
