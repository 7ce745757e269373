"""What running a commons takes: lessons counted and searchable, blocks, the operator's acts, counters.

It only adds, and what it adds to tables that were there may be left out: servers of the release before go on. What they
change is counted by the first start after their end.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def name_of(length: int) -> sa.types.TypeEngine[str]:
    # Names are ordered by their bytes, whatever language the database speaks.
    return sa.String(length).with_variant(postgresql.VARCHAR(length, collation="C"), "postgresql")


NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
MOMENT = sa.DateTime(timezone=True)

# The words of each listed lesson under its place, which whoever writes a row keeps. `ascii` leaves them as they are:
# they come as letters and digits alone.
SQLITE = (
    "CREATE VIEW listed_lessons AS SELECT place, words FROM lessons WHERE place IS NOT NULL",
    """CREATE VIRTUAL TABLE lesson_words USING fts5(
        words, content='listed_lessons', content_rowid='place', tokenize='ascii', detail='none', columnsize=0)""",
    """CREATE TRIGGER lesson_words_delete AFTER DELETE ON lessons WHEN old.place IS NOT NULL BEGIN
        INSERT INTO lesson_words(lesson_words, rowid, words) VALUES ('delete', old.place, old.words);
    END""",
    """CREATE TRIGGER acts_update BEFORE UPDATE ON acts BEGIN
        SELECT RAISE(ABORT, 'what was done is never changed');
    END""",
    """CREATE TRIGGER acts_delete BEFORE DELETE ON acts BEGIN
        SELECT RAISE(ABORT, 'what was done is never deleted');
    END""",
    # Before a row that is to get its number, its number is -1; a row that replaces another is not deleted before.
    """CREATE TRIGGER acts_insert BEFORE INSERT ON acts
    WHEN new.id <> -1 AND new.id <= (SELECT max(id) FROM acts) BEGIN
        SELECT RAISE(ABORT, 'what was done is never preceded');
    END""",
    """CREATE TRIGGER acts_inserted AFTER INSERT ON acts WHEN new.id < (SELECT max(id) FROM acts) BEGIN
        SELECT RAISE(ABORT, 'what was done is never preceded');
    END""",
)
POSTGRES = (
    """CREATE FUNCTION remem_refuse() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'what was done is never changed or deleted'; END $$""",
    """CREATE TRIGGER acts_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON acts
    FOR EACH STATEMENT EXECUTE FUNCTION remem_refuse()""",
    """CREATE FUNCTION remem_refuse_past() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN
        IF new.id <= (SELECT max(id) FROM acts) THEN RAISE EXCEPTION 'what was done is never preceded'; END IF;
        RETURN new;
    END $$""",
    """CREATE TRIGGER acts_appended BEFORE INSERT ON acts
    FOR EACH ROW EXECUTE FUNCTION remem_refuse_past()""",
    # Counters may be lost with the database's process, and then count from nothing.
    "ALTER TABLE counters SET UNLOGGED",
)


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    op.add_column("meta", sa.Column("policy", sa.Text()))
    op.add_column("meta", sa.Column("node", name_of(64)))
    op.add_column("files", sa.Column("held", sa.Boolean(), nullable=False, server_default=sa.text("true")))
    op.add_column("files", sa.Column("counted", sa.BigInteger()))
    op.add_column("tokens", sa.Column("expires", MOMENT))
    op.add_column("tokens", sa.Column("used", MOMENT))
    op.add_column("tokens", sa.Column("admin", sa.Boolean(), nullable=False, server_default=sa.text("false")))
    op.create_index("ix_tokens_principal", "tokens", ["principal"])
    op.drop_index("ix_statements_type_subject", "statements")
    op.add_column("statements", sa.Column("principal", name_of(64)))
    op.add_column("statements", sa.Column("counts", sa.Boolean()))
    op.create_index("ix_statements_subject_type_counts_key", "statements", ["subject", "type", "counts", "key"])
    true = "counts" if postgres else "counts = 1"
    for name, columns, where in (
        ("confirmed", ["subject", "time"], f"type = 'confirm' AND {true}"),
        ("principal", ["subject", "principal", "type", "time", "key"], "principal IS NOT NULL"),
    ):
        only = sa.text(where)
        op.create_index(f"ix_statements_{name}", "statements", columns, sqlite_where=only, postgresql_where=only)
    _create_lessons(postgres)
    op.create_table(
        "blocks",
        sa.Column("key", name_of(64), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_blocks"),
    )
    op.create_table(
        "acts",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("who", name_of(200), nullable=False),
        sa.Column("act", name_of(32), nullable=False),
        sa.Column("subject", name_of(200), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_acts"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "counters",
        sa.Column("name", name_of(200), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("expires", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_counters"),
    )
    for statement in POSTGRES if postgres else SQLITE:
        op.execute(statement)


def _create_lessons(postgres: bool) -> None:
    op.create_table(
        "lessons",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("hash", name_of(32), nullable=False),
        sa.Column("shown", name_of(64)),
        sa.Column("kind", name_of(16)),
        sa.Column("text", sa.Text()),
        sa.Column("updated", MOMENT),
        sa.Column("words", postgresql.TSVECTOR() if postgres else sa.Text()),
        sa.Column("place", sa.BigInteger()),
        sa.Column("standing", sa.Integer(), nullable=False),
        sa.Column("revoking", sa.Integer(), nullable=False),
        sa.Column("trusted", sa.Boolean(), nullable=False),
        sa.Column("confirmations", sa.Integer(), nullable=False),
        sa.Column("turned", sa.Integer(), nullable=False),
        sa.Column("unadmitted", sa.Integer(), nullable=False),
        sa.Column("last_confirmed", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_lessons"),
        sa.UniqueConstraint("hash", name="uq_lessons_hash"),
        sa.UniqueConstraint("place", name="uq_lessons_place"),
    )
    if postgres:
        # Without `fastupdate`: every search would read what was not sorted in yet, up to some megabytes of it.
        op.create_index(
            "ix_lessons_words", "lessons", ["words"], postgresql_using="gin", postgresql_with={"fastupdate": "off"}
        )


def downgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    if not postgres:
        op.execute("DROP TABLE lesson_words")
        op.execute("DROP VIEW listed_lessons")
    for table in ("counters", "acts", "blocks", "lessons"):
        op.drop_table(table)
    if postgres:
        op.execute("DROP FUNCTION remem_refuse()")
        op.execute("DROP FUNCTION remem_refuse_past()")
    for name in ("confirmed", "principal", "subject_type_counts_key"):
        op.drop_index(f"ix_statements_{name}", "statements")
    op.create_index("ix_statements_type_subject", "statements", ["type", "subject"])
    op.drop_index("ix_tokens_principal", "tokens")
    for table, columns in (
        ("tokens", ("admin", "used", "expires")),
        ("files", ("counted", "held")),
        ("statements", ("counts", "principal")),
        ("meta", ("node", "policy")),
    ):
        for column in columns:
            op.drop_column(table, column)
