# SPDX-License-Identifier: Apache-2.0
"""What a worker's process does: one item after another, as asked through a pipe, until nobody asks any more."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from mt_nodes.base.environment import free_domains
from mt_nodes.base.errors import ExitCode
from mt_nodes.runs.campaign.item import CampaignItem, ItemResult
from mt_nodes.runs.campaign.item_execution import perform, worker_name
from mt_nodes.runs.worker_process import answer_questions

#: Says in a worker's environment that its ROS domain is leased for it.
_OWN = "MT_CAMPAIGN_DOMAIN"


def serve(pipe: Connection, scratch: Path, directories: Sequence[Path], leader: int) -> None:
    """Do what is asked, in the main thread of a process of its own.

    Args:
        pipe: items come in, what came of each goes out.
        scratch: see :func:`mt_nodes.runs.campaign.item_execution.perform`. directories: of plugins.
        leader: id of the process that asks; when that ends, so does this one.
    """
    with contextlib.ExitStack() as ending:
        answer_questions(pipe, directories, leader, lambda item: _answer(item, scratch, ending))


def _answer(item: CampaignItem, scratch: Path, ending: contextlib.ExitStack) -> ItemResult:
    try:
        if item.request.transport == "ros" and _OWN not in os.environ:
            # What its suites say of themselves goes to a domain that no other worker's suites speak in.
            domain = ending.enter_context(free_domains(1)).domains[0]
            os.environ |= {"ROS_DOMAIN_ID": str(domain), _OWN: str(domain)}
        return perform(item, scratch)
    except Exception:  # noqa: BLE001 - told to the leader, which tries again elsewhere
        why = f"a worker failed: {traceback.format_exc(limit=-3)}"
        return ItemResult(item.key, int(ExitCode.INFRASTRUCTURE), (), "", 0.0, worker_name(), why)
