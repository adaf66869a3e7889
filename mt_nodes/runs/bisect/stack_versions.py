# SPDX-License-Identifier: Apache-2.0
"""Versions of a stack: commits of its repository, or values of the placeholder ``{version}``."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from mt_nodes.base import resources
from mt_nodes.base.directories import natural_order
from mt_nodes.base.environment import user_environment
from mt_nodes.base.errors import UsageError
from mt_nodes.base.processes import Child, Process, how_it_ended, uninterrupted, wait_until
from mt_nodes.base.yaml_files import read_mapping, read_text
from mt_nodes.runs.bisect.bisection import CannotTest
from mt_nodes.runs.bisect.version_search import VersionGraph

#: In a stack file and in ``--set``: which version is tested, and where its files are.
VERSION, REPO = "{version}", "{repo}"
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class StackPlace:
    """Where a version of the stack is: its file, what overrides it, and the directory in which it is started."""

    stack: str
    settings: Mapping[str, Any]
    directory: Path

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Work in the directory; modules of the directory that is left are not found any more."""
        before, path = Path.cwd(), list(sys.path)
        os.chdir(self.directory)
        if before not in (self.directory, _ROOT):
            sys.path[:] = [part for part in path if (before / part).resolve() != before]
        try:
            yield
        finally:
            os.chdir(before)
            sys.path[:] = path


class StackVersions(Protocol):
    """The versions between a good and a bad one."""

    @property
    def good(self) -> str:
        """The good version."""

    @property
    def graph(self) -> VersionGraph:
        """The versions after it, the bad one last."""

    def about(self, version: str) -> dict[str, str]:
        """Say of a version what people know it by: ``title``, of a commit also author and date."""

    def opened(self, version: str) -> StackPlace:
        """Make a version ready to be started. Raises CannotTest: it does not build, or has no stack file."""

    def close(self) -> None:
        """Remove what was made for the versions that were opened."""


def filled(value: Any, words: Mapping[str, str]) -> Any:
    """Return a value of a YAML file with placeholders filled in, also where YAML reads one as a mapping."""
    if isinstance(value, Mapping):
        if len(value) == 1 and next(iter(value.values())) is None and (name := f"{{{next(iter(value))}}}") in words:
            return words[name]
        return {key: filled(part, words) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [filled(part, words) for part in value]
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(name, word)
    return value


def _settings(stack: str, given: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """Return what overrides a stack file: ``given``, and those of its keys that have a placeholder; all filled in."""
    python = Path(stack.partition(":")[0]).suffix == ".py"
    rows = {} if python else read_mapping(resources.find("stacks", stack))
    changed = {key: full for key, value in rows.items() if (full := filled(value, words)) != value}
    return {**changed, **{key: filled(value, words) for key, value in given.items()}}


class ValueVersions:
    """Values of ``{version}`` in a stack file or its settings, older ones first: tags, parameters, checkpoints."""

    def __init__(self, values: Sequence[str], good: str, bad: str, stack: str, settings: Mapping[str, Any]) -> None:
        """Take in the values in their order.

        Raises UsageError: good does not come before bad, or a value comes twice; or nothing has the placeholder.
        """
        if twice := sorted({value for value in values if values.count(value) > 1}):
            raise UsageError(f"--values: got {', '.join(twice)} twice, expected each value once")
        places = []
        for name, value in (("--good", good or values[0]), ("--bad", bad or values[-1])):
            if value not in values:
                raise UsageError(f"{name}: got '{value}', expected one of --values: {', '.join(values)}")
            places.append(values.index(value))
        first, last = places
        if first >= last:
            raise UsageError(
                f"--values: good is {values[first]}, bad is {values[last]}; expected good to come before bad"
            )
        probe = {VERSION: "\0"}
        if _settings(stack, settings, probe) == _settings(stack, settings, {}):
            raise UsageError(f"{stack}: expected {VERSION} in it or in --set, such as --set params.weights={VERSION}")
        self.good, self.graph = values[first], VersionGraph.in_a_row(values[first + 1 : last + 1])
        self._stack, self._given = stack, settings

    def about(self, version: str) -> dict[str, str]:
        """Return the value."""
        return {"title": version}

    def opened(self, version: str) -> StackPlace:
        """Return the stack with the value filled in."""
        return StackPlace(self._stack, _settings(self._stack, self._given, {VERSION: version}), Path.cwd())

    def close(self) -> None:
        """Nothing was made."""


def values_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the values that words name: themselves, lines of ``@FILE``, or files of a pattern in natural order.

    Raises UsageError: there are fewer than two.
    """
    values: list[str] = []
    for word in words:
        if word.startswith("@"):
            values += [line.strip() for line in read_text(Path(word[1:])).splitlines() if line.strip()]
        elif any(sign in word for sign in "*?["):
            values += sorted(glob.glob(word), key=natural_order)  # noqa: PTH207  pathlib knows no absolute patterns
        else:
            values.append(word)
    if len(values) < 2:
        raise UsageError(f"--values: got {len(values)} ({', '.join(values)}), expected two or more")
    return tuple(values)


@dataclass(eq=False)
class GitVersions:
    """Commits between two, each in a new worktree, so that nobody's checkout changes and nothing old is left over.

    Attributes:
        repo: top directory of the repository. good, bad: SHA-1 of commits; good is an ancestor of bad.
        stack: stack file; one inside the repository is that of each version.
        settings: override it. build: command of the shell that builds a version, empty: none is needed.
        build_minutes: limit of that. first_parent: whether only the first parent of a merge is followed.
        place: directory for worktrees and logs.
    """

    repo: Path
    good: str
    bad: str
    stack: str
    settings: Mapping[str, Any]
    place: Path
    build: str = ""
    build_minutes: float = 60.0
    first_parent: bool = False
    _places: dict[str, StackPlace | CannotTest] = field(default_factory=dict)

    @cached_property
    def graph(self) -> VersionGraph:
        """The commits that descend from good or are beside it, and are in bad. Raises UsageError: there is none."""
        more = ("--first-parent",) if self.first_parent else ()
        lines = git(self.repo, "rev-list", "--topo-order", "--reverse", "--parents", *more, self.bad, f"^{self.good}")
        rows = [line.split() for line in lines.splitlines()]
        known = {commit for commit, *_ in rows}
        parents = {commit: of[:1] if self.first_parent else of for commit, *of in rows}
        return VersionGraph({commit: [p for p in of if p in known] for commit, of in parents.items()})

    def about(self, version: str) -> dict[str, str]:
        """Return subject, author and date of a commit."""
        names = ("title", "author", "date", "message")
        text = git(self.repo, "log", "-1", "--no-show-signature", "--format=%s%x00%an%x00%aI%x00%B", version)
        return dict(zip(names, (part.strip() for part in text.split("\0")), strict=True))

    def opened(self, version: str) -> StackPlace:
        """Check a commit out and build it, once."""
        if version not in self._places:
            for older in [v for v in self._places if v not in (self.good, self.bad)]:
                self._remove(older)
            try:
                self._places[version] = self._made(version)
            except CannotTest as why:
                self._places[version] = why
        place = self._places[version]
        if isinstance(place, CannotTest):
            raise place
        return place

    def _made(self, version: str) -> StackPlace:
        directory = self._directory(version)
        if directory.exists():  # of a bisection that was killed
            self._remove(version)
        directory.parent.mkdir(parents=True, exist_ok=True)
        git(
            self.repo,
            "-c",
            "core.hooksPath=/dev/null",
            "worktree",
            "add",
            "--detach",
            "--force",
            str(directory),
            version,
        )
        if self.build:
            with StackPlace("", {}, directory).entered():
                self._run_build(self.place / f"build_{version[:12]}.log")
        stack, inside = self.stack, Path(self.stack).resolve()
        if inside.is_file() and inside.is_relative_to(self.repo):
            stack = str(directory / inside.relative_to(self.repo))
            if not Path(stack).is_file():
                raise CannotTest(f"there is no {inside.relative_to(self.repo)} in this version")
        try:
            settings = _settings(stack, self.settings, {VERSION: version, REPO: str(directory)})
        except UsageError as error:  # its stack file is damaged
            raise CannotTest(str(error)) from error
        return StackPlace(stack, settings, directory)

    def _run_build(self, log: Path) -> None:
        command = Process("the build", ("/bin/sh", "-c", self.build), user_environment(os.environ), log)
        with uninterrupted():
            child = Child(command)
        try:
            in_time = wait_until(lambda: child.code is not None, 60.0 * self.build_minutes, 0.1)
            code, tail = child.code, child.tail()
        finally:
            child.stop(2.0)
        if not in_time:
            raise CannotTest(f"the build took longer than {self.build_minutes:g} minutes; {tail}")
        if code:
            raise CannotTest(f"the build {how_it_ended(code)}; {tail}")

    def _directory(self, version: str) -> Path:
        return self.place / "versions" / version[:16]

    def _remove(self, version: str) -> None:
        self._places.pop(version, None)
        with contextlib.suppress(UsageError):  # where git was killed before it knew of it
            git(self.repo, "worktree", "remove", "--force", "--force", str(self._directory(version)))
        shutil.rmtree(self._directory(version), ignore_errors=True)

    def close(self) -> None:
        """Remove all worktrees."""
        for version in list(self._places):
            self._remove(version)


def git(repo: Path, *words: str) -> str:
    """Return what git prints. Raises UsageError: it fails, or is not installed; says what it said."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        done = subprocess.run(("git", "-C", str(repo), *words), env=env, capture_output=True, check=False)
    except OSError as error:
        raise UsageError(f"git cannot be started: {error.strerror}; install it, or bisect --values") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise UsageError(f"{repo}: git {words[0]}: {said}")
    return done.stdout.decode("utf-8", "replace")


def commit_of(repo: Path, name: str, option: str) -> str:
    """Return the SHA-1 of a commit. Raises UsageError: the repository has none of that name."""
    try:
        return git(repo, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").strip()
    except UsageError as error:
        raise UsageError(f"{option}: got '{name}', expected a commit of {repo}") from error


def refuse_unrelated(repo: Path, good: str, bad: str) -> None:
    """Refuse a good commit that is no ancestor of the bad one. Raises UsageError: names their merge base."""
    try:
        git(repo, "merge-base", "--is-ancestor", good, bad)
    except UsageError:
        base = git(repo, "merge-base", good, bad).strip()
        raise UsageError(
            f"--good {good[:12]} is no ancestor of --bad {bad[:12]}: the fault may have been fixed on the way; "
            f"test whether their merge base is good, and give --good {base[:12]}"
        ) from None
