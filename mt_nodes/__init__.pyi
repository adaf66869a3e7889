# SPDX-License-Identifier: Apache-2.0
# Types of the public names, which __init__.py imports when they are first used.
from mt_nodes.api.assertion import assert_holds as assert_holds
from mt_nodes.api.demo_drive import demo_drive as demo_drive
from mt_nodes.api.frame_assertion import assert_frame_holds as assert_frame_holds
from mt_nodes.api.frames import Frame as Frame
from mt_nodes.api.frames import frames as frames
from mt_nodes.api.judge import FrameVerdict as FrameVerdict
from mt_nodes.api.judge import judge as judge
from mt_nodes.api.mutate import ChangedFrame as ChangedFrame
from mt_nodes.api.mutate import mutate as mutate
from mt_nodes.api.replays import load as load
from mt_nodes.api.replays import replay as replay
from mt_nodes.api.result import Result as Result
from mt_nodes.api.verdict_places import ImagePlace as ImagePlace
from mt_nodes.api.verdict_places import Place as Place
from mt_nodes.api.verdicts import RelationVerdict as RelationVerdict
from mt_nodes.api.verdicts import ViolatedPair as ViolatedPair
from mt_nodes.base.errors import ExitCode as ExitCode
from mt_nodes.base.errors import InfrastructureError as InfrastructureError
from mt_nodes.base.errors import IsolationError as IsolationError
from mt_nodes.base.errors import MtError as MtError
from mt_nodes.base.errors import NotApplicable as NotApplicable
from mt_nodes.base.errors import StackError as StackError
from mt_nodes.base.errors import UsageError as UsageError
from mt_nodes.data.outputs import Control as Control
from mt_nodes.data.outputs import Detections as Detections
from mt_nodes.data.outputs import ImageBoxes as ImageBoxes
from mt_nodes.data.outputs import Output as Output
from mt_nodes.data.outputs import Path as Path
from mt_nodes.data.verdict import Judgement as Judgement
from mt_nodes.data.verdict import Outcome as Outcome
from mt_nodes.data.verdict import RelationOutcome as RelationOutcome
from mt_nodes.engine.summary.verdict_rows import PairRow as PairRow

__version__: str
PUBLIC: dict[str, str]
