-- A file of version 3 as SQL. A later version of this program has to read it; it does not change.
PRAGMA auto_vacuum = INCREMENTAL;
CREATE TABLE runs (
    run INTEGER PRIMARY KEY AUTOINCREMENT,
    started INTEGER NOT NULL,
    ended INTEGER,
    kind TEXT NOT NULL,
    version TEXT NOT NULL,
    pid INTEGER NOT NULL
);
CREATE TABLE calls (
    run INTEGER NOT NULL,
    call INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    client TEXT NOT NULL,
    dialect TEXT NOT NULL,
    operation TEXT NOT NULL,
    transport TEXT NOT NULL,
    upstream TEXT NOT NULL,
    model TEXT,
    profile TEXT NOT NULL,
    lane TEXT NOT NULL,
    request_id TEXT,
    inherited_sends INTEGER NOT NULL,
    state TEXT NOT NULL,
    left_out INTEGER NOT NULL,
    committed INTEGER,
    outcome TEXT,
    why TEXT,
    status INTEGER,
    sends INTEGER,
    waited INTEGER,
    took INTEGER,
    last_fault TEXT,
    capacity_faults INTEGER,
    maybe_billed_twice INTEGER,
    received INTEGER,
    sent INTEGER,
    tokens_input INTEGER,
    tokens_cached INTEGER,
    tokens_output INTEGER,
    pool TEXT,
    bound TEXT,
    inherited_failed INTEGER,
    inherited_resends INTEGER,
    PRIMARY KEY (run, call)
) WITHOUT ROWID;
CREATE INDEX calls_opened ON calls (opened);
CREATE INDEX calls_request_id ON calls (request_id) WHERE request_id IS NOT NULL;
CREATE TABLE sends (
    run INTEGER NOT NULL,
    call INTEGER NOT NULL,
    send INTEGER NOT NULL,
    wait_why TEXT,
    wait_began INTEGER,
    wait_planned INTEGER,
    wait_took INTEGER,
    wait_waiting INTEGER,
    wait_notices INTEGER,
    began INTEGER,
    may_run_twice INTEGER NOT NULL,
    head INTEGER,
    status INTEGER,
    request_id TEXT,
    failed INTEGER,
    fault TEXT,
    evidence TEXT,
    code TEXT,
    rule TEXT,
    told INTEGER,
    tokens_input INTEGER,
    tokens_cached INTEGER,
    tokens_output INTEGER,
    moved_why TEXT,
    moved_upstream TEXT,
    moved_lane TEXT,
    moved_model TEXT,
    way TEXT,
    PRIMARY KEY (run, call, send)
) WITHOUT ROWID;
CREATE INDEX sends_request_id ON sends (request_id) WHERE request_id IS NOT NULL;
INSERT INTO runs VALUES (1, 1796040000000, 1796043600000, 'serve', '0.1.0', 4711);
INSERT INTO runs VALUES (2, 1796050000000, NULL, 'run', '0.1.0', 4712);
INSERT INTO calls VALUES (1, 1, 1796040131012, 'codex', 'openai_responses', 'generation', 'http', 'openai', 'gpt-x', 'interactive', '0f3a', 'client-1', 0, 'closed', 0, 84000, 'served', NULL, 200, 3, 65300, 92000, 'broken_stream', 1, 1, 1204, 18332, 51200, 48000, 912, 'main', NULL, 0, 0);
INSERT INTO calls VALUES (1, 2, 1796040140000, 'claude_code', 'anthropic', 'generation', 'http', 'anthropic', NULL, 'patient', '77b1', NULL, 2, 'closed', 40, NULL, 'gave_up', 'patience_spent', 503, 42, 3600000, 3610000, 'overloaded', 42, 0, 99, 120, NULL, NULL, NULL, 'main', 'encrypted_content', 2, 1);
INSERT INTO calls VALUES (2, 1, 1796050001000, 'other', 'generic', 'other', 'websocket', 'api.example', 'm', 'strict', '9c', NULL, 0, 'waiting', 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0);
INSERT INTO sends VALUES (1, 1, 1, NULL, NULL, NULL, NULL, NULL, NULL, 10, 0, 230, 503, 'req_1', 240, 'at_capacity', 'refused', 'server_is_overloaded', 'code `server_is_overloaded`', 4000, 100, 0, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO sends VALUES (1, 1, 2, 'told', 240, 4000, 4300, NULL, 0, 4550, 0, 5000, 200, NULL, 21000, 'broken_stream', 'maybe_ran', NULL, NULL, NULL, NULL, NULL, NULL, 'failed', 'second', '5e9d', 'gpt-y', '{"missed":[{"by":"direct","why":"dns"}]}');
INSERT INTO sends VALUES (1, 1, 3, 'line', 21000, NULL, 61000, 5, 2, 82000, 1, 83500, 200, 'req_3', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO sends VALUES (1, 2, 1, 'cut', 0, 2000, 2000, NULL, 0, 2000, 0, NULL, NULL, NULL, 2100, 'never_sent', 'never_sent', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '{"by":"direct","missed":[{"by":"http://proxy.example:3128","why":"refused"}]}');
INSERT INTO sends VALUES (1, 2, 42, 'backoff', 3500000, 60000, 60000, NULL, 0, 3600000, 0, 3600100, 503, NULL, 3600100, 'overloaded', 'refused', NULL, 'status 503', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO sends VALUES (2, 1, 1, 'circuit', 0, 30000, NULL, 3, 0, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
PRAGMA user_version = 3;
