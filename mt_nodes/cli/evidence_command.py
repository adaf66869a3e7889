# SPDX-License-Identifier: Apache-2.0
"""``mt evidence``: the case for safety, from requirements to a bundle that others verify off line."""

from __future__ import annotations

import argparse

from mt_nodes.cli.options import Verbs, add_verbs, run_verb

VERBS: Verbs = {
    "plan": ("evidence_plan", "sign a plan before the data are seen"),
    "countersign": ("evidence_plan", "sign somebody else's plan as a witness"),
    "make": ("evidence_bundle", "make a signed bundle of a plan and its runs"),
    "verify": ("evidence_bundle", "verify a bundle off line, and reproduce a pair of it"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command lines of the verbs."""
    add_verbs(parser, VERBS, "VERB")


def run(args: argparse.Namespace) -> int:
    """Carry out the verb."""
    return run_verb(args, VERBS)
