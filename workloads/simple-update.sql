-- tpcb without the tellers and branches, which all clients share: pgbench's built-in of this name.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
\if :cap_transactions
BEGIN;
\elif :cap_lock_tables
LOCK TABLES pgbench_accounts WRITE, pgbench_history WRITE;
\endif
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
\if :cap_transactions
COMMIT;
\elif :cap_lock_tables
UNLOCK TABLES;
\endif
