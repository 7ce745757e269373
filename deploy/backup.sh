#!/bin/sh
# Backs a commons up into a new file of the folder REMEM_BACKUPS, and removes those older than REMEM_BACKUP_DAYS days.
#
# It goes by the variables of the server: a database of PostgreSQL is dumped, one of SQLite copied while it is in use.
# A backup has its name only once it is whole. The node's key is kept beside: without it the commons is another one.
set -eu
umask 077

backups=${REMEM_BACKUPS:?names the folder for the backups}
mkdir -p "$backups"
stamp=$(date -u +%Y%m%dT%H%M%SZ)

if [ -n "${REMEM_DATABASE_URL:-}" ]; then
    whole=$backups/commons-$stamp.dump
    pg_dump --format=custom --file="$whole.part" --dbname="postgresql://${REMEM_DATABASE_URL#*://}"
else
    whole=$backups/commons-$stamp.db
    remem-server backup "$whole.part"
fi
mv "$whole.part" "$whole"
cp -p "${REMEM_DATA:-data}/node.key" "$backups/node.key.part"
mv "$backups/node.key.part" "$backups/node.key"

find "$backups" -maxdepth 1 -name 'commons-*' -type f -mtime "+${REMEM_BACKUP_DAYS:-14}" -exec rm -f {} +
echo "$whole"
