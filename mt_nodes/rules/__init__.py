# SPDX-License-Identifier: Apache-2.0
"""From traffic rules to relations: what rules say, in the words of an ontology, bound to mutations and checks."""
