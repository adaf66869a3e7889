# SPDX-License-Identifier: Apache-2.0
"""What is asked of ``mt bisect`` and of ``mt bisect step``."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.errors import UsageError
from mt_nodes.base.params import param
from mt_nodes.base.plain_data import PlainData

if TYPE_CHECKING:
    from mt_nodes.runs.bisect.bisection import Certainty


@dataclass(frozen=True)
class CaseOptions(PlainData):
    """What both forms of the command take: which case is played how, and how sure a decision is to be."""

    failures: str = param("", help="results directory of a run with violated pairs")
    pair: str = param(
        "", help="violated pair to play, such as 0/17/identity/0 (default: the one that fails most often)"
    )
    stack: str = param("", help="shipped stack, or .yaml file (default: that of the run)")
    stack_settings: Mapping[str, Any] = param({}, help="override a setting of the stack file")
    transport: str = param("", help="ros or inprocess (default: that of the run)")
    bag: str = param("", help="path of the pair's bag, where it has moved")
    warm: bool = param(False, help="let a stateless stack go on between plays: quicker, but less independent")
    error: float = param(0.01, help="probability that the answer is wrong")
    good_rate: float = param(
        0.0, help="a good version fails in at most this share of plays (default: a tenth of the bad)"
    )
    bad_rate: float = param(0.0, help="a bad version fails in at least this share of plays (default: measured)")
    plays: int = param(500, low=1, help="play at most N times in a version; undecided, it is skipped")
    plugins: tuple[str, ...] = param((), help="directory with your own plugins")

    @property
    def certainty(self) -> Certainty:
        """How sure a decision is to be. Raises UsageError: the numbers do not fit."""
        from mt_nodes.runs.bisect.bisection import Certainty  # the command line is declared without it

        return Certainty(self.error, self.good_rate, self.bad_rate, self.plays).checked()

    def located(self) -> CaseOptions:
        """Return it with absolute paths. Raises UsageError: there are no results."""
        if not self.failures:
            raise UsageError("--failures: got none, expected the results directory of a run with violated pairs")
        stack = str(Path(self.stack).resolve()) if Path(self.stack).is_file() else self.stack
        return dataclasses.replace(self, failures=str(Path(self.failures).resolve()), stack=stack)


@dataclass(frozen=True)
class BisectRequest(CaseOptions):
    """What was asked of ``mt bisect``; see its help."""

    good: str = param("", help="a version that holds: a commit, or one of --values (default: the first)")
    bad: str = param("", help="a version that fails (default: HEAD, or the last of --values)")
    repo: str = param("", help="git repository of the stack (default: that of the working directory)")
    values: tuple[str, ...] = param((), help="values of {version} in the stack file, @FILE, or a pattern of files")
    build: str = param("", help="shell command that builds a commit, in its directory; where it fails, it is skipped")
    build_minutes: float = param(60.0, help="limit of --build")
    first_parent: bool = param(False, help="follow the first parent of merges only")
    cases: int = param(5, low=1, help="choose among at most N violated pairs")

    def located(self) -> BisectRequest:
        """Return it with absolute paths, SHA-1s of commits, and all values.

        Raises UsageError: there is no such repository, commit or value, or good is no ancestor of bad.
        """
        from mt_nodes.runs.bisect.stack_versions import commit_of, git, refuse_unrelated, values_of

        request = super().located()
        assert isinstance(request, BisectRequest)
        if self.values:
            if self.repo or self.build or self.first_parent:
                raise UsageError("--values: goes without --repo, --build and --first-parent")
            return dataclasses.replace(request, values=values_of(self.values))
        if not self.good:
            raise UsageError("--good: got none, expected a commit that holds; or give --values")
        repo = Path(git(Path(self.repo or "."), "rev-parse", "--show-toplevel").strip())
        good, bad = commit_of(repo, self.good, "--good"), commit_of(repo, self.bad or "HEAD", "--bad")
        refuse_unrelated(repo, good, bad)
        return dataclasses.replace(request, repo=str(repo), good=good, bad=bad)
