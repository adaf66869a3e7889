# SPDX-License-Identifier: Apache-2.0
"""The arguments of the launch files, made of the parameters that they stand for."""

from __future__ import annotations

import dataclasses

from mt_nodes.api.demo_drive import SEED
from mt_nodes.base.params import spec_of
from mt_nodes.cli.arguments import Argument, replay_arguments
from mt_nodes.nodes.mutator import MutatorParameters
from mt_nodes.nodes.simulator import SimulatorParameters

OUT = Argument("out", "", "results directory (empty: mt_results/<time>)")
#: What other commands fill in: reproduce, shrink, campaigns, failing cases first, a signed plan.
OURS = ("plan", "only", "recorded", "first_episode", "report", "shrunk", "first_pairs", "only_first")
#: What every launch file of ROS 2 nodes takes; they hold for the run's own nodes and topics, not for stacks.
ROS_ARGUMENTS = (
    Argument("namespace", "", "ROS namespace of the run's own nodes and topics"),
    Argument("use_sim_time", "false", "true: the run's own nodes take the time from /clock"),
    Argument("remap", "", "remappings FROM:=TO of the run's own topics; several with blanks between them"),
    Argument("log_level", "info", "debug, info, warn, error or fatal"),
)
PARAMS_FILE = Argument(
    "params_file", "", "YAML file of ROS parameters; what an argument or a file above sets goes first"
)
#: The suite goes over topics; without them there is nothing to launch (`mt replay --transport inprocess`).
REPLAY_ARGUMENTS = (*replay_arguments(leave_out=("transport", *OURS)), OUT, *ROS_ARGUMENTS)
LIVE_ARGUMENTS = (
    Argument("config", None, "YAML file of the run, as for `mt live --config`"),
    Argument("set", "", "KEY=VALUE in place of what the file says; several with blanks between them"),
    OUT,
    *ROS_ARGUMENTS,
)
INLINE_ARGUMENTS = (
    Argument("config", None, "YAML file of the run, as for `mt inline --config`"),
    Argument("arm", "false", "true: input may be changed while every permit and the switch hold, as with `--arm`"),
    Argument("duration", "0", "end after so many seconds (0: when told to)"),
    OUT,
)
#: Its mutator and its relays end one after the other.
INLINE_STOP_S = 30.0
DEMO_ARGUMENTS = (Argument("seed", str(SEED), "of the drive and of every draw"), OUT)
DEMO_STOP_S = 60.0
#: What the nodes that run alone can do.
NODE_FIELDS = ("bags", "relations", "stack", "limit", "seed", "faults", "topics", "transforms", "rate")


def _node_arguments() -> tuple[Argument, ...]:
    arguments = (a for a in replay_arguments() if a.field in NODE_FIELDS)
    relation = MutatorParameters.relation
    one = (dataclasses.replace(a, default=relation) if a.field == "relations" else a for a in arguments)
    domain = Argument("domain", "", "ROS domain of the source arm and of /mt/verdicts (empty: a free one)")
    return (*one, domain, *ROS_ARGUMENTS, PARAMS_FILE)


NODE_ARGUMENTS = _node_arguments()


def _simulator_arguments() -> tuple[Argument, ...]:
    fields = (f for f in dataclasses.fields(SimulatorParameters) if f.name not in ("autostart", "transforms"))
    own = (Argument(f.name, str(f.default) if f.default != "" else None, spec_of(f).help) for f in fields)
    return (*own, *ROS_ARGUMENTS, PARAMS_FILE)


SIMULATOR_ARGUMENTS = _simulator_arguments()
SIMULATOR_STOP_S = 10.0
