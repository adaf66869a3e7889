# SPDX-License-Identifier: Apache-2.0
"""``mt experiment NAME``: published experiments."""

from __future__ import annotations

import argparse

from mt_nodes.cli.options import add_verbs, run_verb

VERBS = {
    "noise-outside-roi": (
        "noise_experiment",
        "Zhou & Sun, CACM 2019: noise outside the region must not hide an obstacle inside",
    ),
    "moral": ("moral", "Tang et al., 2025: whom a stack hits in unavoidable collisions, judged by moral principles"),
    "moral-search": (
        "moral_search",
        "what a search of dilemmas finds, by principle, mutation operator and guidance, over several seeds",
    ),
    "moral-levels": (
        "moral_levels",
        "the same dilemmas with true objects, a LiDAR and a camera: which module chose, perception or planning",
    ),
    "automt": ("automt", "Liang et al., 2025: how often follow-ups from traffic rules are valid, and are violated"),
    "routes": ("route_experiment", "Brown, Zhou & Chow, 2018: routes of related questions must agree in length"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line of every experiment."""
    add_verbs(parser, VERBS, "NAME")


def run(args: argparse.Namespace) -> int:
    """Run the experiment and return its exit code."""
    return run_verb(args, VERBS)
