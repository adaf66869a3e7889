# SPDX-License-Identifier: Apache-2.0
"""``mt models VERB``: models that learn to drive by pictures, and those that learn to find obstacles."""

from __future__ import annotations

import argparse

from mt_nodes.cli.several import add_lines, run_line

NAMES = {
    "list": ("models_list", "List the networks, and whether there are weights for their stacks"),
    "record": ("models_record", "Drive scenarios with an expert, and keep pictures with its speed and steering"),
    "train": ("models_train", "Train a network on pictures with speed and steering"),
    "evaluate": ("models_evaluate", "Say how far a trained model is from what was driven"),
    "train-detector": ("models_train_detector", "Train a LiDAR or camera detector on made-up streets"),
    "evaluate-detector": ("models_evaluate_detector", "Say what a LiDAR or camera stack finds in made-up streets"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command line of every verb."""
    add_lines(parser, NAMES, "VERB")


def run(args: argparse.Namespace) -> int:
    """Carry out the verb that was named and return its exit code."""
    return run_line(args, NAMES)
