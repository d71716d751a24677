"""Which artifact serves under a name: entries, stage pointers moved by compare-and-swap, and their history (C11)."""
