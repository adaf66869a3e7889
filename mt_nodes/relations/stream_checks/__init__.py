# SPDX-License-Identifier: Apache-2.0
"""Relations within one stream of outputs, in time and between sensors: they need no follow-up.

A new check goes into the file of related ones. Shared code is in ``base`` and ``scene_facts``.
"""
