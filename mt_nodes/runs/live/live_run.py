# SPDX-License-Identifier: Apache-2.0
"""One run beside a live stack, checked; kept in ``run.json``."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt_nodes.base import plugins
from mt_nodes.base.directories import write_whole
from mt_nodes.base.environment import user_domain
from mt_nodes.base.errors import UsageError
from mt_nodes.base.message_packages import refuse_missing
from mt_nodes.data.transforms import TransformTree, dump_transforms, load_transforms
from mt_nodes.data.verdict import Pair
from mt_nodes.engine.compatibility import unfit
from mt_nodes.engine.judging import Offer, offers
from mt_nodes.engine.run_record import in_directory, read_record, write_record
from mt_nodes.engine.waivers import load_waivers
from mt_nodes.relations.relation import Suite, load_suite, refuse_baseline, sham_for
from mt_nodes.runs.live.config import NOT_GIVEN, LiveConfig, check_live, live_config
from mt_nodes.stacks.callables import with_faults
from mt_nodes.stacks.stack import Stack, load_stack

#: Where a running suite says which ROS domains it is in.
DOMAINS_FILE = "live.json"


@dataclass(frozen=True, eq=False)
class LiveRun:
    """Everything a live run needs, checked: what cannot run was refused while making it."""

    config: LiveConfig
    suite: Suite
    stack: Stack
    out: Path

    @classmethod
    def make(cls, config: LiveConfig, out: Path) -> LiveRun:
        """Load and check what the configuration names.

        Raises:
            UsageError: saying what to write instead.
        """
        for directory in config.plugins:
            if Path(directory).resolve() not in plugins.directories():
                plugins.add_directory(Path(directory))
        if config.live_domain == NOT_GIVEN:
            config = dataclasses.replace(config, live_domain=user_domain(os.environ))
        stack = with_faults(load_stack(config.stack), config.faults)
        check_live(config, stack)
        refuse_missing(stack.message_types, f"stack '{stack.name}'")
        suite = load_suite(config.relations, sham_for(stack.inputs))
        for relation in suite.relations:
            if reason := unfit(relation, stack):
                raise UsageError(reason)
            if config.mode == "shadow":
                refuse_baseline(relation, "mode: shadow")
        for read, name in ((load_waivers, config.waivers), (load_transforms, config.transforms)):
            if name:
                read(Path(name))
        return cls(config, suite, stack, out)

    @classmethod
    def create(cls, config: LiveConfig, out: str | None) -> LiveRun:
        """Make a run, its directory (a new one below ``mt_results`` when ``out`` is empty) and what it holds at first.

        Raises:
            UsageError: it cannot run, and nothing was written; or the directory holds another run.
            InfrastructureError: the directory cannot be written.
        """
        checked = cls.make(config, Path(out or "."))
        return in_directory(out, lambda place: dataclasses.replace(checked, out=place), cls.save)

    @classmethod
    def load(cls, out: Path) -> LiveRun:
        """Make the run that :meth:`save` described.

        Raises:
            UsageError: the directory holds none.
        """
        request = read_record(out)["request"]
        if "bags" in request:
            raise UsageError(f"{out}: holds a replay, expected a run of `mt live`")
        return cls.make(live_config(request, str(out / "run.json")), out)

    def save(self) -> None:
        """Write ``run.json``, and the stack and transforms for the processes that host it."""
        dump_transforms(self.transforms, self.out / "transforms.yaml")
        write_record(self.out, self.config, self.suite.all, self.stack, {self.config.mode: self.stack.topics})

    @property
    def transforms(self) -> TransformTree:
        """Transforms of the user's file."""
        return load_transforms(Path(self.config.transforms)) if self.config.transforms else TransformTree()

    @property
    def offers(self) -> tuple[Offer, ...]:
        """What takes turns: the control first, the sham last, the relations between in their order."""
        control, sham, *relations = offers(self.suite)
        return (control, *relations, sham)

    @property
    def only(self) -> Pair | None:
        """The one pair that is judged: a live run judges whatever comes."""
        return None

    @property
    def waivers(self) -> str:
        """File of violations that are accepted, empty when there is none."""
        return self.config.waivers

    @property
    def condition(self) -> dict[str, Any]:
        """What the journal begins with."""
        return {
            "seed": self.config.seed,
            "mode": self.config.mode,
            "pace": "realtime",
            "transport": "ros",
            "bags": [],
            "limit": None,
            "stack": self.stack.name,
            "faults": list(self.config.faults),
            "relations": [r.id for r in self.suite.relations],
            "control": self.suite.control.id,
            "sham": self.suite.sham.id,
        }

    def tell_domains(self, domains: dict[str, int]) -> None:
        """Write down which ROS domains the run is in: ``live``, ``control``, and those of our arms by their names."""
        write_whole(self.out / DOMAINS_FILE, json.dumps(domains) + "\n")


def told_domains(out: Path) -> dict[str, int]:
    """Return the ROS domains that a run told of.

    Raises:
        UsageError: it has not told them.
    """
    path = out / DOMAINS_FILE
    try:
        return {str(name): int(domain) for name, domain in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; expected the directory of a running `mt live`") from error
