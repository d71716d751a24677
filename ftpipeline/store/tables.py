"""Every table of the database in one place; the migrations create exactly these.

Digests are text, times are UTC ISO 8601 text with offset, JSON columns hold canonical JSON text. The partition of an
unpartitioned asset is the empty text, so that it can be part of keys.

A step result with a `tombstone` no longer stands for its key; its row stays, because lineage is never forgotten. `used`
is when a result was last made or reused, to within an hour.

The rows of `ledger_events` are never changed: triggers refuse it, and keep the head of each job in `ledger_jobs`.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

_Sequence = BigInteger().with_variant(Integer, "sqlite")  # SQLite autoincrements only an INTEGER primary key
_STANDING = text("tombstone IS NULL")
_RARE_EVENT = text("kind <> 'metrics'")
_NEWER_EVENT = text("schema <> 'ftpipeline.ledger_event/1'")

step_results = Table(
    "step_results",
    metadata,
    Column("seq", _Sequence, primary_key=True, autoincrement=True),
    Column("key", String(71), nullable=False),
    Column("step", String, nullable=False),
    Column("code", String(71), nullable=False),
    Column("inputs", Text, nullable=False),
    Column("params", Text, nullable=False),
    Column("output", String(71), nullable=False),
    Column("facts", Text, nullable=False),
    Column("run_id", String, nullable=False),
    Column("manifest", String(71)),
    Column("isolation", String, nullable=False),
    Column("started", String, nullable=False),
    Column("finished", String, nullable=False),
    Column("cpu_seconds", Float, nullable=False),
    Column("environment", String(71), nullable=False),
    Column("libraries", Text, nullable=False),
    Column("escalations", Text, nullable=False),
    Column("used", String, nullable=False),
    Column("tombstone", String),
    Index("step_results_key", "key", unique=True, sqlite_where=_STANDING, postgresql_where=_STANDING),
    Index("step_results_output", "output"),
)

leases = Table(
    "leases",
    metadata,
    Column("name", String, primary_key=True),
    Column("holder", String),
    Column("generation", Integer, nullable=False),
    Column("beats", Integer, nullable=False),
    Column("ttl", Float, nullable=False),
)

quarantine_marks = Table(
    "quarantine_marks",
    metadata,
    Column("seq", _Sequence, primary_key=True, autoincrement=True),
    Column("digest", String(71), nullable=False),
    Column("receipt", String(71), nullable=False),
    Column("reason", Text, nullable=False),
    Column("marked", String, nullable=False),
    Column("lifted", String),
    Column("lift_receipt", String(71)),
    Column("lift_reason", Text),
    UniqueConstraint("digest", "receipt"),
)

erased_blobs = Table(
    "erased_blobs",
    metadata,
    Column("digest", String(71), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("time", String, nullable=False),
)

erased_keys = Table(
    "erased_keys",
    metadata,
    Column("digest", String(71), primary_key=True),
    Column("reason", Text, nullable=False),
    Column("time", String, nullable=False),
)

pointers = Table(
    "pointers",
    metadata,
    Column("seq", _Sequence, primary_key=True, autoincrement=True),
    Column("asset", String, nullable=False),
    Column("partition", String, nullable=False),
    Column("run_id", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("digest", String(71), nullable=False),
    Column("committed", String, nullable=False),
    Index("pointers_asset", "asset", "partition", "run_id"),
    Index("pointers_digest", "digest"),
)

eval_set_versions = Table(
    "eval_set_versions",
    metadata,
    Column("name", String, primary_key=True),
    Column("version", String, primary_key=True),
    Column("digest", String(71), nullable=False),
)

registry_entries = Table(
    "registry_entries",
    metadata,
    Column("id", _Sequence, primary_key=True, autoincrement=True),
    Column("name", String, nullable=False),
    Column("artifact", String(71), nullable=False),
    Column("manifest", String(71), nullable=False),
    Column("base_model", String(71), nullable=False),
    Column("report", String(71), nullable=False),
    Column("gate", String(71), nullable=False),
    Column("verdict", String, nullable=False),
    Column("reasons", Text, nullable=False),
    Column("stage", String, nullable=False),
    Column("run_id", String, nullable=False),
    Column("week", String, nullable=False),
    Column("registered", String, nullable=False),
    UniqueConstraint("name", "artifact", "manifest"),
)

registry_pointers = Table(
    "registry_pointers",
    metadata,
    Column("name", String, primary_key=True),
    Column("stage", String, primary_key=True),
    Column("entry_id", _Sequence, ForeignKey("registry_entries.id")),
    Column("generation", Integer, nullable=False),
)

registry_history = Table(
    "registry_history",
    metadata,
    Column("seq", _Sequence, primary_key=True, autoincrement=True),
    Column("name", String, nullable=False),
    Column("entry_id", _Sequence, ForeignKey("registry_entries.id"), nullable=False),
    Column("digest", String(71), nullable=False),
    Column("from_stage", String),
    Column("to_stage", String, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("actor", String, nullable=False),
    Column("reason", Text, nullable=False),
    Column("receipt", String(71)),
    Column("time", String, nullable=False),
    Index("registry_history_name", "name"),
)

production_pins = Table(
    "production_pins",
    metadata,
    Column("run_id", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("digest", String(71)),
    Column("generation", Integer, nullable=False),
)

ledger_events = Table(
    "ledger_events",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("attempt", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("prev", String(71)),
    Column("digest", String(71), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("epoch", Float, nullable=False),
    Column("time", String, nullable=False),
    Column("schema", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("payload", Text, nullable=False),
    Index("ledger_events_kind", "kind", "job_id", "seq", sqlite_where=_RARE_EVENT, postgresql_where=_RARE_EVENT),
    Index("ledger_events_newer", "job_id", "seq", sqlite_where=_NEWER_EVENT, postgresql_where=_NEWER_EVENT),
)

ledger_jobs = Table(
    "ledger_jobs",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("digest", String(71), nullable=False),
    Column("step", BigInteger, nullable=False),
    Column("epoch", Float, nullable=False),
    Column("is_open", Boolean, nullable=False),
    Column("opened", Text, nullable=False),
)

ledger_signed_heads = Table(
    "ledger_signed_heads",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    Column("envelope", Text, nullable=False),
)

detector_states = Table(
    "detector_states",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("stage", String, nullable=False),
    Column("looked", String, nullable=False),
    Column("state", Text, nullable=False),
)

detector_envelopes = Table(
    "detector_envelopes",
    metadata,
    Column("family", String(71), primary_key=True),
    Column("envelope", Text, nullable=False),
)

guard_scans = Table(
    "guard_scans",
    metadata,
    Column("scope", String, primary_key=True),
    Column("finished", String, nullable=False),
)

guard_incidents = Table(
    "guard_incidents",
    metadata,
    Column("incident", String, primary_key=True),
    Column("job_id", String, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("onset", BigInteger, nullable=False),
    Column("last_good", BigInteger),
    Column("opened", String, nullable=False),
    Column("divergence", String(71), nullable=False),
    Column("planned", String(71)),
    Column("executed", String(71)),
    Column("isolated", String),
    Column("report", Text),
    Index("guard_incidents_job", "job_id"),
)
