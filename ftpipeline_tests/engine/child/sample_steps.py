"""Steps that the tests run in processes of their own."""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ftpipeline.engine.child import locked_duckdb
from ftpipeline.errors import LeakageError, StaleGenerationError
from ftpipeline.records import Facts, StepKind, step
from ftpipeline.steps.ports import Progress

Inputs = Mapping[str, Path]
Params = Mapping[str, Any]


@step("sums", code_version="1", kind=StepKind.PURE)
def sums(inputs: Inputs, params: Params, out: Path) -> Facts:
    import numpy
    import pyarrow
    import pyarrow.parquet

    values = pyarrow.parquet.read_table(inputs["table"] / "t.parquet")["x"].to_numpy()
    matrix = numpy.random.default_rng(params["seed"]).normal(size=(128, 128)) + values[:128]
    product = numpy.linalg.svd(matrix @ matrix.T)[1]
    pyarrow.parquet.write_table(pyarrow.table({"s": product}), out / "s.parquet")
    return {"sum": float(product.sum()), "rows": len(values)}


class Suffix:
    """A port."""

    code_version = "1"

    def __init__(self, text: str, times: int, folder: Path, scale: float) -> None:
        self.text = f"{text * times}{folder}{scale}"


def echo(inputs: Inputs, params: Params, out: Path, *, suffix: Suffix) -> Facts:
    (out / "echo.txt").write_text(suffix.text)
    return {"params": repr(params["value"]), "type": type(params["value"]).__name__, "file": str(out / "echo.txt")}


def reads_by_python(inputs: Inputs, params: Params, out: Path) -> Facts:
    return {"text": Path(params["path"]).read_text()}


def reads_and_swallows(inputs: Inputs, params: Params, out: Path) -> Facts:
    with suppress(OSError):
        Path(params["path"]).read_text()
    return {}


def reads_by_pyarrow(inputs: Inputs, params: Params, out: Path) -> Facts:
    import pyarrow.parquet

    with suppress(OSError):
        pyarrow.parquet.read_table(params["path"])
    return {}


def reads_by_duckdb(inputs: Inputs, params: Params, out: Path) -> Facts:
    import duckdb

    with suppress(duckdb.Error):
        duckdb.connect().execute(f"SELECT * FROM '{params['path']}'").fetchall()
    return {}


def reads_by_safetensors(inputs: Inputs, params: Params, out: Path) -> Facts:
    from safetensors import safe_open

    with suppress(OSError), safe_open(params["path"], "np") as tensors:
        return {"keys": list(tensors.keys())}
    return {}


def reads_by_program(inputs: Inputs, params: Params, out: Path) -> Facts:
    done = subprocess.run(["cat", params["path"]], capture_output=True, text=True, check=False)
    return {"text": done.stdout}


def reads_in_a_thread(inputs: Inputs, params: Params, out: Path) -> Facts:
    thread = threading.Thread(target=reads_and_swallows, args=(inputs, params, out))
    thread.start()
    thread.join()
    return {}


def reads_relative_path_across_pages(inputs: Inputs, params: Params, out: Path) -> Facts:
    with suppress(OSError):
        Path("./" * 1500 + params["path"].lstrip("/")).read_text()
    return {}


def lists_folder(inputs: Inputs, params: Params, out: Path) -> Facts:
    with suppress(OSError):
        os.listdir(params["path"])
    return {}


def reads_variable(inputs: Inputs, params: Params, out: Path) -> Facts:
    return {"value": os.environ.get(params["name"], "absent")}


def writes_to_input(inputs: Inputs, params: Params, out: Path) -> Facts:
    (inputs["table"] / "t.parquet").write_bytes(b"changed")
    return {}


def works_in_scratch(inputs: Inputs, params: Params, out: Path) -> Facts:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a").write_text("1")
        Path(folder, "a").rename(out / "a")
    return {"entries": sorted(os.listdir(out))}


def connects(inputs: Inputs, params: Params, out: Path) -> Facts:
    with suppress(OSError), socket.create_connection(("127.0.0.1", params["port"]), timeout=5) as connection:
        return {"received": connection.recv(10).decode()}
    return {}


def raises_leakage(inputs: Inputs, params: Params, out: Path) -> Facts:
    raise LeakageError("3 eval rows are in the training rows; drop them")


def raises_with_data(inputs: Inputs, params: Params, out: Path) -> Facts:
    raise StaleGenerationError("the pointer has moved; read it again", expected=4, actual=5)


def raises_key_error(inputs: Inputs, params: Params, out: Path) -> Facts:
    counts = {"a": 1}
    try:
        return {"n": counts["missing_label"]}
    except KeyError as error:
        error.add_note("a note of the step")
        raise


class OwnError(Exception):
    """An error that the caller's process does not know."""


def raises_own_error(inputs: Inputs, params: Params, out: Path) -> Facts:
    try:
        raise ValueError("the cause")
    except ValueError as error:
        raise OwnError("rows are odd") from error


def exhausts_memory(inputs: Inputs, params: Params, out: Path) -> Facts:
    return {"n": len(bytearray(1 << 30))}


def exits(inputs: Inputs, params: Params, out: Path) -> Facts:
    os._exit(7)


def returns_nothing(inputs: Inputs, params: Params, out: Path) -> None:
    return None


def crashes(inputs: Inputs, params: Params, out: Path) -> Facts:
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def talks(inputs: Inputs, params: Params, out: Path, *, progress: Progress) -> Facts:
    for done in range(1, 201):
        progress(done, 200, "rows")
    logging.getLogger("sample").warning("odd row %d", 3)
    print("to standard output")
    print("to standard error", file=sys.stderr)
    return {}


def leaves_processes_and_waits(inputs: Inputs, params: Params, out: Path) -> Facts:
    """Start two programs, one with a session of its own, write all the process ids down, and sleep."""
    sleep = ["sleep", "300"]
    plain = subprocess.Popen(sleep)
    detached = subprocess.Popen(sleep, start_new_session=True)
    note = out / "pids.part"
    note.write_text(f"{os.getpid()} {plain.pid} {detached.pid} {os.getppid()}")
    note.rename(out / "pids")
    while params["waits"]:
        time.sleep(60)
    return {}


def uses_locked_duckdb(inputs: Inputs, params: Params, out: Path) -> Facts:
    import duckdb
    import pyarrow

    connection = locked_duckdb()
    connection.register("t", pyarrow.table({"x": [1, 2, 3]}))
    row = connection.execute("SELECT sum(x) FROM t").fetchone()
    try:
        connection.execute(f"SELECT * FROM '{params['path']}'")
    except duckdb.Error as error:
        return {"sum": int(row[0]) if row else None, "refused": type(error).__name__}
    return {}
