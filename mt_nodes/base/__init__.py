# SPDX-License-Identifier: Apache-2.0
"""What every room uses and what knows nothing of driving: errors, parameters, plugins, files, processes, clocks, seeds.

It imports nothing else of the package.
Code goes here if any program could use it.
"""
