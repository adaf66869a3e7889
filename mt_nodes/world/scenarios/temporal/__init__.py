# SPDX-License-Identifier: Apache-2.0
"""Claims of scenario scripts: formulas of signal temporal logic about the trace of a drive.

Semantics are those of AVUnit (Zhou et al., *Specification-based autonomous driving system testing*, IEEE Transactions
on Software Engineering 49(6), 2023). Robustness is that of Fainekos and Pappas (*Robustness of temporal logic
specifications for continuous-time signals*, Theoretical Computer Science 410(42), 2009) and of Donzé and Maler (*Robust
satisfaction of temporal logic over real-valued signals*, FORMATS 2010), computed by `rtamt`.
"""
