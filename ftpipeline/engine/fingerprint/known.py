"""What is known about names outside the project: which calls have no effect, and which make code dynamic.

The lists are allow lists: what they do not name counts as having an effect.
"""

from typing import Final

PURE_CALLS: Final = frozenset({
    "abc.abstractmethod", "argparse.Namespace", "array.array", "builtins.Exception", "builtins.ValueError",
    "builtins.abs", "builtins.all", "builtins.any", "builtins.bool", "builtins.bytearray", "builtins.bytes",
    "builtins.chr", "builtins.classmethod", "builtins.complex", "builtins.dict", "builtins.divmod",
    "builtins.enumerate", "builtins.float", "builtins.format", "builtins.frozenset", "builtins.getattr",
    "builtins.hasattr", "builtins.hash", "builtins.int", "builtins.isinstance", "builtins.issubclass", "builtins.iter",
    "builtins.len", "builtins.list", "builtins.max", "builtins.min", "builtins.object", "builtins.ord", "builtins.pow",
    "builtins.property", "builtins.range", "builtins.repr", "builtins.reversed", "builtins.round", "builtins.set",
    "builtins.slice", "builtins.sorted", "builtins.staticmethod", "builtins.str", "builtins.sum", "builtins.super",
    "builtins.tuple", "builtins.type", "builtins.zip", "collections.ChainMap", "collections.Counter",
    "collections.OrderedDict", "collections.defaultdict", "collections.deque", "collections.namedtuple",
    "contextvars.ContextVar", "dataclasses.dataclass", "dataclasses.field", "datetime.date", "datetime.datetime",
    "datetime.time", "datetime.timedelta", "datetime.timezone", "decimal.Context", "decimal.Decimal", "enum.auto",
    "fractions.Fraction", "functools.lru_cache", "functools.partial", "itertools.chain",
    "itertools.chain.from_iterable", "itertools.product", "logging.getLogger", "math.exp", "math.log", "math.sqrt",
    "operator.attrgetter", "operator.itemgetter", "operator.methodcaller", "os.path.abspath", "os.path.basename",
    "os.path.dirname", "os.path.join", "os.path.realpath", "pathlib.Path", "pathlib.PurePath", "pathlib.PurePosixPath",
    "re.compile", "re.escape", "string.Template", "textwrap.dedent", "threading.Condition", "threading.Event",
    "threading.Lock", "threading.RLock", "threading.local", "types.MappingProxyType", "types.SimpleNamespace",
    "typing.NamedTuple", "typing.NewType", "typing.ParamSpec", "typing.TypeVar", "weakref.WeakKeyDictionary",
    "weakref.WeakValueDictionary", "zoneinfo.ZoneInfo",
})  # fmt: skip
"""Calls without an effect whose value follows from their arguments."""

CALLING_BACK: Final = frozenset({"max", "min", "sorted"})
"""Those of them that call a function they are given; what it does, they do."""

FREE_CALLS: Final = frozenset({
    "importlib.resources.files", "json.load", "json.loads", "os.environ.get", "os.getenv", "os.path.exists",
    "pathlib.Path.cwd", "pathlib.Path.home", "platform.machine", "platform.system", "tomllib.load", "tomllib.loads",
    "yaml.safe_load",
})  # fmt: skip
"""Calls without an effect on Python's state whose value depends on more than their arguments."""

PURE_METHODS: Final = frozenset({
    "as_posix", "capitalize", "casefold", "copy", "count", "decode", "difference", "encode", "endswith", "expanduser",
    "find", "findall", "format", "fullmatch", "get", "index", "intersection", "isdigit", "items", "join", "joinpath",
    "keys", "lower", "lstrip", "match", "partition", "relative_to", "removeprefix", "removesuffix", "replace",
    "resolve", "rpartition", "rsplit", "rstrip", "search", "split", "splitlines", "startswith", "strip", "sub", "title",
    "translate", "union", "upper", "values", "with_name", "with_stem", "with_suffix", "zfill",
})  # fmt: skip
"""Methods that change nothing, on objects that only `PURE_CALLS` and literals have made."""

FREE_METHODS: Final = frozenset({
    "exists", "glob", "is_dir", "is_file", "iterdir", "read", "read_bytes", "read_text", "rglob", "stat",
})  # fmt: skip
"""Methods that change nothing but read files."""

PURE_DECORATORS: Final = frozenset({
    "abc.abstractmethod", "builtins.classmethod", "builtins.property", "builtins.staticmethod",
    "contextlib.asynccontextmanager", "contextlib.contextmanager", "dataclasses.dataclass", "enum.unique",
    "ftpipeline.records.step", "functools.cache", "functools.cached_property", "functools.lru_cache",
    "functools.singledispatch", "functools.total_ordering", "functools.wraps", "numba.jit", "numba.njit",
    "torch.inference_mode", "torch.no_grad", "typing.final", "typing.no_type_check", "typing.overload",
    "typing.override", "typing.runtime_checkable", "typing_extensions.override", "warnings.deprecated",
})  # fmt: skip
"""Decorators that keep no record of what they decorate."""

PLAIN_BASES: Final = frozenset({
    "pydantic.BaseModel", "torch.nn.Module", "torch.utils.data.Dataset", "transformers.Trainer",
    "transformers.TrainerCallback", "typing_extensions.Protocol", "typing_extensions.TypedDict",
})  # fmt: skip
"""Third-party base classes that keep no record of their subclasses; all of the standard library counts as such."""

MODULE_ESCALATIONS: Final = {
    "builtins.globals": "reads its names through globals()",
    "builtins.vars": "reads its names through vars()",
    "builtins.dir": "reads its names through dir()",
}
"""Names that can reach everything in their own module."""

PROJECT_ESCALATIONS: Final = {
    "builtins.eval": "evaluates text",
    "builtins.exec": "executes text",
    "builtins.__import__": "imports a computed name",
    "cloudpickle.load": "unpickles code by name",
    "cloudpickle.loads": "unpickles code by name",
    "dill.load": "unpickles code by name",
    "dill.loads": "unpickles code by name",
    "gc.get_objects": "walks all objects",
    "importlib.__import__": "imports a computed name",
    "importlib.import_module": "imports a computed name",
    "importlib.metadata.entry_points": "loads entry points",
    "importlib.reload": "reloads modules",
    "importlib.util.module_from_spec": "imports a computed file",
    "importlib.util.spec_from_file_location": "imports a computed file",
    "inspect.currentframe": "reads frames",
    "inspect.stack": "reads frames",
    "joblib.load": "unpickles code by name",
    "pandas.read_pickle": "unpickles code by name",
    "pickle.Unpickler": "unpickles code by name",
    "pickle.load": "unpickles code by name",
    "pickle.loads": "unpickles code by name",
    "pkg_resources.iter_entry_points": "loads entry points",
    "pkgutil.iter_modules": "lists modules",
    "pkgutil.resolve_name": "imports a computed name",
    "pkgutil.walk_packages": "lists modules",
    "runpy.run_module": "imports a computed name",
    "runpy.run_path": "runs a computed file",
    "shelve.open": "unpickles code by name",
    "sys._getframe": "reads frames",
    "sys.modules": "reads sys.modules",
}
"""Names that can reach any code of the project."""

ENTRY_POINTS: Final = frozenset({"importlib.metadata.entry_points", "pkg_resources.iter_entry_points"})
"""Names that can reach any installed distribution that declares entry points."""

ENVIRONMENT_READS: Final = ("os.environ", "os.environb", "os.getenv")
"""Names that read environment variables."""

DOC_READERS: Final = frozenset({"builtins.__doc__", "inspect.getdoc", "pydoc.getdoc"})
SOURCE_READERS: Final = frozenset({
    "inspect.getcomments", "inspect.getsource", "inspect.getsourcefile", "inspect.getsourcelines", "linecache.getlines",
})  # fmt: skip
"""Names that make documentation, or the text of the source, part of what code computes with."""

TELLING: Final = frozenset({*MODULE_ESCALATIONS, *PROJECT_ESCALATIONS, *ENTRY_POINTS, *DOC_READERS, *SOURCE_READERS})
"""All names of which a use widens the closure."""

DOCUMENTATION: Final = "__doc__"
SUBCLASSES: Final = "__subclasses__"
FILE_LISTERS: Final = frozenset({"glob", "iglob", "iterdir", "listdir", "rglob", "scandir", "walk"})
"""Attributes that list files: what they find, no literal need name."""

OWN_PLACES: Final = ("__file__", "__path__", "importlib.resources")
"""What code finds its own package's folder by."""

ATTRIBUTES: Final = frozenset({DOCUMENTATION, SUBCLASSES, *FILE_LISTERS})
"""Attribute names that widen what counts, whatever they are read from."""
