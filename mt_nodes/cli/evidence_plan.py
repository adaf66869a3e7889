# SPDX-License-Identifier: Apache-2.0
"""``mt evidence plan`` and ``mt evidence countersign``."""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from mt_nodes.base.errors import ExitCode, UsageError
from mt_nodes.cli.arguments import role_topics
from mt_nodes.cli.options import add_fields, at_least_one, request_of, settings
from mt_nodes.engine.plan import ReplayRequest

if TYPE_CHECKING:
    from mt_nodes.runs.safety_case.preregistration import Preregistration


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    request = ReplayRequest(bags=())
    parser.epilog = (
        "example: mt evidence plan requirements.yaml my_bag --stack my_stack.yaml --key key.pem -o plan.json"
    )
    add = parser.add_argument
    add("requirements", type=Path, metavar="REQUIREMENTS", help="requirements as .yaml, .csv or .reqif")
    add_fields(parser, request, "bags", bags={"help": "drives that will be tested, where they are recorded already"})
    add("--drives", type=at_least_one, metavar="N", help="number of drives that will be tested, where they are not")
    linked = "relations whose own file names the requirements that they test"
    add_fields(parser, request, "relations", relations={"default": (), "help": linked})
    add_fields(parser, request, "stack", "stack_settings", "mode", "pace", "rate", "transport", "limit")
    add_fields(parser, request, "faults", "topics", "qos", "draws", "transforms")
    add("--stack-version", default="", metavar="TEXT", help="version of the stack under test, such as its commit")
    add("--key", type=Path, required=True, metavar="FILE", help="your private Ed25519 key, a PEM file")
    add("-o", "--out", type=Path, default=Path("plan.json"), metavar="FILE", help="the plan (default plan.json)")


def run_plan(args: argparse.Namespace) -> int:
    """Write a signed plan."""
    from mt_nodes.base.directories import cannot_write, write_whole
    from mt_nodes.base.dsse import SignedStatement, private_key
    from mt_nodes.runs.safety_case.planning import planned
    from mt_nodes.runs.safety_case.preregistration import PLAN_TYPE, Preregistration
    from mt_nodes.runs.safety_case.requirements import read_requirements

    if args.out.exists():
        raise UsageError(f"{args.out}: is there already; a plan is never changed, choose another name with -o")
    if bool(args.bags) == bool(args.drives):
        got = "both" if args.bags else "neither"
        raise UsageError(f"got {got} of the drives and --drives N; expected the drives, or how many will be recorded")
    key, requirements = private_key(args.key), read_requirements(args.requirements)
    topics, stack_settings = role_topics(args.topics), settings(args.stack_settings)
    request = request_of(ReplayRequest, args, topics=topics, stack_settings=stack_settings)
    content = planned(requirements, request, args.drives, args.stack_version)
    subjects = {args.requirements.name: hashlib.sha256(args.requirements.read_bytes()).hexdigest()}
    statement = SignedStatement.of(PLAN_TYPE, content, subjects).signed(key)
    try:
        write_whole(args.out, statement.text)
    except OSError as error:
        raise cannot_write(args.out, error) from error
    _print(Preregistration.load(args.out), args.out)
    return int(ExitCode.PASS)


def _print(plan: Preregistration, path: Path) -> None:
    from mt_nodes.cli.terminal import table, text

    rows = [
        (row["id"], ", ".join(row["relations"]) or "none: a gap", f"{100 * row['max_rate']:g} %", str(row["frames"]))
        for row in plan.content["requirements"]
    ]
    table(("requirement", "relations", "accepted", "frames"), rows)
    text(f"{path}: signed; SHA-256 {plan.sha256}")
    text("to have its time witnessed, before any run, send a time stamp authority what this writes:")
    text(f"  openssl ts -query -sha256 -digest {plan.sha256} -cert -out plan.tsq")
    bags = "" if plan.content["drives"]["sha256"] else " (once they are recorded)"
    text(f"then test with all drives{bags}: mt replay BAG… --plan {path}")


def add_countersign_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line."""
    parser.epilog = "example: mt evidence countersign plan.json --key witness.pem"
    parser.add_argument("plan", type=Path, metavar="PLAN", help="a signed plan")
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="the witness's private Ed25519 key")


def run_countersign(args: argparse.Namespace) -> int:
    """Add a signature to a plan; its SHA-256 stays."""
    from mt_nodes.base.directories import write_whole
    from mt_nodes.base.dsse import key_id, private_key
    from mt_nodes.cli.terminal import text
    from mt_nodes.runs.safety_case.preregistration import Preregistration

    plan, key = Preregistration.load(args.plan), private_key(args.key)
    write_whole(args.plan, plan.envelope.signed(key).text)
    text(f"{args.plan}: signed by {key_id(key.public_key())[:12]}…, too; SHA-256 {plan.sha256} as before")
    return int(ExitCode.PASS)
