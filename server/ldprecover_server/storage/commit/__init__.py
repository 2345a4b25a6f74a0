"""The commit of submissions: exactly once, and durable before the answer.

A group of submissions is one transaction, by one of two paths: one statement (`one_statement`) or
several for all its rounds (`transaction`). The tests that prove a case are in
tests/server/storage, but for the last.

| case | path | proved by |
|---|---|---|
| one round, new keys, this process wrote its tally last | one statement | test_one_statement |
| the same, after a new connection | several statements | test_fencing |
| the same, but another process changed the tally or took a key | one statement fails on token, \
  count or key and stores nothing; then several | test_fencing, test_one_statement |
| a key is stored already, or comes twice in the group | several statements | test_storage |
| several rounds, or a process's first report | several statements | test_storage |
| the round ends meanwhile | one statement fails on the cleared token; several wait for the \
  round's row and answer CLOSED or GONE | test_fencing |
| unknown outcome: lost connection, killed server | the same group again; stored keys are \
  duplicates | tests/system/test_histories.py, test_crashes.py |

Durability is the database's: SQLite with synchronous=FULL, Postgres with synchronous_commit=on.
"""
