"""The list of keys whose rows are not taken in any more."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "erased_keys",
        sa.Column("digest", sa.String(71), primary_key=True),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("time", sa.String, nullable=False),
    )
