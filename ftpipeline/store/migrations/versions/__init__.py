"""One module a revision; published ones are never edited."""
