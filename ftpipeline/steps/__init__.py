"""The steps of the cycle: functions of values and paths that know neither the store nor the ledger nor each other."""
