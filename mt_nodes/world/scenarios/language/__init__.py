# SPDX-License-Identifier: Apache-2.0
"""The scenario language: after SCENEST/AVUnit and the paper on moral testing, with attributes of people added.

``tokenizer`` and ``parsing`` read a script by its grammar (``scenario.lark``) into a ``tree``; ``resolver`` and
``evaluator`` determine the values of names and expressions; ``scenario_builder`` makes concrete scenarios on a map;
``formatting`` prints strict form; ``script_writer`` makes a script of a concrete scenario.
"""

from mt_nodes.world.scenarios.language.formatting import format_script
from mt_nodes.world.scenarios.language.parsing import parse
from mt_nodes.world.scenarios.language.problems import Problem, ScenarioError
from mt_nodes.world.scenarios.language.script_reading import (
    ScriptReading,
    load_scenarios,
    problems_of,
    read,
    warnings_of,
)
from mt_nodes.world.scenarios.language.script_writer import script_of
from mt_nodes.world.scenarios.language.tree import Script

__all__ = [
    "Problem",
    "ScenarioError",
    "Script",
    "ScriptReading",
    "format_script",
    "load_scenarios",
    "parse",
    "problems_of",
    "read",
    "script_of",
    "warnings_of",
]
