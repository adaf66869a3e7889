# SPDX-License-Identifier: Apache-2.0
"""Why a result is no PASS, for a failed test: which relation, what was lost where, the picture, what to type."""

from __future__ import annotations

from collections.abc import Iterator

from mt_nodes.api.verdicts import RelationVerdict, RunOutcome
from mt_nodes.base.errors import ExitCode
from mt_nodes.data.verdict import RelationOutcome


def failure_text(result: RunOutcome) -> str:
    """Return why a result is no PASS; empty if it is one."""
    failed = [verdict for verdict in result.verdicts.values() if not _passed(verdict)]
    if result.exit_code is ExitCode.PASS and result.verdicts and not failed:
        return ""
    return "\n".join(_lines(result, failed))


def _passed(verdict: RelationVerdict) -> bool:
    return verdict.decided > 0 and (verdict.outcome is RelationOutcome.PASS or verdict.waived)


def _lines(result: RunOutcome, failed: list[RelationVerdict]) -> Iterator[str]:
    yield f"{result.outcome} (exit code {int(result.exit_code)}): {result.why}"
    for verdict in failed:
        yield f"  {verdict}"
    if not result.verdicts:
        yield "  no relation was judged"
    if failed and (worst := result.worst) is not None:
        yield f"  worst pair: {worst}"
        if picture := worst.picture:
            yield f"  picture: {picture}"
        yield f"  reproduce: {worst.reproduce_command}"
    yield f"  {'report' if result.report_path else 'results'}: {result.report_path or result.directory.resolve()}"
