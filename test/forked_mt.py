# SPDX-License-Identifier: Apache-2.0
"""``mt`` as a process of its own that need not import anything: that is half of the work of a short run.

It is forked from a process that has imported what a run needs, has one thread and has run nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

_SERVER = multiprocessing.get_context("forkserver")
_USED = ("mt_nodes.cli.replay_execution", "mt_nodes.report.run_files", "rosbags.typesys.stores.ros2_jazzy", "numpy.ma")
_SERVER.set_forkserver_preload(["forked_mt", *_USED])
#: Longest wait for its end.
_LIMIT_S = 280.0


def forked_mt(*words: str) -> subprocess.CompletedProcess[str]:
    """Run ``mt`` to its end, in this directory and environment."""
    with tempfile.TemporaryDirectory() as place:
        said, error = Path(place) / "said", Path(place) / "error"
        command = _SERVER.Process(target=_run, args=(words, str(Path.cwd()), dict(os.environ), said, error))
        command.start()
        command.join(_LIMIT_S)
        if command.exitcode is None:
            command.kill()
            command.join()
        return subprocess.CompletedProcess(words, command.exitcode, said.read_text(), error.read_text())


def _run(words: tuple[str, ...], directory: str, environment: Mapping[str, str], *outputs: Path) -> None:
    for number, path in enumerate(outputs, 1):
        with path.open("wb") as file:
            os.dup2(file.fileno(), number)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    from mt_nodes.cli.main import main

    sys.argv = ["mt", *words]
    sys.exit(main())
