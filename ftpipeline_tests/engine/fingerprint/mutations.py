"""The mutation matrix: what is changed between two runs of `pkg.step:run`, and whether that may go unnoticed."""

# ruff: noqa: E501 - a row is read as a table row

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mutation:
    """One row.

    Attributes:
        name: what is changed.
        before: relative path to text.
        after: the files that differ afterwards.
        env: environment variables afterwards; before, none is set.
    """

    name: str
    before: Mapping[str, str]
    after: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)


def _edit(name: str, old: str, new: str, /, **files: str) -> Mutation:
    """Return the row that replaces `old` by `new` wherever it stands; `pkg/a/b.py` is passed as `a__b`."""
    before = {f"pkg/{module.replace('__', '/', 1)}.py": text for module, text in files.items()}
    after = {path: text.replace(old, new) for path, text in before.items() if old in text}
    assert after, f"row {name!r} changes nothing"
    return Mutation(name, before, after)


_USES = "from pkg.lib import f\ndef run(): return f()\n"
_PLUGINS = "REGISTRY = {}\ndef register(f):\n    REGISTRY[f.__name__] = f\n    return f\n"

SEMANTIC = (
    _edit("own body", "1", "2", step="def run(): return 1"),
    _edit("same-module function", "1", "2", step="def f(): return 1\ndef run(): return f()"),
    _edit("imported function", "1", "2", step=_USES, lib="def f(): return 1"),
    _edit("transitive function", "1", "2", step=_USES, lib="from .deep import g\ndef f(): return g()",
          deep="def g(): return 1"),
    _edit("function through a module alias", "1", "2", step="import pkg.lib as m\ndef run(): return m.f()",
          lib="def f(): return 1"),
    _edit("function through a dotted module", "1", "2", step="import pkg.lib\ndef run(): return pkg.lib.f()",
          lib="def f(): return 1"),
    _edit("local constant", "1", "2", step="LIMIT = 1\ndef run(): return LIMIT"),
    _edit("annotated constant", "1", "2", step="LIMIT: int = 1\ndef run(): return LIMIT"),
    _edit("imported constant", "1", "2", step="from pkg.lib import LIMIT\ndef run(): return LIMIT", lib="LIMIT = 1"),
    _edit("derived constant", "1", "2", step="from pkg.lib import B\ndef run(): return B", lib="A = 1\nB = A * 10"),
    _edit("constant derived by a call", "1", "2", step="from pkg.lib import B\ndef run(): return B",
          lib="def make(): return 1\nB = make()"),
    _edit("constant rebound later in the module", "+= 1", "+= 2", step="N = 1\nN += 1\ndef run(): return N"),
    _edit("class attribute", "1", "2", step="from pkg.lib import C\ndef run(): return C.limit",
          lib="class C:\n    limit = 1"),
    _edit("class attribute set from outside", "= 1", "= 2", step="from pkg.lib import C\ndef run(): return C.limit",
          lib="class C:\n    limit = 0\nC.limit = 1"),
    _edit("base-class method", "1", "2", step="from pkg.lib import B\ndef run(): return B().f()",
          lib="from pkg.base import A\nclass B(A): pass", base="class A:\n    def f(self): return 1"),
    _edit("override", "pass", "    def f(self): return 2", step="from pkg.lib import B\ndef run(): return B().f()",
          lib="class A:\n    def f(self): return 1\nclass B(A):\n    pass"),
    _edit("metaclass", "1", "2", step="from pkg.lib import C\ndef run(): return C.made",
          lib="class M(type):\n    def __new__(m, n, b, d):\n        return super().__new__(m, n, b, {**d, 'made': 1})\n"
              "class C(metaclass=M): pass"),
    _edit("subclass hook", "1", "2", step="from pkg.lib import SEEN\nimport pkg.plug\ndef run(): return SEEN",
          lib="SEEN = []\nclass A:\n    def __init_subclass__(cls): SEEN.append(cls.n)",
          plug="from pkg.lib import A\nclass B(A):\n    n = 1"),
    _edit("property", "1", "2", step="class C:\n    @property\n    def p(self): return 1\ndef run(): return C().p"),
    _edit("decorator body", "+ 1", "+ 2", step="from pkg.lib import deco\n@deco\ndef run(): return 1",
          lib="import functools\ndef deco(f):\n    @functools.wraps(f)\n    def inner(): return f() + 1\n    return inner"),
    _edit("decorator argument", "(1)", "(2)", step="from pkg.lib import deco\n@deco(1)\ndef run(): return 1",
          lib="def deco(n):\n    def outer(f):\n        def inner(): return f() + n\n        return inner\n"
              "    return outer"),
    _edit("function under a decorator without wraps", "return 1", "return 2",
          step="from pkg.lib import deco\n@deco\ndef run(): return 1",
          lib="def deco(f):\n    def inner(): return f()\n    return inner"),
    _edit("literal default argument", "1", "2", step="def f(x=1): return x\ndef run(): return f()"),
    _edit("default argument by constant", "1", "2", step="D = 1\ndef f(x=D): return x\ndef run(): return f()"),
    _edit("keyword-only default", "1", "2", step="def f(*, x=1): return x\ndef run(): return f()"),
    _edit("closure value", "(1)", "(2)", step="from pkg.lib import f\ndef run(): return f()",
          lib="def make(n):\n    def inner(): return n\n    return inner\nf = make(1)"),
    _edit("lambda in a table", "+ 1", "+ 2", step="T = {'a': lambda x: x + 1}\ndef run(): return T['a'](0)"),
    _edit("lambda in a table made by a call", "+ 1", "+ 2",
          step="from pkg.lib import keep\nT = keep(a=lambda x: x + 1)\ndef run(): return T['a'](0)",
          lib="def keep(**k): return dict(k)"),
    _edit("functools.partial argument", ", 1)", ", 2)",
          step="from functools import partial\ndef f(x): return x\ng = partial(f, 1)\ndef run(): return g()"),
    _edit("functools.partial function", "+ 1", "+ 2",
          step="from functools import partial\ndef f(x): return x + 1\ng = partial(f, 1)\ndef run(): return g()"),
    _edit("cached function", "1", "2",
          step="from functools import lru_cache\n@lru_cache\ndef f(): return 1\ndef run(): return f()"),
    _edit("bound method as a value", "1", "2",
          step="class C:\n    def m(self): return 1\nf = C().m\ndef run(): return f()"),
    _edit("dict mutated at import", "= 1", "= 2", step="T = {}\nT['a'] = 1\ndef run(): return T"),
    _edit("dict filled by a loop", "'ab'", "'abc'",
          step="T = {}\nfor k in 'ab':\n    T[k] = len(T)\ndef run(): return T"),
    _edit("list extended at import", "[1]", "[2]", step="T = []\nT.extend([1])\ndef run(): return T"),
    _edit("dict mutated by another module", "= 1", "= 2", step="from pkg.lib import T\nimport pkg.fill\ndef run(): return T",
          lib="T = {}", fill="from pkg.lib import T\nT['a'] = 1"),
    _edit("dict mutated by a called function", "1", "2", step="T = {}\ndef fill(): T['a'] = 1\nfill()\ndef run(): return T"),
    _edit("list filled by a key function", "* 2", "* 3",
          step="T = []\ndef key(x):\n    T.append(x * 2)\n    return x\nS = sorted([1], key=key)\ndef run(): return T"),
    _edit("attribute set by setattr", "'n', 1", "'n', 2", step="from pkg import lib\nsetattr(lib, 'n', 1)\ndef run(): return lib.n", lib=""),
    _edit("singledispatch", "return 1", "return 2",
          step="from functools import singledispatch\n@singledispatch\ndef f(x): return 0\n@f.register(int)\ndef _(x): return 1\ndef run(): return f(1)"),
    _edit("class decorator", "= 1", "= 2", step="def deco(c):\n    c.n = 1\n    return c\n@deco\nclass C: pass\ndef run(): return C.n"),
    _edit("monkeypatch at import", "2", "3", step="import pkg.patch\nfrom pkg import lib\ndef run(): return lib.f()",
          lib="def f(): return 1", patch="import pkg.lib\npkg.lib.f = lambda: 2"),
    _edit("monkeypatch of the standard library", "2", "3", step="import textwrap, pkg.patch\ndef run(): return textwrap.dedent('')",
          patch="import textwrap\ntextwrap.dedent = lambda text: 2"),
    _edit("setting of a library at import", "3", "4",
          step="import decimal, pkg.conf\ndef run(): return decimal.Decimal(1) / 7",
          conf="import decimal\ndecimal.getcontext().prec = 3"),
    _edit("re-export through __init__", "1", "2", step="from pkg.sub import f\ndef run(): return f()",
          sub____init__="from pkg.sub.impl import f", sub__impl="def f(): return 1"),
    _edit("re-export that now comes from elsewhere", "pkg.a", "pkg.b", step="from pkg.lib import f\ndef run(): return f()",
          lib="from pkg.a import f", a="def f(): return 1", b="def f(): return 2"),
    _edit("star import", "1", "2", step="from pkg.lib import *\ndef run(): return f()", lib="def f(): return 1"),
    _edit("registry decorator", "return 1", "return 2",
          step="from pkg.lib import REGISTRY\nimport pkg.plug\ndef run(): return REGISTRY['f']()",
          lib=_PLUGINS, plug="from pkg.lib import register\n@register\ndef f(): return 1"),
    _edit("registry method decorator", "return 1", "return 2",
          step="from pkg.lib import APP\nimport pkg.plug\ndef run(): return APP.all[0]()",
          lib="class App:\n    def __init__(self): self.all = []\n    def add(self, f):\n        self.all.append(f)\n"
              "        return f\nAPP = App()",
          plug="from pkg.lib import APP\n@APP.add\ndef f(): return 1"),
    _edit("conditional import", "1", "2",
          step="import sys\nif sys.version_info >= (3,):\n    from pkg.new import f\nelse:\n    from pkg.old import f\n"
               "def run(): return f()",
          new="def f(): return 1", old="def f(): return 0"),
    _edit("import behind try", "1", "2",
          step="try:\n    from pkg.fast import f\nexcept ImportError:\n    f = None\ndef run(): return f()",
          fast="def f(): return 1"),
    _edit("condition of a module", "(9,)", "(2,)",
          step="import sys\nif sys.version_info < (9,):\n    N = 1\nelse:\n    N = 2\ndef run(): return N"),
    _edit("lazy import", "1", "2", step="def run():\n    from pkg.lib import f\n    return f()", lib="def f(): return 1"),
    _edit("lazy import of a module", "1", "2", step="def run():\n    import pkg.lib as m\n    return m.f()",
          lib="def f(): return 1"),
    _edit("value computed in a lazily imported module", "1", "2",
          step="def run():\n    from pkg.lib import V\n    return V", lib="def make(): return [1]\nV = make()"),
    _edit("effect of a lazily imported module", "5", "6",
          step="import decimal\ndef run():\n    import pkg.conf\n    return decimal.Decimal(1) / 7",
          conf="import decimal\ndecimal.getcontext().prec = 5"),
    _edit("computed getattr", "return 1", "return 2", step="import pkg.lib as m\ndef run(): return getattr(m, 'f' + '1')()",
          lib="def f1(): return 1"),
    _edit("module in a table", "7", "8", step="from pkg import lib\nT = {'a': lib}\ndef run(): return getattr(T['a'], 'f')()",
          lib="def f(): return 7"),
    _edit("importlib of a computed name", "7", "8",
          step="import importlib\ndef run(): return importlib.import_module('pkg.l' + 'ib').f()",
          lib="def f(): return 7"),
    _edit("importlib of a literal name", "7", "8",
          step="from importlib import import_module\ndef run(): return import_module('pkg.lib').f()",
          lib="def f(): return 7"),
    _edit("sys.modules", "7", "8", step="import sys, pkg.lib\ndef run(): return sys.modules['pkg.lib'].f()",
          lib="def f(): return 7"),
    _edit("__subclasses__", "7", "8",
          step="from pkg.base import A\nimport pkg.plug\ndef run(): return A.__subclasses__()[0].n", base="class A: pass",
          plug="from pkg.base import A\nclass B(A):\n    n = 7"),
    _edit("eval", "7", "8", step="def f(): return 7\ndef run(): return eval('f()')"),
    _edit("globals", "7", "8", step="def f(): return 7\ndef run(): return globals()['f']()"),
    _edit("pickle of a class", "7", "8",
          step="import pickle\ndef run(): return pickle.loads(b'cpkg.lib\\nf\\n.')()", lib="def f(): return 7"),
    _edit("module __getattr__", "7", "8", step="import pkg.lib as m\ndef run(): return m.anything",
          lib="def __getattr__(name): return 7"),
    _edit("docstring that is read", "one", "two", step='def run():\n    """one"""\n    return run.__doc__'),
    _edit("module docstring that is read", "one", "two", step='"""one"""\ndef run(): return __doc__'),
    _edit("comprehension scope", "N = 1", "N = 2", step="N = 1\ndef run():\n    [N for N in range(3)]\n    return N"),
    _edit("name bound in a class body", "N = 1", "N = 2",
          step="N = 1\nclass C:\n    N = 5\n    def m(self): return N\ndef run(): return C().m()"),
    _edit("enum member", "1", "2", step="from pkg.lib import E\ndef run(): return E.A.value",
          lib="from enum import Enum\nclass E(Enum):\n    A = 1"),
    _edit("dataclass default", "1", "2", step="from pkg.lib import D\nd = D()\ndef run(): return d.n",
          lib="from dataclasses import dataclass\n@dataclass\nclass D:\n    n: int = 1"),
    _edit("regular expression", "a+", "b+", step="import re\nR = re.compile('a+')\ndef run(): return R.findall('aabb')"),
    _edit("global declared in a function", "N = 2", "N = 3", step="N = 1\ndef set_n():\n    global N\n    N = 2\nset_n()\ndef run(): return N"),
    _edit("walrus at import", ":= 1", ":= 2", step="if (N := 1): pass\ndef run(): return N"),
    _edit("assert removed", "assert False", "pass", step="def run():\n    try:\n        assert False\n    except AssertionError: return 1"),
    _edit("order of effects", "T['a'] = 1\nT['a'] = 2", "T['a'] = 2\nT['a'] = 1",
          step="T = {}\nT['a'] = 1\nT['a'] = 2\ndef run(): return T"),
    Mutation("literal file read at import", {
        "pkg/step.py": "import json\nfrom pathlib import Path\n"
                       "with open(Path(__file__).parent / 'conf.json') as f: CONF = json.load(f)\ndef run(): return CONF",
        "pkg/conf.json": "[1]"}, {"pkg/conf.json": "[2]"}),
    Mutation("file of a computed name read at import", {
        "pkg/step.py": "import json\nfrom pathlib import Path\n"
                       "CONF = json.loads(Path(__file__).with_suffix('.js' + 'on').read_text())\ndef run(): return CONF",
        "pkg/step.json": "[1]"}, {"pkg/step.json": "[2]"}),
    Mutation("file read by a lazily imported module", {
        "pkg/step.py": "def run():\n    from pkg.lib import CONF\n    return CONF",
        "pkg/lib.py": "from pathlib import Path\nCONF = (Path(__file__).parent / 'conf.txt').read_text()",
        "pkg/conf.txt": "1"}, {"pkg/conf.txt": "2"}),
    Mutation("SQL in a data file of the package", {
        "pkg/step.py": "from pathlib import Path\ndef run(): return (Path(__file__).parent / 'sql' / 'q.sql').read_text()",
        "pkg/sql/q.sql": "SELECT 1"}, {"pkg/sql/q.sql": "SELECT 2"}),
    Mutation("data files found by pattern", {
        "pkg/step.py": "from pathlib import Path\n"
                       "def run(): return [p.read_text() for p in Path(__file__).parent.glob('*.sql')]",
        "pkg/a.sql": "1"}, {"pkg/b.sql": "2"}),
    Mutation("data files found by listing", {
        "pkg/step.py": "from pathlib import Path\n"
                       "def run(): return [p.read_text() for p in Path(__file__).parent.iterdir() if p.suffix != '.py']",
        "pkg/a.sql": "1"}, {"pkg/a.sql": "2"}),
    Mutation("regular expressions by importlib.resources", {
        "pkg/step.py": "from importlib.resources import files\ndef run(): return files('pkg').joinpath('r.txt').read_text()",
        "pkg/r.txt": "a+"}, {"pkg/r.txt": "b+"}),
    Mutation("environment variable read at import", {
        "pkg/step.py": "import os\nN = os.environ.get('LIMIT', '1')\ndef run(): return N"}, env={"LIMIT": "2"}),
    Mutation("environment variable under a condition", {
        "pkg/step.py": "import os\nif os.environ.get('LIMIT'):\n    def f(): return 1\nelse:\n    def f(): return 2\n"
                       "def run(): return f()"}, env={"LIMIT": "2"}),
    Mutation("environment variable read by a called function", {
        "pkg/step.py": "from pkg.lib import read\nN = read('LIMIT')\ndef run(): return N",
        "pkg/lib.py": "import os\ndef read(name): return os.getenv(name)"}, env={"LIMIT": "2"}),
    Mutation("environment variable read by a lazily imported module", {
        "pkg/step.py": "def run():\n    from pkg.lib import N\n    return N",
        "pkg/lib.py": "import os\nN = os.getenv('LIMIT')"}, env={"LIMIT": "2"}),
    Mutation("package that takes a module's place", {
        "pkg/step.py": _USES, "pkg/lib.py": "def f(): return 1"}, {"pkg/lib/__init__.py": "def f(): return 2"}),
)  # fmt: skip

_NEUTRAL_STEP = """
from pkg.lib import f, LIMIT


def run():
    return f(LIMIT)
"""
_NEUTRAL_LIB = """
LIMIT = 1
OTHER = 2


def f(x):
    return g(x) + 1


def g(x):
    return x


def unrelated():
    return OTHER
"""


def _neutral(name: str, **files: str) -> Mutation:
    before = {"pkg/step.py": _NEUTRAL_STEP, "pkg/lib.py": _NEUTRAL_LIB, "pkg/far.py": "def h(): return 1\n"}
    after = {f"pkg/{module}.py": text for module, text in files.items()}
    assert all(before.get(path) != text for path, text in after.items()), f"row {name!r} changes nothing"
    return Mutation(name, before, after)


NEUTRAL = (
    _neutral("comment", step=_NEUTRAL_STEP + "# a comment\n", lib="# another\n" + _NEUTRAL_LIB),
    _neutral("docstring of a function", lib=_NEUTRAL_LIB.replace("def f(x):", 'def f(x):\n    """Add one."""')),
    _neutral("docstring of a module", step=f'"""Says what it is."""{_NEUTRAL_STEP}'),
    _neutral("reformatting", lib=_NEUTRAL_LIB.replace("return g(x) + 1", "return (\n        g(\n            x,\n        )\n        + 1\n    )")),
    _neutral("quotes and numbers written otherwise", lib=_NEUTRAL_LIB.replace("LIMIT = 1\n", "LIMIT = 0x1\n")),
    _neutral("order of imported names", step=_NEUTRAL_STEP.replace("f, LIMIT", "LIMIT, f")),
    _neutral("order of imports", step="import os\nimport json\n" + _NEUTRAL_STEP),
    _neutral("import split in two", step=_NEUTRAL_STEP.replace("import f, LIMIT", "import f\nfrom pkg.lib import LIMIT")),
    _neutral("unrelated function changed", lib=_NEUTRAL_LIB.replace("return OTHER", "return OTHER + 1")),
    _neutral("unrelated function added", lib=_NEUTRAL_LIB + "\n\ndef more(): return unrelated()\n"),
    _neutral("unrelated constant changed", lib=_NEUTRAL_LIB.replace("OTHER = 2", "OTHER = 3")),
    _neutral("unrelated class added", lib=_NEUTRAL_LIB + "\n\nclass New:\n    x = 1\n"),
    _neutral("unrelated table filled", lib=_NEUTRAL_LIB + "\n\nTABLE = {}\nTABLE['a'] = 1\n"),
    _neutral("unrelated pattern compiled", lib="import re\nPATTERN = re.compile('a')\n" + _NEUTRAL_LIB),
    _neutral("unrelated dataclass instance", lib="from dataclasses import dataclass\n@dataclass(frozen=True)\nclass D:\n    n: int = 1\nD1 = D(2)\n" + _NEUTRAL_LIB),
    _neutral("unrelated function under a pure decorator", lib=_NEUTRAL_LIB + "\n\ndef deco(f):\n    def inner(): return f()\n    return inner\n@deco\ndef z(): return 1\n"),
    _neutral("unrelated step declared", step="from ftpipeline.records import step\n" + _NEUTRAL_STEP + "\n\n@step('x', code_version='1')\ndef x(inputs, params, out): return {}\n"),
    _neutral("moved function", lib=_NEUTRAL_LIB.replace("def g(x):\n    return x\n\n\n", "") + "\n\ndef g(x):\n    return x\n"),
    _neutral("moved constant", lib=_NEUTRAL_LIB.replace("LIMIT = 1\n", "") + "\n\nLIMIT = 1\n"),
    _neutral("unused import of the standard library", step="import json\n" + _NEUTRAL_STEP),
    _neutral("unused import of the project", step="import pkg.far\n" + _NEUTRAL_STEP),
    _neutral("unrelated module changed", far="def h(): return 2\n"),
    _neutral("unrelated module added", new="raise RuntimeError\n"),
    _neutral("main block", lib=_NEUTRAL_LIB + "\n\nif __name__ == '__main__':\n    print(f(1))\n"),
    _neutral("type-checking import", step="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.far import h\n" + _NEUTRAL_STEP),
    _neutral("local name equal to an unrelated global", lib="def x(): return 5\n" + _NEUTRAL_LIB),
    Mutation("data file of a package that lists other folders", {
        "pkg/step.py": "from pathlib import Path\ndef run(): return [p for p in Path('/nowhere').glob('*')]",
        "pkg/a.sql": "1"}, {"pkg/a.sql": "2"}),
    Mutation("unrelated data file", {"pkg/step.py": "def run(): return 1", "pkg/a.sql": "1"}, {"pkg/a.sql": "2"}),
    Mutation("undeclared environment variable", {"pkg/step.py": "import os\ndef run(): return os.sep"}, env={"LIMIT": "2"}),
    Mutation("home folder of another user", {
        "pkg/step.py": "from pathlib import Path\nCACHE = Path.home() / 'cache'\ndef run(): return CACHE.name"},
        env={"HOME": "/home/other"}),
)  # fmt: skip
