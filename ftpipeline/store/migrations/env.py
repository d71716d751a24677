"""What alembic runs; the connection, already in a transaction, comes from `ftpipeline.store.schema.migrate`."""

from alembic import context

from ftpipeline.store.schema import VERSION_TABLE
from ftpipeline.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, version_table=VERSION_TABLE
)
with context.begin_transaction():
    context.run_migrations()
