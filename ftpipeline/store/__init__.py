"""Everything a run leaves behind: content-addressed blobs and trees on disk, rows in SQL (contracts C2, C3, C5, C6)."""
