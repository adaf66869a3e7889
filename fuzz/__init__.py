# SPDX-License-Identifier: Apache-2.0
"""Fuzzing: whatever the input, a known error in one line or a result that proves itself; see ``docs/reliability.md``.

``python -m fuzz`` runs it, ``test/runs/test_corpus.py`` replays what it found before.
"""
