# SPDX-License-Identifier: Apache-2.0
"""Verifies a bundle of evidence off line, from its files alone: bytes, signatures, plan, and its journals, counted."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mt_nodes.base.dsse import SignedStatement, key_id, public_key
from mt_nodes.base.errors import ExitCode, MtError
from mt_nodes.base.plain_data import PlainData
from mt_nodes.base.wording import counted
from mt_nodes.engine.plan import PLAN_FILE
from mt_nodes.runs.again.verification import damage
from mt_nodes.runs.safety_case.assessment import RUNS, assess, places
from mt_nodes.runs.safety_case.bundle import ATTESTATION, BAGS, BUNDLE_TYPE, KEY, REQUIREMENTS, WITNESS, digests, pages
from mt_nodes.runs.safety_case.preregistration import Preregistration, sha256_of_bags, sha256_of_code
from mt_nodes.runs.safety_case.requirements import read_requirements
from mt_nodes.runs.safety_case.witness import witnessed_time

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

#: What a bundle does not show whose signer is not known.
_WHO = (
    "who signed: that nothing was changed since is shown, and anybody could have made another bundle with another key; "
    "give the signer's with --key"
)
#: Changed files that are named.
_NAMED = 5


@dataclass(frozen=True)
class BundleCheck(PlainData):
    """One check: what was found; ``wrong``: why it is not to be trusted; ``unproved``: what it does not show."""

    what: str
    found: str = ""
    wrong: tuple[str, ...] = ()
    unproved: str = ""


@dataclass(frozen=True)
class Trusted:
    """What a verifier trusts: the signer's key, keys of witnesses, root certificates of time stamp authorities."""

    key: Path | None = None
    witnesses: Sequence[Path] = ()
    roots: Sequence[Path] = ()


@dataclass
class BundleVerification:
    """Goes through the checks of a bundle.

    Attributes:
        bundle: its directory. trusted: keys. day: by which waivers expire.
        found: what it comes to on that day, once that was counted.
        checks: those that were made.
    """

    bundle: Path
    trusted: Trusted
    day: datetime.date
    found: Mapping[str, Any] = field(default_factory=dict)
    checks: list[BundleCheck] = field(default_factory=list)

    def run(self) -> Iterator[BundleCheck]:
        """Yield each check; those after the files and signatures are made of files that may be anybody's."""
        for what, check in (
            ("files", self._files),
            ("signature", self._signature),
            ("plan", self._plan),
            ("order", self._order),
            ("checksums", self._checksums),
            ("results", self._results),
        ):
            made = _guarded(what, check)
            self.checks.append(made)
            yield made

    def exit_code(self) -> ExitCode:
        """Return 1 for whatever is wrong, then what the results come to, then 3 where the signer is not known."""
        if any(check.wrong for check in self.checks):
            return ExitCode.FAIL
        code = ExitCode(self.found["exit_code"])
        unknown_signer = self.trusted.key is None
        return ExitCode.UNDECIDED if code is ExitCode.PASS and unknown_signer else code

    def exit_why(self) -> str:
        """Say why that is the exit code."""
        if wrong := [check.what for check in self.checks if check.wrong]:
            return f"the bundle is not as it was signed, or is not what it says: {', '.join(wrong)}"
        why = str(self.found["exit_why"])
        unknown = self.trusted.key is None and self.found["exit_code"] == ExitCode.PASS
        return f"{why}, but by whom is not known: give the signer's key with --key" if unknown else why

    @property
    def statement(self) -> SignedStatement:
        """The signed statement. Raises UsageError: there is none, or it was edited."""
        return SignedStatement.load(self.bundle / ATTESTATION)

    @property
    def about(self) -> dict[str, Any]:
        """What the statement says of the bundle."""
        return self.statement.predicate(BUNDLE_TYPE, str(self.bundle / ATTESTATION))

    def _files(self) -> BundleCheck:
        signed, there = self.statement.subjects, digests(self.bundle)
        wrong = [f"{name}: is not there" for name in sorted(signed.keys() - there.keys())]
        wrong += [f"{name}: was added after the bundle was signed" for name in sorted(there.keys() - signed.keys())]
        wrong += [f"{name}: was changed" for name in sorted(signed) if name in there and signed[name] != there[name]]
        left = [f"and {len(wrong) - _NAMED} more"] if len(wrong) > _NAMED else []
        return BundleCheck("files", f"{counted(len(there), 'file')} as signed", (*wrong[:_NAMED], *left))

    def _signature(self) -> BundleCheck:
        statement, given = self.statement, self.trusted.key
        key = public_key(given or self.bundle / KEY)
        others = [name for name, _ in statement.signatures if name != key_id(key)]
        if not statement.signed_by(key) or others:
            by = ", ".join(f"{name[:12]}…" for name in others) or "nobody else"
            return BundleCheck("signature", wrong=(f"not signed by this key alone; signed by {by}",))
        if given is None:
            return BundleCheck("signature", f"by the key in the bundle, {key_id(key)[:12]}…", unproved=_WHO)
        return BundleCheck("signature", f"by {given}, {key_id(key)[:12]}…")

    def _plan(self) -> BundleCheck:
        plan, key = Preregistration.load(self.bundle / PLAN_FILE), public_key(self.trusted.key or self.bundle / KEY)
        wrong = [] if plan.envelope.signed_by(key) else ["the plan is not signed by the key of the bundle"]
        if self.about.get("plan") != plan.sha256:
            wrong.append("the bundle was signed with another plan")
        wrong += [f"not signed by the witness {path}" for path in self._missing_witnesses(plan)]
        more, unproved = self._requirements(plan)
        found = f"{plan.sha256[:12]}…, seed {plan.content['seed']} is its own digest"
        return BundleCheck("plan", found, (*wrong, *more), unproved)

    def _requirements(self, plan: Preregistration) -> tuple[list[str], str]:
        """Compare the requirements of the plan with their file; return what is wrong, and what is not shown."""
        paths = sorted(self.bundle.glob(f"{REQUIREMENTS}.*"))
        if not paths:
            return [], "that the plan has all requirements: their file is not in the bundle"
        keys = ("id", "text", "hazard", "max_rate")
        written = [[getattr(one, key) for key in keys] for one in read_requirements(paths[0])]
        known = digests(self.bundle)[paths[0].name] in plan.envelope.subjects.values()
        wrong = [] if known else [f"{paths[0].name}: is not the file of which the plan was made"]
        if written != [[row[key] for key in keys] for row in plan.content["requirements"]]:
            wrong.append(f"{paths[0].name}: has other requirements than the plan")
        return wrong, ""

    def _missing_witnesses(self, plan: Preregistration) -> list[Path]:
        return [path for path in self.trusted.witnesses if not plan.envelope.signed_by(public_key(path))]

    def _order(self) -> BundleCheck:
        """Tell what shows that the plan was there before the data."""
        plan = Preregistration.load(self.bundle / PLAN_FILE)
        tokens = sorted((self.bundle / WITNESS).glob("*"))
        times = [witnessed_time(token, self.trusted.roots, plan.sha256) for token in tokens if self.trusted.roots]
        signers = _ids(self.trusted.witnesses)
        unknown = [name for name, _ in plan.envelope.signatures if name not in {*signers, key_id(self._key())}]
        facts = [f"signed by the witness {name[:12]}…" for name in signers]
        facts += [f"seen by a time stamp authority at {at.isoformat(timespec='seconds')}" for at in times]
        since = [run["recorded_from"] for run in self._assessed()["runs"] if run["recorded_from"]]
        if times and since:
            before = min(times) < _time(min(since))
            facts.append(f"the drives bear stamps {'after' if before else 'before'} that, from {min(since)} on")
        begun = [run["started"] for run in self._assessed()["runs"] if run["started"]]
        early = bool(times and begun) and _time(min(begun)) < min(times)
        seen = f", before an authority saw the plan at {min(times).isoformat(timespec='seconds')}" if early else ""
        wrong = [f"a run began at {min(begun)}{seen}"] if early else []
        if self.trusted.roots and not tokens:
            wrong.append("the bundle has no time stamp for --tsa-root to check")
        said = "; ".join(facts) or "as the signer says"
        return BundleCheck("order", said, tuple(wrong), _unproved(facts, tokens, unknown))

    def _key(self) -> Ed25519PublicKey:
        return public_key(self.trusted.key or self.bundle / KEY)

    def _assessed(self) -> Mapping[str, Any]:
        if not self.found:
            self.found = assess(self.bundle, self.day)
        return self.found

    def _checksums(self) -> BundleCheck:
        """Check what has a checksum of its own, such as lines of journals and ledgers, and drives in the bundle."""
        found = [damage(path) for path in sorted(self.bundle.rglob("*")) if path.is_file() and path.name != ATTESTATION]
        wrong = [text for text in found if text]
        for folder in sorted((self.bundle / BAGS).glob("*")):
            if sha256_of_bags([str(bag) for bag in folder.iterdir()]) != [folder.name]:
                wrong.append(f"{folder}: holds a drive with another SHA-256")
        checked = sum(text is not None for text in found)
        return BundleCheck("checksums", f"{counted(checked, 'file')} with checksums", tuple(wrong))

    def _results(self) -> BundleCheck:
        """Count everything again, and compare with what the bundle says of itself."""
        about, found = self.about, self._assessed()
        made_on = datetime.date.fromisoformat(about["day"])
        then = found if made_on == self.day else assess(self.bundle, made_on)
        wrong = []
        if (about["exit_code"], about["exit_why"]) != (then["exit_code"], then["exit_why"]):
            wrong.append(f"the bundle says: {about['exit_why']}; counted again: {then['exit_why']}")
        same_code = about["code"]["sha256"] == sha256_of_code()
        if same_code:
            made = {name: text for name, text in pages(then).items() if _read(self.bundle / name) != text}
            wrong += [f"{name}: is not what the journals come to" for name in made]
        note = "" if same_code else f"made by mt_nodes {about['code']['version']}; its pages are not compared"
        runs = counted(len(places(self.bundle / RUNS)), "run")
        pairs = sum(run["offered"] for run in found["runs"])
        return BundleCheck("results", f"{pairs} verdicts of {runs} counted again", tuple(wrong), note)


def _guarded(what: str, check: Callable[[], BundleCheck]) -> BundleCheck:
    try:
        return check()
    except MtError as error:
        return BundleCheck(what, wrong=(str(error),))
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, OSError) as error:
        # A bundle is anybody's: what is not of the form that this version writes is refused, whatever it is.
        return BundleCheck(what, wrong=(f"not of the form that a bundle has: {type(error).__name__}: {error}",))


def _ids(keys: Sequence[Path]) -> list[str]:
    return [key_id(public_key(path)) for path in keys]


def _time(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _unproved(facts: Sequence[str], tokens: Sequence[Path], unknown: Sequence[str]) -> str:
    """Say what does not show that the plan came before the data."""
    if facts:
        return "that no other plan was made, and no run left out, is the signer's word"
    more = f"; {counted(len(tokens), 'time stamp')} in it: give the authority's root with --tsa-root" if tokens else ""
    if unknown:
        more += f"; {counted(len(unknown), 'more signature')} on the plan: give the witness's key with --witness"
    return f"that the plan came before the data is the signer's word: no witness was checked{more}"
