# SPDX-License-Identifier: Apache-2.0
"""General-purpose code: errors, parameters, plugins, files, processes, clocks, seeds and statistics.

It imports nothing else of the package and knows nothing of driving.
Code goes here if any program could use it.
"""
