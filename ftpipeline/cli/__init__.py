"""The command line: one module a family of verbs, one line an error, one JSON document with `--json`."""
