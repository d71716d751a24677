"""The PostgreSQL role of training workers: it may insert events of the ledger, and nothing else (contract C13).

The triggers on events run as their owner; they look at leases and heads for the role, which can look at nothing itself.
Whoever administers the server gives a worker's login the role: `GRANT ftpipeline_worker TO <login>`. What `grant` does
is this, in the schema that holds the tables:

    CREATE ROLE ftpipeline_worker NOLOGIN;
    GRANT USAGE ON SCHEMA <schema> TO ftpipeline_worker;
    GRANT INSERT ON ledger_events TO ftpipeline_worker;
"""

from sqlalchemy import Connection, text

ROLE = "ftpipeline_worker"

_EXISTS = text("SELECT count(*) > 0 FROM pg_roles WHERE rolname = :role")
_MAY_CREATE = text("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user")
_MAY_GRANT = text(
    "SELECT pg_has_role(tableowner, 'USAGE') FROM pg_tables WHERE schemaname = current_schema() "
    "AND tablename = 'ledger_events'"
)
_CREATE = text(
    f"""
    DO $$ BEGIN
        CREATE ROLE {ROLE} NOLOGIN;
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
        NULL; -- another database of the server was first
    END $$
    """
)
_GRANT = text(
    f"""
    DO $$ BEGIN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO {ROLE}', current_schema());
        GRANT INSERT ON ledger_events TO {ROLE};
    END $$
    """
)
_MAY_INSERT = text(
    "SELECT has_schema_privilege(:role, current_schema(), 'USAGE') AND "
    "has_table_privilege(:role, 'ledger_events', 'INSERT')"
)


def grant(connection: Connection) -> bool:
    """Let the role insert events, as far as the connected user may decide that.

    Args:
        connection: a writing transaction on PostgreSQL.

    Returns:
        Whether the role can insert events now; if not, an administrator runs the statements above.
    """
    if not connection.scalar(_EXISTS, {"role": ROLE}):
        if not connection.scalar(_MAY_CREATE):
            return False
        connection.execute(_CREATE)
    if connection.scalar(_MAY_GRANT):
        connection.execute(_GRANT)
    return bool(connection.scalar(_MAY_INSERT, {"role": ROLE}))
