SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE kept_schema.steersman_ask_changes (
    last bigint NOT NULL
);
CREATE TABLE kept_schema.steersman_asks (
    number bigint NOT NULL,
    session text NOT NULL,
    ask_id text NOT NULL,
    tool_use_id text,
    turn text,
    tool text NOT NULL,
    digest text NOT NULL,
    ask text NOT NULL,
    version integer NOT NULL,
    state text NOT NULL,
    created double precision NOT NULL,
    expires double precision,
    assignee text,
    answered_by text DEFAULT ''::text NOT NULL,
    answer text DEFAULT ''::text NOT NULL,
    mark text DEFAULT ''::text NOT NULL,
    ended_at double precision,
    used_mark text,
    used_at double precision,
    opened_change bigint NOT NULL,
    delegated_change bigint DEFAULT 0 NOT NULL,
    ended_change bigint DEFAULT 0 NOT NULL,
    last_change bigint NOT NULL
);
ALTER TABLE kept_schema.steersman_asks ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME kept_schema.steersman_asks_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE kept_schema.steersman_budgets (
    name text NOT NULL,
    usd double precision NOT NULL,
    per text NOT NULL,
    turns bigint DEFAULT 0 NOT NULL,
    cost double precision DEFAULT 0 NOT NULL
);
CREATE TABLE kept_schema.steersman_conversations (
    number bigint NOT NULL,
    session text NOT NULL,
    name text NOT NULL,
    version integer NOT NULL,
    created double precision NOT NULL,
    created_by text NOT NULL,
    machine text DEFAULT ''::text NOT NULL,
    begun bigint DEFAULT 0 NOT NULL,
    lease_owner text DEFAULT ''::text NOT NULL,
    lease_token text DEFAULT ''::text NOT NULL,
    lease_machine text DEFAULT ''::text NOT NULL,
    lease_until double precision DEFAULT 0 NOT NULL,
    lease_change bigint DEFAULT 0 NOT NULL
);
ALTER TABLE kept_schema.steersman_conversations ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME kept_schema.steersman_conversations_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE kept_schema.steersman_journals (
    conversation text NOT NULL,
    seq bigint NOT NULL,
    entry text NOT NULL
);
CREATE TABLE kept_schema.steersman_reservations (
    job text NOT NULL,
    budget text NOT NULL,
    period text NOT NULL,
    usd double precision NOT NULL,
    cost double precision
);
CREATE TABLE kept_schema.steersman_schema (
    version integer NOT NULL
);
CREATE TABLE kept_schema.steersman_session_entries (
    session bigint NOT NULL,
    "position" bigint NOT NULL,
    uuid text,
    size integer NOT NULL,
    entry json NOT NULL,
    batch text
);
CREATE TABLE kept_schema.steersman_sessions (
    id bigint NOT NULL,
    project_key text NOT NULL,
    session_id text NOT NULL,
    subpath text NOT NULL,
    mtime bigint NOT NULL,
    entries bigint NOT NULL,
    summary json
);
ALTER TABLE kept_schema.steersman_sessions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME kept_schema.steersman_sessions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE kept_schema.steersman_spendings (
    budget text NOT NULL,
    period text NOT NULL,
    spent double precision DEFAULT 0 NOT NULL,
    reserved double precision DEFAULT 0 NOT NULL
);
CREATE TABLE kept_schema.steersman_turns (
    number bigint NOT NULL,
    session text NOT NULL,
    uuid text NOT NULL,
    name text,
    prompt text NOT NULL,
    send_when text NOT NULL,
    version integer NOT NULL,
    state text NOT NULL,
    outcome text DEFAULT ''::text NOT NULL,
    created double precision NOT NULL,
    ended_at double precision,
    ended_by text DEFAULT ''::text NOT NULL,
    begun_change bigint NOT NULL,
    last_change bigint NOT NULL
);
ALTER TABLE kept_schema.steersman_turns ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME kept_schema.steersman_turns_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE kept_schema.steersman_workers (
    worker text NOT NULL,
    machine text NOT NULL,
    pid bigint NOT NULL,
    slots bigint NOT NULL,
    agents text NOT NULL,
    state text NOT NULL,
    started double precision NOT NULL,
    lease_until double precision NOT NULL,
    faults text DEFAULT ''::text NOT NULL
);
INSERT INTO kept_schema.steersman_ask_changes VALUES (8);
INSERT INTO kept_schema.steersman_asks OVERRIDING SYSTEM VALUE VALUES (1, 's1', 'open', 't1', 'u1', 'permission Bash', '4111dd78f52ed56613c7089051baea7069acac60ec79027a2e8ad44b20efd7d7', '{"id":"open","session":"s1","kind":"permission","created":1.0,"payload":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls","timeout":5},"tool_use_id":"t1","title":"","display_name":"","description":"","mcp_server":null,"permission_suggestions":[],"blocked_path":null,"decision_reason":null,"decision_reason_type":null,"matched_ask_rule":null,"suppress_always_allow_rule":false,"default_to_no":false,"classifier_approvable":null,"agent_id":null,"requires_user_interaction":false},"turn":"u1"}', 1, 'open', 1795114989.626547, NULL, NULL, '', '', '', NULL, NULL, NULL, 3, 0, 0, 3);
INSERT INTO kept_schema.steersman_asks OVERRIDING SYSTEM VALUE VALUES (2, 's1', 'answered', 't1', 'u1', 'permission Bash', '01853b600844ac1c38c64e42caa9e1f0d6cb3138d96ca0835502520c71d4704c', '{"id":"answered","session":"s1","kind":"permission","created":1.0,"payload":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm"},"tool_use_id":"t1","title":"","display_name":"","description":"","mcp_server":null,"permission_suggestions":[],"blocked_path":null,"decision_reason":null,"decision_reason_type":null,"matched_ask_rule":null,"suppress_always_allow_rule":false,"default_to_no":false,"classifier_approvable":null,"agent_id":null,"requires_user_interaction":false},"turn":"u1"}', 1, 'answered', 1795114989.669001, NULL, NULL, 'ann', '{"behavior":"allow"}', 'mark', 1795114989.681665, NULL, NULL, 4, 0, 5, 5);
INSERT INTO kept_schema.steersman_budgets VALUES ('team', 2, 'ever', 0, 0);
INSERT INTO kept_schema.steersman_conversations OVERRIDING SYSTEM VALUE VALUES (1, 's1', 'customer 7', 1, 1795114989.525875, 'a', 'm', 1, '', '', 'm', 0, 1);
INSERT INTO kept_schema.steersman_journals VALUES ('customer 7', 1, '{"seq":1,"at":1.5,"kind":"noise","frame":{"type":"assistant"}}');
INSERT INTO kept_schema.steersman_journals VALUES ('customer 7', 2, '{"seq":2,"at":1.5,"kind":"noise","frame":{"type":"result"}}');
INSERT INTO kept_schema.steersman_reservations VALUES ('job 1', 'team', '', 0.5, NULL);
INSERT INTO kept_schema.steersman_schema VALUES (5);
INSERT INTO kept_schema.steersman_session_entries VALUES (1, 1, '1', 94, '{"type":"user","uuid":"1","message":{"role":"user","content":"Gr\u00fc\u00dfe \u0000 \ud800"}}', '50710765-a757-4577-b200-b2cc98522e76');
INSERT INTO kept_schema.steersman_session_entries VALUES (1, 2, NULL, 96, '{"type":"custom-title","customTitle":"one","number":1.0,"large":1000000000000000000000000000000}', NULL);
INSERT INTO kept_schema.steersman_session_entries VALUES (2, 1, '1', 94, '{"type":"user","uuid":"1","message":{"role":"user","content":"Gr\u00fc\u00dfe \u0000 \ud800"}}', '8f8ba5fb-cd39-4c8e-8474-ad4803b33529');
INSERT INTO kept_schema.steersman_sessions OVERRIDING SYSTEM VALUE VALUES (1, '-home-ann', 's1', '', 1795114989422, 2, '{"is_sidechain":false,"first_prompt":"Gr\u00fc\u00dfe \u0000 \ud800","first_prompt_locked":true,"custom_title":"one"}');
INSERT INTO kept_schema.steersman_sessions OVERRIDING SYSTEM VALUE VALUES (2, '-home-ann', 's1', 'subagents/agent-1', 1795114989457, 1, NULL);
INSERT INTO kept_schema.steersman_spendings VALUES ('team', '', 0, 0.5);
INSERT INTO kept_schema.steersman_turns OVERRIDING SYSTEM VALUE VALUES (1, 's1', 'u1', 'invoice 7', '{"content":"pay","fields":{"priority":"next"}}', 'later', 1, 'open', '', 1795114989.565657, NULL, '', 2, 2);
INSERT INTO kept_schema.steersman_workers VALUES ('worker 1', 'm', 7, 4, 'default
night', 'working', 1795114989.77025, 1795115049.793702, 'the news: lost');
SELECT pg_catalog.setval('kept_schema.steersman_asks_number_seq', 2, true);
SELECT pg_catalog.setval('kept_schema.steersman_conversations_number_seq', 1, true);
SELECT pg_catalog.setval('kept_schema.steersman_sessions_id_seq', 2, true);
SELECT pg_catalog.setval('kept_schema.steersman_turns_number_seq', 1, true);
ALTER TABLE ONLY kept_schema.steersman_asks
    ADD CONSTRAINT steersman_asks_pkey PRIMARY KEY (number);
ALTER TABLE ONLY kept_schema.steersman_asks
    ADD CONSTRAINT steersman_asks_session_ask_id_key UNIQUE (session, ask_id);
ALTER TABLE ONLY kept_schema.steersman_budgets
    ADD CONSTRAINT steersman_budgets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY kept_schema.steersman_conversations
    ADD CONSTRAINT steersman_conversations_pkey PRIMARY KEY (number);
ALTER TABLE ONLY kept_schema.steersman_conversations
    ADD CONSTRAINT steersman_conversations_session_key UNIQUE (session);
ALTER TABLE ONLY kept_schema.steersman_journals
    ADD CONSTRAINT steersman_journals_pkey PRIMARY KEY (conversation, seq);
ALTER TABLE ONLY kept_schema.steersman_reservations
    ADD CONSTRAINT steersman_reservations_pkey PRIMARY KEY (job);
ALTER TABLE ONLY kept_schema.steersman_session_entries
    ADD CONSTRAINT steersman_session_entries_pkey PRIMARY KEY (session, "position");
ALTER TABLE ONLY kept_schema.steersman_sessions
    ADD CONSTRAINT steersman_sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY kept_schema.steersman_sessions
    ADD CONSTRAINT steersman_sessions_project_key_session_id_subpath_key UNIQUE (project_key, session_id, subpath);
ALTER TABLE ONLY kept_schema.steersman_spendings
    ADD CONSTRAINT steersman_spendings_pkey PRIMARY KEY (budget, period);
ALTER TABLE ONLY kept_schema.steersman_turns
    ADD CONSTRAINT steersman_turns_pkey PRIMARY KEY (number);
ALTER TABLE ONLY kept_schema.steersman_turns
    ADD CONSTRAINT steersman_turns_session_uuid_key UNIQUE (session, uuid);
ALTER TABLE ONLY kept_schema.steersman_workers
    ADD CONSTRAINT steersman_workers_pkey PRIMARY KEY (worker);
CREATE INDEX steersman_asks_changed ON kept_schema.steersman_asks USING btree (last_change);
CREATE INDEX steersman_asks_known ON kept_schema.steersman_asks USING btree (session, digest);
CREATE INDEX steersman_asks_named ON kept_schema.steersman_asks USING btree (ask_id);
CREATE INDEX steersman_asks_open ON kept_schema.steersman_asks USING btree (expires) WHERE (state = 'open'::text);
CREATE UNIQUE INDEX steersman_session_uuids ON kept_schema.steersman_session_entries USING btree (session, uuid) WHERE (uuid IS NOT NULL);
CREATE INDEX steersman_turns_unsettled ON kept_schema.steersman_turns USING btree (session, number) WHERE (state <> 'settled'::text);
ALTER TABLE ONLY kept_schema.steersman_session_entries
    ADD CONSTRAINT steersman_session_entries_session_fkey FOREIGN KEY (session) REFERENCES kept_schema.steersman_sessions(id) ON DELETE CASCADE;
