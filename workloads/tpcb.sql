-- TPC-B-like, statement for statement pgbench's built-in of that name. Without transactions the four
-- tables are locked together where the engine can do that, so that the balances still agree.
\set aid random(1, 100000 * :scale)
\set bid random(1, 1 * :scale)
\set tid random(1, 10 * :scale)
\set delta random(-5000, 5000)
\if :cap_transactions
BEGIN;
\elif :cap_lock_tables
LOCK TABLES pgbench_accounts WRITE, pgbench_tellers WRITE, pgbench_branches WRITE, pgbench_history WRITE;
\endif
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
\if :cap_transactions
COMMIT;
\elif :cap_lock_tables
UNLOCK TABLES;
\endif
