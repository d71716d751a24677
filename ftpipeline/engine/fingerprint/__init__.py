"""Fingerprints of code and environment: the parts of a step key that nobody has to remember to change (contract C4).

`code_fingerprint` follows names from a step through the project's own code; `environment_fingerprint` covers what is
installed and what the machine adds. Both read files and metadata only: no module is imported, no step is run. Given a
cache folder, they are kept between processes with the trace of what they were made from, and made again if it changed.

Known limits: files and environment variables read while a step runs (the step's wall refuses undeclared ones), time,
randomness, installed files edited in place without a new RECORD, sources of extension modules, dynamic code that
reaches into this package, and code that hides.
"""

from ftpipeline.engine.fingerprint.code import code_fingerprint
from ftpipeline.engine.fingerprint.compute import CodeFingerprint
from ftpipeline.engine.fingerprint.environment import EnvironmentFingerprint, environment_fingerprint
from ftpipeline.engine.fingerprint.importable import require_importable
from ftpipeline.engine.fingerprint.loaded import require_loaded_equals_source

__all__ = [
    "CodeFingerprint",
    "EnvironmentFingerprint",
    "code_fingerprint",
    "environment_fingerprint",
    "require_importable",
    "require_loaded_equals_source",
]
