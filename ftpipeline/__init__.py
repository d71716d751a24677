"""ftpipeline: weekly LoRA retraining as Dagster assets that can be trusted and audited.

The story of one cycle, in ten steps:

 1. **snapshot** freezes the rolling window of rows that the source query returns before the cut.
 2. **curate** removes duplicates, signatures and personal data, and keeps human-verified labels of a closed list.
 3. **split** assigns whole groups to train and validation and checks both for leakage from every eval set.
 4. **train** fits a LoRA adapter in a worker process of its own, from a frozen manifest and nothing else.
 5. **export** merges and quantises; the exported file is what every later step measures.
 6. **evaluate** scores that file, and the one in production, on the same content-addressed eval sets.
 7. **register** records the candidate, or the rejection with its reasons, behind a gate that cannot be walked around.
 8. **roll out** moves a stage pointer by compare-and-swap, from candidate to production.
 9. **monitor** watches the losses of concurrent jobs and the ledger of who consumed whose checkpoint.
10. **trigger** starts the next round: a schedule, a person, or a sensor that isolates a diverged job.

Everything big is a content-addressed blob (`ftpipeline.store`), everything transactional is a row in SQL, and a step is
reused only when nothing that could change its result has changed (`ftpipeline.engine`). The floors of the package, from
the top down, are listed in `setup.cfg` and checked by import-linter. Importing this package loads nothing heavy.
"""

__version__ = "0.1.0"
