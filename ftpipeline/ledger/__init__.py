"""The ledger: one append-only chain of events per training job, and who consumed whose checkpoint (contract C8)."""
