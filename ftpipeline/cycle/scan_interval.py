"""How often the fleet is scanned: the sensor, and whoever waits for its scans, agree on it."""

import os

from ftpipeline.errors import InputError

INTERVAL_VARIABLE = "FTPIPELINE_SCAN_SECONDS"

_DEFAULT = 30


def scan_interval() -> int:
    """Return the seconds between two scans of the fleet.

    Raises:
        InputError: FTPIPELINE_SCAN_SECONDS is no positive whole number.
    """
    named = os.environ.get(INTERVAL_VARIABLE) or str(_DEFAULT)
    if not named.isdecimal() or int(named) == 0:
        raise InputError(f"{INTERVAL_VARIABLE}={named!r} is no positive whole number; give seconds, for example 30")
    return int(named)
