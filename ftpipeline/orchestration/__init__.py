"""The Dagster layer: thin, and the only place that knows Dagster."""
