# SPDX-License-Identifier: Apache-2.0
"""Modules that plugins of users import by their names of before."""

from __future__ import annotations

import importlib

import pytest

from mt_nodes.base.moved import MOVED
from mt_nodes.base.plugins import ENTRY_POINT_GROUP


@pytest.mark.parametrize("before", MOVED)
def test_a_name_of_before_tells_the_new_one(before: str) -> None:
    importlib.import_module(MOVED[before])
    with pytest.raises(ModuleNotFoundError, match=rf"^{before} is now {MOVED[before]}; import it from there$"):
        importlib.import_module(before)


def test_what_lies_in_a_package_of_before_tells_the_new_package() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"mt_nodes.mutations is now mt_nodes.relations.mutations"):
        importlib.import_module("mt_nodes.mutations.base")


def test_a_name_that_never_was_is_an_error_as_ever() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'mt_nodes.nowhere'"):
        importlib.import_module("mt_nodes.nowhere")


def test_the_group_of_entry_points_is_no_module_and_stays() -> None:
    assert ENTRY_POINT_GROUP == "mt_nodes.plugins"
