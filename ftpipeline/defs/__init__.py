"""Components of the packaged code location; each folder holds a defs.yaml."""
