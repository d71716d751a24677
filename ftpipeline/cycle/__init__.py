"""The retraining cycle, wired without an orchestrator: which port meets which backend, and what follows what."""
