# SPDX-License-Identifier: Apache-2.0
"""How a relation ended and what is known of a violated pair, for Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

from mt_nodes.api.verdict_places import AnyPlace, with_places
from mt_nodes.base.errors import ExitCode
from mt_nodes.data.verdict import Pair, RelationOutcome
from mt_nodes.engine.recorded_pair import command
from mt_nodes.engine.summary.outcomes import PairTally
from mt_nodes.engine.summary.undecided_reasons import why_never_decided
from mt_nodes.engine.summary.verdict_rows import PairRow

#: Text of the error when somebody asks for a truth value: what, and what to compare.
NO_TRUTH = (
    "a {} is neither true nor false: FAIL, INCONCLUSIVE, UNSTABLE and errors would all look alike; compare its "
    "outcome, {}"
)


@dataclass(frozen=True)
class RelationVerdict:
    """How one relation ended over all its pairs.

    Attributes:
        relation: its id.
        outcome: PASS, FAIL, INCONCLUSIVE or UNSTABLE.
        why: the reason, for people.
        kind: ``necessary`` or ``expected``.
        decided, violated: numbers of pairs.
        rate: share of violated pairs, None if none was decided.
        ci95, ci95_method: its 95 % interval, and how it was computed.
        lost, gained: objects over all decided pairs.
        control, sham: decided and violated pairs of the background.
        p_adjusted: of the test against the background, adjusted for the relations of the run.
        waived: whether its FAIL is accepted by a waiver.
        because: the relation's justification.
    """

    relation: str
    outcome: RelationOutcome
    why: str
    kind: str
    decided: int
    violated: int
    rate: float | None
    ci95: tuple[float, float] | None
    ci95_method: str | None
    lost: int
    gained: int
    control: PairTally
    sham: PairTally
    p_adjusted: float | None
    waived: bool
    because: str

    @classmethod
    def of(cls, relation: str, plain: Mapping[str, Any]) -> RelationVerdict:
        """Read a relation of ``summary.json``."""
        why = "; ".join(filter(None, (plain["why"], why_never_decided(plain))))
        names = ("kind", "decided", "violated", "rate", "ci95_method", "lost", "gained", "p_adjusted", "because")
        values: dict[str, Any] = {name: plain[name] for name in names}
        ci95 = None if plain["ci95"] is None else (float(plain["ci95"][0]), float(plain["ci95"][1]))
        values |= {arm: PairTally(plain[arm]["decided"], plain[arm]["violated"]) for arm in ("control", "sham")}
        outcome, waived = RelationOutcome(plain["outcome"]), bool(plain.get("waived"))
        return cls(relation=relation, outcome=outcome, why=why, waived=waived, ci95=ci95, **values)

    def __bool__(self) -> NoReturn:
        raise TypeError(NO_TRUTH.format("RelationVerdict", 'such as verdict.outcome == "PASS"'))

    def __str__(self) -> str:
        interval = "" if self.ci95 is None else f" ({100 * self.ci95[0]:.1f} to {100 * self.ci95[1]:.1f} %)"
        tested = f"{self.violated} of {self.decided} pairs violated{interval}, {self.lost} lost, {self.gained} gained"
        arms = f"control {self.control.violated}/{self.control.decided}, sham {self.sham.violated}/{self.sham.decided}"
        waived = " (waived)" if self.waived else ""
        return f"{self.relation}: {self.outcome.value}{waived}: {self.why}; {tested}; {arms}"


@dataclass(frozen=True, eq=False)
class ViolatedPair:
    """One violated pair.

    Attributes:
        directory: results directory of its run.
        row: all that the tables have of it.
        lost, gained: objects that only the source or only the follow-up shows, as far as the check names places.
    """

    directory: Path
    row: PairRow
    lost: tuple[AnyPlace, ...] = ()
    gained: tuple[AnyPlace, ...] = ()

    @property
    def pair(self) -> str:
        """Its id, ``episode/bundle/relation/draw``, for `mt show`, `mt reproduce` and `mt shrink`."""
        return self.row.pair

    @property
    def frame(self) -> int | None:
        """Number of its frame in the bag, from 0; None if the whole drive was judged."""
        return self.row.bundle

    @property
    def reproduce_command(self) -> str:
        """Command that makes its follow-up again, bit for bit, and judges it again."""
        return command(self.directory, Pair.parse(self.row.pair))

    def picture_svg(self) -> str | None:
        """Return its picture, source beside follow-up, as an SVG; None if nothing of it can be drawn."""
        from mt_nodes.report.pair_picture import pair_svg

        return pair_svg(self.directory, Pair.parse(self.row.pair))

    @property
    def picture(self) -> Path | None:
        """File of its picture, which is drawn at the first call; None if nothing of it can be drawn."""
        path = (self.directory / "evidence" / f"{self.row.pair.replace('/', '_')}.svg").resolve()
        if not path.exists():
            if (svg := self.picture_svg()) is None:
                return None
            path.write_text(svg, encoding="utf-8")
        return path

    def __str__(self) -> str:
        where = "the whole drive" if self.frame is None else f"frame {self.frame}"
        return f"{where}: {with_places(self.row.reason, self.lost, self.gained)}"


class RunOutcome(Protocol):
    """What a text about a finished run is made from."""

    @property
    def directory(self) -> Path:
        """Results directory."""

    @property
    def summary(self) -> Mapping[str, Any]:
        """Contents of ``summary.json``."""

    @property
    def exit_code(self) -> ExitCode:
        """Exit code of the command line for this run."""

    @property
    def outcome(self) -> str:
        """Outcome of the whole run."""

    @property
    def why(self) -> str:
        """The reason for it."""

    @property
    def verdicts(self) -> dict[str, RelationVerdict]:
        """How each relation ended."""

    @property
    def worst(self) -> ViolatedPair | None:
        """The worst violated pair."""

    @property
    def report_path(self) -> Path | None:
        """The report."""
