#!/bin/sh
# Stores a result only if no later owner has been there: fencing in SQL. SPDX-License-Identifier: Apache-2.0
#
#   divvy partition --path /work_queues --items-from queues.txt -- ./fencing.sh results.db done
#   divvy lock nightly-report ./fencing.sh results.db done
#
# The table "fence" has the largest token that was seen for each item. A writer raises it to its own token and writes
# its result in one transaction; where the token there is larger, nothing is written, and the exit status is 1. The
# statements are those of docs/fencing.md, here for SQLite.
#
# ERA counts how often the ZooKeeper ensemble began from scratch, since tokens begin from small numbers then.
if [ $# -ne 2 ]; then
    echo "usage: fencing.sh DATABASE VALUE, with DIVVY_TOKEN and DIVVY_ITEM or DIVVY_LOCK_* in the environment" >&2
    exit 2
fi
item=${DIVVY_ITEM-$DIVVY_LOCK_NAME} token=${DIVVY_TOKEN:-$DIVVY_LOCK_TOKEN} era=${ERA:-0}
for number in "$token" "$era"; do
    case $number in
    '' | *[!0-9]*)
        echo "fencing.sh: \"$token\" and \"$era\" are to be numbers" >&2
        exit 2
        ;;
    esac
done

# A program binds parameters to a statement. The shell of SQLite cannot, so a text is handed over in hexadecimal:
# whatever it has inside, it never becomes SQL.
text() {
    printf "CAST(x'%s' AS TEXT)" "$(printf %s "$1" | od -An -v -tx1 | tr -d ' \n')"
}
item=$(text "$item")
value=$(text "$2")

written=$(sqlite3 -batch -bail "$1" <<END
.timeout 10000
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS fence (item TEXT PRIMARY KEY, era INTEGER NOT NULL, token INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS results (item TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO fence VALUES ($item, $era, $token) ON CONFLICT DO NOTHING;
UPDATE fence SET era = $era, token = $token WHERE item = $item AND (era, token) <= ($era, $token);
INSERT OR REPLACE INTO results SELECT $item, $value WHERE changes() = 1;
SELECT changes();
COMMIT;
END
) || exit
if [ "$written" != 1 ]; then
    echo "fencing.sh: refused, a later owner has been there" >&2
    exit 1
fi
