"""The guard: is a job diverging, whom has it tainted since when, and what is to be done with every job (contract C9).

Values in, verdicts out. Nothing here reads a clock, a database or the ledger, and one file is opened: the metrics file.

`detect` (points -> stage and evidence), `trace` (consumptions -> taint), `plan` (taint -> one action a job) and
`attribute` (replays -> cause) each take the frozen values of the one before.
"""
