"""Runs a memoised step honestly: one key for everything that can change the result, one row for every put."""
