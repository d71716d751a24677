"""Dotted chains: how an expression names what it loads, calls or stores."""

import ast


def chain_of(node: ast.expr) -> str | None:
    """Return `a.b.c` for a name with attributes, None for every other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def root_of(node: ast.expr) -> str | None:
    """Return the chain that attributes and items of `node` are taken from; None if that is no name."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
        if (chain := chain_of(node)) is not None:
            return chain
    return None


def callee_of(node: ast.expr) -> str:
    """Return the chain of what is called: `?.method` for a method of an unnamed object, `?` for anything else."""
    if (chain := chain_of(node)) is not None:
        return chain
    if not isinstance(node, ast.Attribute):
        return "?"
    return f"{root_of(node) or '?'}.{node.attr}"


def literal_import(node: ast.Call) -> str | None:
    """Return the module that `import_module("a.b")` names; None for every other call."""
    callee = chain_of(node.func) or ""
    if callee.rpartition(".")[2] not in {"import_module", "__import__"} or len(node.args) != 1 or node.keywords:
        return None
    name = node.args[0]
    if isinstance(name, ast.Constant) and isinstance(name.value, str) and not name.value.startswith("."):
        return name.value
    return None
