package agents

import (
	"context"
	"time"

	"github.com/airlock-mcp/airlock/admission/budget"
	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/database"
)

// Schema creates the tables of agents and of their budgets, as the first version of a database.
const Schema = budget.Schema + `
CREATE TABLE agent (
	id          TEXT PRIMARY KEY,
	name        TEXT NOT NULL,
	type        TEXT NOT NULL,
	principal   TEXT NOT NULL,
	owner       TEXT NOT NULL, -- who registered it
	permissions TEXT NOT NULL, -- JSON of Permissions
	status      TEXT NOT NULL,
	token_hash  BLOB NOT NULL UNIQUE, -- SHA-256
	created     INTEGER NOT NULL, -- seconds since 1970
	rotated     INTEGER NOT NULL
) STRICT;
CREATE INDEX agent_owner ON agent (owner, id);
CREATE TABLE conversation (
	agent TEXT NOT NULL REFERENCES agent (id),
	id    TEXT NOT NULL,
	state TEXT NOT NULL, -- JSON of conversationState
	PRIMARY KEY (agent, id)
) STRICT, WITHOUT ROWID;
CREATE TABLE question (
	agent        TEXT NOT NULL REFERENCES agent (id),
	conversation TEXT NOT NULL,
	step         INTEGER NOT NULL,
	subject      TEXT NOT NULL, -- digest of everything that the answer is bound to
	id           TEXT NOT NULL,
	state        TEXT NOT NULL, -- open, approved, refused
	approver     TEXT NOT NULL,
	expires      INTEGER NOT NULL,
	PRIMARY KEY (agent, conversation, step, subject)
) STRICT, WITHOUT ROWID;`

// SchemaInherited adds the limits inherited from the caller that registered an agent.
const SchemaInherited = `
ALTER TABLE agent ADD COLUMN inherited TEXT NOT NULL DEFAULT '{}'; -- JSON of storedInherited
ALTER TABLE agent ADD COLUMN expires INTEGER NOT NULL DEFAULT 0;   -- seconds since 1970; 0: never`

// SchemaApprovers adds who approved an announced action with a credential.
const SchemaApprovers = `
ALTER TABLE question ADD COLUMN approvers TEXT NOT NULL DEFAULT '[]'; -- JSON of []caller.Caller`

// SchemaLists adds the indexes that agents and their budgets are listed by.
const SchemaLists = budget.SchemaDays + `
CREATE INDEX agent_principal ON agent (principal, id);`

// SchemaDebits adds the records of debits.
const SchemaDebits = budget.SchemaDebits

// SchemaSelections adds the indexes of agents by profile and by credential. Triggers keep the table of
// credentials equal to the column.
const SchemaSelections = `
CREATE INDEX agent_profile ON agent (json_extract(inherited, '$.profile'), id);
CREATE INDEX agent_owner_profile ON agent (owner, json_extract(inherited, '$.profile'), id);
CREATE TABLE agent_credential (
	credential TEXT NOT NULL,
	agent      TEXT NOT NULL,
	PRIMARY KEY (credential, agent)
) STRICT, WITHOUT ROWID;
INSERT INTO agent_credential SELECT DISTINCT c.value ->> 'id', agent.id
	FROM agent, json_each(inherited, '$.credentials') c;
CREATE TRIGGER agent_registered AFTER INSERT ON agent BEGIN
	INSERT INTO agent_credential SELECT DISTINCT value ->> 'id', new.id FROM json_each(new.inherited, '$.credentials');
END;
CREATE TRIGGER agent_inherits AFTER UPDATE OF inherited ON agent BEGIN
	DELETE FROM agent_credential WHERE agent = old.id AND credential IN
		(SELECT value ->> 'id' FROM json_each(old.inherited, '$.credentials'));
	INSERT INTO agent_credential SELECT DISTINCT value ->> 'id', new.id FROM json_each(new.inherited, '$.credentials');
END;` + database.PostgreSQL + `
CREATE INDEX agent_profile ON agent (json_extract(inherited, '$.profile'), id);
CREATE INDEX agent_owner_profile ON agent (owner, json_extract(inherited, '$.profile'), id);
CREATE TABLE agent_credential (
	credential TEXT NOT NULL,
	agent      TEXT NOT NULL,
	PRIMARY KEY (credential, agent)
);
CREATE FUNCTION agent_inherits() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	IF TG_OP = 'UPDATE' THEN
		DELETE FROM agent_credential WHERE agent = old.id AND credential IN (SELECT json_extract(value, '$.id')
			FROM json_each(json_extract(old.inherited, '$.credentials')));
	END IF;
	INSERT INTO agent_credential SELECT DISTINCT json_extract(value, '$.id'), new.id
		FROM json_each(json_extract(new.inherited, '$.credentials'));
	RETURN NULL;
END $$;
CREATE TRIGGER agent_inherits AFTER INSERT OR UPDATE OF inherited ON agent
	FOR EACH ROW EXECUTE FUNCTION agent_inherits();`

// Log records every change. It is an audit.Log.
type Log interface {
	Append(ctx context.Context, r audit.Record) error
}

// Options of a service. Database and Log are required.
type Options struct {
	Database *database.DB // with the tables of Schema
	Log      Log
	// Budgets are the limits of each principal over all its agents, and of each session of an
	// agent, keyed by budget.Principal and budget.Session. A missing entry means no limit.
	Budgets map[string]budget.Limits
	Now     func() time.Time // nil means time.Now
}

// Service registers agents. Its methods are safe for concurrent use.
type Service struct {
	opts       Options
	ledger     *budget.Ledger
	remembered recentAgents
}

// New returns a service.
func New(opts Options) *Service {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Service{opts: opts, ledger: budget.New(opts.Now, opts.Budgets)}
}

// Ledger returns the ledger of the agents' budgets.
func (s *Service) Ledger() *budget.Ledger { return s.ledger }
