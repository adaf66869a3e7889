# SPDX-License-Identifier: Apache-2.0
"""What people read after a run: the page, JUnit, tables, comparisons.

It imports :mod:`mt_nodes.engine` and all that lies below.
A section of the report goes here and into ``html`` (context, name), its template into ``templates/report.html.j2``.
"""
