"""A run worker to be killed: runs the sleeping sample step in the folder it is given.

Usage: `python -m ftpipeline_tests.engine.child.caller FOLDER`
"""

import sys
from pathlib import Path

from ftpipeline.engine.child import Level, StepHost
from ftpipeline_tests.engine.child.conftest import Runs

if __name__ == "__main__":
    Runs(StepHost(), Path(sys.argv[1]))("leaves_processes_and_waits", {"waits": True}, Level(sys.argv[2]))
