"""The first tables: files, their contents and statements, tokens."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def name_of(length: int) -> sa.types.TypeEngine[str]:
    # Names are ordered by their bytes, whatever language the database speaks.
    return sa.String(length).with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")


def upgrade() -> None:
    meta = op.create_table(
        "meta",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("changes", sa.BigInteger(), nullable=False),
        sa.Column("judgement", name_of(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_meta"),
    )
    op.bulk_insert(meta, [{"id": 1, "changes": 0, "judgement": ""}])
    op.create_table(
        "files",
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("origin", name_of(16), nullable=False),
        sa.Column("seal", sa.BigInteger()),
        sa.Column("digest", name_of(64), nullable=False),
        sa.Column("seal_time", sa.DateTime(timezone=True)),
        sa.Column("records", sa.Integer(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("updated", sa.DateTime(timezone=True), nullable=False),
        sa.Column("cursor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_files"),
        sa.UniqueConstraint("cursor", name="uq_files_cursor"),
    )
    op.create_index("ix_files_origin", "files", ["origin"])
    op.create_table(
        "contents",
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("topics", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["key"], ["files.key"], name="fk_contents_key"),
        sa.PrimaryKeyConstraint("key", name="pk_contents"),
    )
    op.create_table(
        "statements",
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("type", name_of(8), nullable=False),
        sa.Column("subject", name_of(64), nullable=False),
        sa.Column("time", sa.DateTime(timezone=True)),
        sa.Column("kind", name_of(16)),
        sa.Column("text", sa.Text()),
        sa.ForeignKeyConstraint(["key"], ["files.key"], name="fk_statements_key"),
        sa.PrimaryKeyConstraint("key", "type", "subject", name="pk_statements"),
    )
    op.create_index("ix_statements_type_subject", "statements", ["type", "subject"])
    op.create_table(
        "skipped",
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("type", name_of(8), nullable=False),
        sa.Column("subject", name_of(64), nullable=False),
        sa.Column("code", name_of(32), nullable=False),
        sa.Column("expected", sa.Text(), nullable=False),
        sa.Column("got", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["key"], ["files.key"], name="fk_skipped_key"),
        sa.PrimaryKeyConstraint("key", "type", "subject", name="pk_skipped"),
    )
    op.create_table(
        "equivocations",
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("seal", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("digest_a", name_of(64), nullable=False),
        sa.Column("digest_b", name_of(64), nullable=False),
        sa.Column("line_a", sa.LargeBinary(), nullable=False),
        sa.Column("line_b", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["key"], ["files.key"], name="fk_equivocations_key"),
        sa.PrimaryKeyConstraint("key", "seal", name="pk_equivocations"),
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token_hash", name_of(64), nullable=False),
        sa.Column("label", name_of(100), nullable=False),
        sa.Column("principal", name_of(64), nullable=False),
        sa.Column("key", name_of(64)),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_tokens_key", "tokens", ["key"])


def downgrade() -> None:
    for table in ("tokens", "equivocations", "skipped", "statements", "contents", "files", "meta"):
        op.drop_table(table)
