"""Calls one function through another tool's cache, in a process of its own: serves requests on stdin, forking for each.

Run by the interpreter in which the tool is installed; it needs nothing else. Whether the function was executed is seen
by a profile hook, not asked of the tool.
"""

import importlib
import json
import logging
import os
import sys
import threading
import traceback
from pathlib import Path


def joblib_call(function, arguments, folder):
    """Call through joblib.Memory."""
    from joblib import Memory

    Memory(folder, verbose=0).cache(function)(**arguments)


def hamilton_call(function, arguments, folder):
    """Call as the only node of a Hamilton driver with caching."""
    from hamilton import ad_hoc_utils, driver

    function.__annotations__ = {**dict.fromkeys(arguments, object), "return": object}
    function.__name__ = "node"
    module = ad_hoc_utils.create_temporary_module(function)
    driver.Builder().with_modules(module).with_cache(path=folder).build().execute(["node"], inputs=arguments)


def redun_call(function, arguments, folder):
    """Call as a redun task with its database in `folder`."""
    from redun import Scheduler, task
    from redun.config import Config

    scheduler = Scheduler(config=Config({"backend": {"db_uri": f"sqlite:///{folder}/redun.db"}}))
    scheduler.load()
    scheduler.run(task(name="work", namespace="matrix")(function)(**arguments))


CALLS = {"joblib": joblib_call, "hamilton": hamilton_call, "redun": redun_call}
_LOADED = {"joblib": ["joblib"], "hamilton": ["hamilton.driver", "hamilton.caching.adapter"], "redun": ["redun"]}


def serve(tool):
    """Answer one JSON request a line, until the input ends."""
    for name in _LOADED[tool]:
        importlib.import_module(name)
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        if (child := os.fork()) == 0:
            print(json.dumps(_answer(tool, json.loads(line))), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


def _answer(tool, request):
    os.environ.update(request["env"])
    sys.dont_write_bytecode = True
    sys.path[:0] = request["path"]
    folder = Path(request["home"]) / tool
    folder.mkdir(parents=True, exist_ok=True)
    try:
        module, _, name = request["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        return {"executed": _is_executed(CALLS[tool], function, eval(request["arguments"]), str(folder))}
    except Exception:
        return {"error": traceback.format_exc(limit=-1)}


def _is_executed(call, function, arguments, folder):
    seen = []

    def watch(frame, event, argument):
        if event == "call" and frame.f_code is function.__code__:
            seen.append(frame)

    threading.setprofile(watch)  # redun runs tasks in threads
    sys.setprofile(watch)
    try:
        call(function, arguments, folder)
    finally:
        sys.setprofile(None)
    return bool(seen)


if __name__ == "__main__":
    serve(sys.argv[1])
