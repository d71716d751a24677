"""What a step may use of the file system, in one place: Landlock, the recorder and the audit hook all read it."""

import importlib.util
import os
import site
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import ftpipeline
from ftpipeline.engine.child.access import LOOK, USE, WORK, Access
from ftpipeline.engine.child.request import Work

_INSTALLED = ("site-packages", "dist-packages")
_OWN_PACKAGE = os.path.dirname(os.path.realpath(ftpipeline.__file__))
_MACHINERY = os.path.dirname(os.path.realpath(__file__)) + os.sep
SHARED_MEMORY = "/dev/shm"

_PLATFORM: Mapping[str, Access] = {
    **dict.fromkeys(("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64"), USE),
    # what loader, allocators, thread pools and numeric kernels look at to suit themselves to the machine
    **dict.fromkeys(("/etc/ld.so.cache", "/proc/cpuinfo", "/proc/stat", "/proc/meminfo", "/proc/filesystems"), LOOK),
    **dict.fromkeys(("/proc/self", "/proc/sys/vm", "/proc/sys/kernel", "/sys/kernel/mm", "/sys/fs/cgroup"), LOOK),
    **dict.fromkeys(("/sys/devices", "/sys/bus", "/sys/class", "/.dockerenv"), LOOK),
    # what the C library and OpenSSL read when they are first used; names of users, not data
    **dict.fromkeys(("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/locale.alias"), LOOK),
    **dict.fromkeys(("/etc/ssl/openssl.cnf", "/etc/ssl/certs", "/etc/pki/tls/certs"), LOOK),
    **dict.fromkeys(("/dev/urandom", "/dev/random", "/dev/zero", "/dev/full"), LOOK),
    "/dev/null": LOOK | Access.WRITE,
    SHARED_MEMORY: WORK,
}
_DARWIN: Mapping[str, Access] = dict.fromkeys(("/System", "/Library", "/private/var/db", "/opt/homebrew"), USE)


@dataclass(frozen=True)
class Policy:
    """What is granted to one step.

    Attributes:
        grants: real path to what is granted at and beneath it.
        roots: real folders that the step's own code stands in.
        installed: real folders of the interpreter and of installed distributions.
        unheeded: folders whose listing is denied but is no fault of the step: Python looks for modules there.
    """

    grants: Mapping[str, Access]
    roots: tuple[str, ...]
    installed: tuple[str, ...]
    unheeded: frozenset[str] = field(default_factory=frozenset)

    def allows(self, path: str, access: Access) -> bool:
        """Tell whether `access` is granted at the real path `path`, by itself and the folders above together."""
        granted = Access(0)
        while True:
            granted |= self.grants.get(path, Access(0))
            if access in granted:
                return True
            parent = os.path.dirname(path)
            if parent == path:
                return False
            path = parent

    def is_installed(self, path: str) -> bool:
        """Tell whether the real path is of the platform, the interpreter, a distribution, or the code here."""
        return path.startswith(_MACHINERY) or _is_beneath(path, self.installed) or _is_beneath(path, _PLATFORM)

    def is_first_party(self, path: str) -> bool:
        """Tell whether the real path is of the step's own project."""
        machinery = path.startswith(_MACHINERY)
        return not machinery and _is_beneath(path, self.roots) and not _is_beneath(path, self.installed)


def interpreter_grants() -> dict[str, Access]:
    """Return what any Python process of this environment needs: the platform, the interpreter, what is installed."""
    grants = dict(_PLATFORM) | (dict(_DARWIN) if sys.platform == "darwin" else {})
    return _real(grants) | dict.fromkeys(_installed_folders(), USE)


def policy_of(work: Work) -> Policy:
    """Return what a step may use; `sys.path` must be the one it will run with.

    A module found on `sys.path` is looked for and not imported.
    """
    request = work.request
    roots = _roots([request.step, *(port.target for port in request.ports.values())])
    grants, installed = interpreter_grants(), _installed_folders()
    if request.modules is None:
        _add(grants, roots, LOOK)
    else:
        modules = _real_files(map(str, request.modules))
        roots |= {os.path.dirname(module) for module in modules}
        _add(grants, roots, Access.LIST)  # Python lists a folder to find a module in it
        grants |= dict.fromkeys((*modules, *map(importlib.util.cache_from_source, modules)), Access.READ)
    _add(grants, _loaded_files(installed), Access.READ)
    _add(grants, map(str, request.inputs.values()), LOOK)
    _add(grants, map(str, (*request.reads, *request.caches.values())), LOOK)
    _add(grants, (str(request.out), str(work.scratch)), WORK)
    unheeded = frozenset(os.path.realpath(entry) for entry in (*sys.path, str(work.folder)))
    return Policy(grants, tuple(sorted(roots)), installed, unheeded)


def _roots(targets: Iterable[str]) -> set[str]:
    """Return the folder that the top-level package or module of each target stands in, and that of this package."""
    roots = {_OWN_PACKAGE}
    for name in {target.partition(":")[0].partition(".")[0] for target in targets}:
        spec = importlib.util.find_spec(name)
        if spec is not None:
            places = spec.submodule_search_locations or filter(None, [spec.origin])
            roots |= {os.path.dirname(os.path.realpath(place)) for place in places}
    return roots


def _real_files(files: Iterable[str]) -> list[str]:
    """Return real paths, asking once for each folder: there are hundreds of modules in a few folders."""
    real_folder = cache(os.path.realpath)
    parts = ((*os.path.split(file), os.path.islink(file)) for file in files)
    return [
        os.path.realpath(os.path.join(folder, name)) if is_link else os.path.join(real_folder(folder), name)
        for folder, name, is_link in parts
    ]


def _loaded_files(installed: Iterable[str]) -> list[str]:
    """Return the files of what calls a step: every traceback that the step prints shows their lines."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    return [file for file in files if file and not _is_beneath(file, installed)]


def _installed_folders() -> tuple[str, ...]:
    """Return real folders; a user's own site-packages stands outside the interpreter's prefix."""
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, site.getusersitepackages()]
    places += [entry for entry in sys.path if Path(entry).name in _INSTALLED]
    return tuple(sorted({os.path.realpath(place) for place in places}))


def _real(grants: Mapping[str, Access]) -> dict[str, Access]:
    """`/proc/self` stays as it is: it stands for another folder in each process."""
    real: dict[str, Access] = {}
    for path, access in grants.items():
        _add(real, [path], access)
    return real


def _add(grants: dict[str, Access], paths: Iterable[str], access: Access) -> None:
    for path in paths:
        place = path if path.startswith("/proc/self") else os.path.realpath(path)
        grants[place] = grants.get(place, Access(0)) | access


def _is_beneath(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip(os.sep) + os.sep) for folder in folders)
