"""The first schema: step results with lineage, leases, quarantine, pointers, eval sets and the registry."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

_sequence = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_digest = sa.String(71)
_standing = sa.text("tombstone IS NULL")


def upgrade() -> None:
    """Create every table."""
    _create_results()
    _create_leases()
    _create_marks()
    _create_pointers()
    _create_registry()


def _create_results() -> None:
    op.create_table(
        "step_results",
        sa.Column("seq", _sequence, primary_key=True, autoincrement=True),
        sa.Column("key", _digest, nullable=False),
        sa.Column("step", sa.String, nullable=False),
        sa.Column("code", _digest, nullable=False),
        sa.Column("inputs", sa.Text, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("output", _digest, nullable=False),
        sa.Column("facts", sa.Text, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("manifest", _digest),
        sa.Column("isolation", sa.String, nullable=False),
        sa.Column("started", sa.String, nullable=False),
        sa.Column("finished", sa.String, nullable=False),
        sa.Column("cpu_seconds", sa.Float, nullable=False),
        sa.Column("environment", sa.String(71), nullable=False),
        sa.Column("libraries", sa.Text, nullable=False),
        sa.Column("escalations", sa.Text, nullable=False),
        sa.Column("used", sa.String, nullable=False),
        sa.Column("tombstone", sa.String),
    )
    op.create_index(
        "step_results_key", "step_results", ["key"], unique=True, sqlite_where=_standing, postgresql_where=_standing
    )
    op.create_index("step_results_output", "step_results", ["output"])


def _create_leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("holder", sa.String),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("beats", sa.Integer, nullable=False),
        sa.Column("ttl", sa.Float, nullable=False),
    )


def _create_marks() -> None:
    op.create_table(
        "quarantine_marks",
        sa.Column("seq", _sequence, primary_key=True, autoincrement=True),
        sa.Column("digest", _digest, nullable=False),
        sa.Column("receipt", _digest, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("marked", sa.String, nullable=False),
        sa.Column("lifted", sa.String),
        sa.Column("lift_receipt", _digest),
        sa.Column("lift_reason", sa.Text),
        sa.UniqueConstraint("digest", "receipt"),
    )
    op.create_table(
        "erased_blobs",
        sa.Column("digest", _digest, primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("time", sa.String, nullable=False),
    )


def _create_pointers() -> None:
    op.create_table(
        "pointers",
        sa.Column("seq", _sequence, primary_key=True, autoincrement=True),
        sa.Column("asset", sa.String, nullable=False),
        sa.Column("partition", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("digest", _digest, nullable=False),
        sa.Column("committed", sa.String, nullable=False),
    )
    op.create_index("pointers_asset", "pointers", ["asset", "partition", "run_id"])
    op.create_index("pointers_digest", "pointers", ["digest"])
    op.create_table(
        "eval_set_versions",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("version", sa.String, primary_key=True),
        sa.Column("digest", _digest, nullable=False),
    )


def _create_registry() -> None:
    op.create_table(
        "registry_entries",
        sa.Column("id", _sequence, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("artifact", _digest, nullable=False),
        sa.Column("manifest", _digest, nullable=False),
        sa.Column("base_model", _digest, nullable=False),
        sa.Column("report", _digest, nullable=False),
        sa.Column("gate", _digest, nullable=False),
        sa.Column("verdict", sa.String, nullable=False),
        sa.Column("reasons", sa.Text, nullable=False),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("run_id", sa.String, nullable=False),
        sa.Column("week", sa.String, nullable=False),
        sa.Column("registered", sa.String, nullable=False),
        sa.UniqueConstraint("name", "artifact", "manifest"),
    )
    op.create_table(
        "registry_pointers",
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("stage", sa.String, primary_key=True),
        sa.Column("entry_id", _sequence, sa.ForeignKey("registry_entries.id")),
        sa.Column("generation", sa.Integer, nullable=False),
    )
    op.create_table(
        "registry_history",
        sa.Column("seq", _sequence, primary_key=True, autoincrement=True),
        sa.Column("name", sa.String, nullable=False),
        sa.Column("entry_id", _sequence, sa.ForeignKey("registry_entries.id"), nullable=False),
        sa.Column("digest", _digest, nullable=False),
        sa.Column("from_stage", sa.String),
        sa.Column("to_stage", sa.String, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("receipt", _digest),
        sa.Column("time", sa.String, nullable=False),
    )
    op.create_index("registry_history_name", "registry_history", ["name"])
    op.create_table(
        "production_pins",
        sa.Column("run_id", sa.String, primary_key=True),
        sa.Column("name", sa.String, primary_key=True),
        sa.Column("digest", _digest),
        sa.Column("generation", sa.Integer, nullable=False),
    )
