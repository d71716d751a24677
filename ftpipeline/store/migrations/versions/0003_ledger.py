"""The ledger: events that are never changed, the head of each job, and the signatures over heads.

What the tables promise is enforced by triggers, so that it also binds those who come past this program: an event is
inserted only as the next one of its job, under the job's lease as it stands; nothing is changed or removed; the head of
a job is what its newest event says. `ftpipeline.ledger.refusals` knows the words that the refusals begin with.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_digest = sa.String(71)
_rare = sa.text("kind <> 'metrics'")
_newer = sa.text("schema <> 'ftpipeline.ledger_event/1'")

_FIXED = ("ledger_events", "ledger_signed_heads")

_KINDS = (
    "'job_opened', 'metrics', 'evaluation', 'checkpoint_saved', 'checkpoint_consumed', 'artifact_consumed', "
    "'divergence_detected', 'isolation_action', 'job_closed'"
)
_LEASE = "ledger lease: it was lost, or never held"
_HEAD = "ledger head: the event is not the next one of its job"
_NO_CHANGE = "ledger fixed: what is written is never changed"


def upgrade() -> None:
    """Create the tables and the triggers."""
    _create_events()
    _create_heads()
    if op.get_bind().dialect.name == "sqlite":
        _guard_sqlite()
    else:
        _guard_postgresql()


def _create_events() -> None:
    op.create_table(
        "ledger_events",
        sa.Column("job_id", sa.String, primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("prev", _digest),
        sa.Column("digest", _digest, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.Float, nullable=False),
        sa.Column("time", sa.String, nullable=False),
        sa.Column("schema", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        # Who adds a kind gives events a new schema, so that no reader passes over what it does not know.
        sa.CheckConstraint(f"schema <> 'ftpipeline.ledger_event/1' OR kind IN ({_KINDS})", "ledger_events_kinds"),
    )
    op.create_index(
        "ledger_events_kind", "ledger_events", ["kind", "job_id", "seq"], sqlite_where=_rare, postgresql_where=_rare
    )
    op.create_index(
        "ledger_events_newer", "ledger_events", ["job_id", "seq"], sqlite_where=_newer, postgresql_where=_newer
    )


def _create_heads() -> None:
    op.create_table(
        "ledger_jobs",
        sa.Column("job_id", sa.String, primary_key=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("digest", _digest, nullable=False),
        sa.Column("step", sa.BigInteger, nullable=False),
        sa.Column("epoch", sa.Float, nullable=False),
        sa.Column("is_open", sa.Boolean, nullable=False),
        sa.Column("opened", sa.Text, nullable=False),
    )
    op.create_table(
        "ledger_signed_heads",
        sa.Column("job_id", sa.String, primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("envelope", sa.Text, nullable=False),
    )


def _guard_sqlite() -> None:
    for table in _FIXED:
        for change in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{change.lower()} BEFORE {change} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{_NO_CHANGE}'); END"
            )
    op.execute(
        "CREATE TRIGGER ledger_jobs_no_delete BEFORE DELETE ON ledger_jobs "
        f"BEGIN SELECT RAISE(ABORT, '{_NO_CHANGE}'); END"
    )
    op.execute(
        f"""
        CREATE TRIGGER ledger_events_next BEFORE INSERT ON ledger_events BEGIN
            SELECT RAISE(ABORT, '{_LEASE}') WHERE NOT EXISTS (
                SELECT 1 FROM leases
                WHERE name = 'job:' || NEW.job_id AND generation = NEW.generation AND holder IS NOT NULL
            );
            SELECT RAISE(ABORT, '{_HEAD}') WHERE NOT EXISTS (
                SELECT 1 FROM ledger_jobs WHERE job_id = NEW.job_id AND NEW.seq = seq + 1 AND NEW.prev = digest
                    AND NEW.attempt = attempt + (NEW.kind = 'job_opened')
                UNION ALL
                SELECT 1 WHERE NEW.seq = 0 AND NEW.prev IS NULL AND NEW.attempt = 1 AND NEW.kind = 'job_opened'
                    AND NOT EXISTS (SELECT 1 FROM ledger_jobs WHERE job_id = NEW.job_id)
            );
        END
        """
    )
    op.execute(
        """
        CREATE TRIGGER ledger_events_opened AFTER INSERT ON ledger_events WHEN NEW.kind = 'job_opened' BEGIN
            INSERT INTO ledger_jobs (job_id, attempt, seq, digest, step, epoch, is_open, opened)
            VALUES (NEW.job_id, NEW.attempt, NEW.seq, NEW.digest, NEW.step, NEW.epoch, 1, NEW.payload)
            ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, seq = excluded.seq,
                digest = excluded.digest, step = excluded.step, epoch = excluded.epoch, is_open = 1,
                opened = excluded.opened;
        END
        """
    )
    op.execute(
        """
        CREATE TRIGGER ledger_events_head AFTER INSERT ON ledger_events WHEN NEW.kind <> 'job_opened' BEGIN
            UPDATE ledger_jobs SET seq = NEW.seq, digest = NEW.digest, step = NEW.step, epoch = NEW.epoch,
                is_open = is_open AND NEW.kind <> 'job_closed'
            WHERE job_id = NEW.job_id;
        END
        """
    )
    for change, old in (("INSERT", "-1"), ("UPDATE", "OLD.seq")):
        op.execute(
            f"""
            CREATE TRIGGER ledger_jobs_{change.lower()} BEFORE {change} ON ledger_jobs
            WHEN NEW.seq < {old} OR NOT EXISTS (
                SELECT 1 FROM ledger_events WHERE job_id = NEW.job_id AND seq = NEW.seq AND digest = NEW.digest
            ) BEGIN SELECT RAISE(ABORT, '{_NO_CHANGE}'); END
            """
        )


def _guard_postgresql() -> None:
    """Create the triggers; they run as their owner, since who may only insert could not look at heads and leases."""
    _function("ledger_no_change", f"BEGIN RAISE EXCEPTION '{_NO_CHANGE}'; END")
    for table in _FIXED:
        _trigger(f"{table}_no_change", f"BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW", "ledger_no_change")
    _trigger("ledger_jobs_no_delete", "BEFORE DELETE ON ledger_jobs FOR EACH ROW", "ledger_no_change")
    for table in (*_FIXED, "ledger_jobs"):
        _trigger(f"{table}_no_truncate", f"BEFORE TRUNCATE ON {table}", "ledger_no_change")
    _function(
        "ledger_next_event",
        f"""
        DECLARE head ledger_jobs%ROWTYPE;
        BEGIN
            PERFORM 1 FROM leases
                WHERE name = 'job:' || NEW.job_id AND generation = NEW.generation AND holder IS NOT NULL FOR SHARE;
            IF NOT FOUND THEN RAISE EXCEPTION '{_LEASE}'; END IF;
            SELECT * INTO head FROM ledger_jobs WHERE job_id = NEW.job_id FOR UPDATE;
            IF FOUND THEN
                IF NEW.seq = head.seq + 1 AND NEW.prev = head.digest
                    AND NEW.attempt = head.attempt + (NEW.kind = 'job_opened')::int THEN RETURN NEW; END IF;
            ELSIF NEW.seq = 0 AND NEW.prev IS NULL AND NEW.attempt = 1 AND NEW.kind = 'job_opened' THEN
                RETURN NEW;
            END IF;
            RAISE EXCEPTION '{_HEAD}';
        END
        """,
    )
    _trigger("ledger_events_next", "BEFORE INSERT ON ledger_events FOR EACH ROW", "ledger_next_event")
    _function(
        "ledger_keep_head",
        """
        BEGIN
            IF NEW.kind = 'job_opened' THEN
                INSERT INTO ledger_jobs (job_id, attempt, seq, digest, step, epoch, is_open, opened)
                VALUES (NEW.job_id, NEW.attempt, NEW.seq, NEW.digest, NEW.step, NEW.epoch, true, NEW.payload)
                ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, seq = excluded.seq,
                    digest = excluded.digest, step = excluded.step, epoch = excluded.epoch, is_open = true,
                    opened = excluded.opened;
            ELSE
                UPDATE ledger_jobs SET seq = NEW.seq, digest = NEW.digest, step = NEW.step, epoch = NEW.epoch,
                    is_open = is_open AND NEW.kind <> 'job_closed'
                WHERE job_id = NEW.job_id;
            END IF;
            RETURN NULL;
        END
        """,
    )
    _trigger("ledger_events_head", "AFTER INSERT ON ledger_events FOR EACH ROW", "ledger_keep_head")
    _function(
        "ledger_check_head",
        f"""
        BEGIN
            PERFORM 1 FROM ledger_events WHERE job_id = NEW.job_id AND seq = NEW.seq AND digest = NEW.digest;
            IF NOT FOUND OR (TG_OP = 'UPDATE' AND NEW.seq < OLD.seq) THEN RAISE EXCEPTION '{_NO_CHANGE}'; END IF;
            RETURN NEW;
        END
        """,
    )
    _trigger("ledger_jobs_head", "BEFORE INSERT OR UPDATE ON ledger_jobs FOR EACH ROW", "ledger_check_head")


def _function(name: str, body: str) -> None:
    """Create a trigger function that no temporary table of the inserting user can deceive."""
    schema = op.get_bind().scalar(sa.text("SELECT quote_ident(current_schema())"))
    op.execute(
        f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER "
        f"SET search_path = {schema}, pg_temp AS $body$ {body} $body$"
    )


def _trigger(name: str, when: str, function: str) -> None:
    op.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {function}()")
