"""The guard: what the detector remembers of each job, when it last looked at all of them, and incidents."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_digest = sa.String(71)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "detector_states",
        sa.Column("job_id", sa.String, primary_key=True),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("seq", sa.Integer, nullable=False),
        sa.Column("stage", sa.String, nullable=False),
        sa.Column("looked", sa.String, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
    )
    op.create_table(
        "detector_envelopes",
        sa.Column("family", _digest, primary_key=True),
        sa.Column("envelope", sa.Text, nullable=False),
    )
    op.create_table(
        "guard_scans",
        sa.Column("scope", sa.String, primary_key=True),
        sa.Column("finished", sa.String, nullable=False),
    )
    op.create_table(
        "guard_incidents",
        sa.Column("incident", sa.String, primary_key=True),
        sa.Column("job_id", sa.String, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("onset", sa.BigInteger, nullable=False),
        sa.Column("last_good", sa.BigInteger),
        sa.Column("opened", sa.String, nullable=False),
        sa.Column("divergence", _digest, nullable=False),
        sa.Column("planned", _digest),
        sa.Column("executed", _digest),
        sa.Column("isolated", sa.String),
        sa.Column("report", sa.Text),
    )
    op.create_index("guard_incidents_job", "guard_incidents", ["job_id"])
