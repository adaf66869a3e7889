# SPDX-License-Identifier: Apache-2.0
"""From traffic rules to relations: what rules say, in the words of an ontology, bound to mutations and checks.

It imports :mod:`mt_nodes.engine` and all that lies below.
What a rule can say goes here, its words into ``config/ontology``.
"""
