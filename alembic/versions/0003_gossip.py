"""What gossip takes: the items of what is held, what is not wanted again, peers, and what they cost in a night.

It only adds, so servers of the release before go on. The files that are there, and those that these servers still put
there, are given their items by the first start after that.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def name_of(length: int) -> sa.types.TypeEngine[str]:
    # Names are ordered by their bytes, whatever language the database speaks.
    return sa.String(length).with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")


MOMENT = sa.DateTime(timezone=True)
BYTES = sa.LargeBinary()


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    op.create_table(
        "items",
        sa.Column("start", BYTES, nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("sum", BYTES, nullable=False),
        sa.Column("items", BYTES, nullable=False),
        sa.PrimaryKeyConstraint("start", name="pk_items"),
    )
    if postgres:
        # Hashes cannot be compressed. Apart from the row, what reads the heads does not read them.
        op.execute("ALTER TABLE items ALTER COLUMN items SET STORAGE EXTERNAL")
    else:
        op.create_index("ix_items_heads", "items", ["start", "size", "sum"])
    op.create_table(
        "versions",
        sa.Column("id", BYTES, nullable=False),
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("time", sa.BigInteger(), nullable=False),
        sa.Column("digest", name_of(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_versions"),
        sa.UniqueConstraint("key", name="uq_versions_key"),
        sa.ForeignKeyConstraint(["key"], ["files.key"], name="fk_versions_key"),
    )
    op.create_table(
        "proofs",
        sa.Column("id", BYTES, nullable=False),
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("line_a", BYTES, nullable=False),
        sa.Column("line_b", BYTES, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_proofs"),
        sa.UniqueConstraint("key", name="uq_proofs_key"),
    )
    op.create_table(
        "ledger",
        sa.Column("id", BYTES, nullable=False),
        sa.Column("code", name_of(64), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
    )
    op.create_table(
        "peers",
        sa.Column("url", name_of(2_048), nullable=False),
        sa.Column("key", name_of(64)),
        sa.Column("added", MOMENT, nullable=False),
        sa.Column("allow_private", sa.Boolean(), nullable=False),
        sa.Column("allow_http", sa.Boolean(), nullable=False),
        sa.Column("published", sa.Boolean(), nullable=False),
        sa.Column("tried", MOMENT),
        sa.Column("answered", MOMENT),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("next_try", MOMENT),
        sa.Column("promised", sa.BigInteger(), nullable=False),
        sa.Column("delivered", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("url", name="pk_peers"),
    )
    op.create_index("ix_peers_key", "peers", ["key"])
    op.create_table(
        "spent",
        sa.Column("account", name_of(2_048), nullable=False),
        sa.Column("night", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("checks", sa.BigInteger(), nullable=False),
        sa.Column("origins", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "night", name="pk_spent"),
    )


def downgrade() -> None:
    for table in ("spent", "peers", "ledger", "proofs", "versions", "items"):
        op.drop_table(table)
