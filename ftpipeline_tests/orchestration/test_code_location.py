"""The code location as Dagster's own command lines see it."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ftpipeline_tests.orchestration.servers import PROGRAMS, ROOT
from ftpipeline_tests.tiny_pipeline import write_pipeline

pytestmark = pytest.mark.slow

Environment = dict[str, str]
