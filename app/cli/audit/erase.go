package audit

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/state"
	"github.com/airlock-mcp/airlock/audit"
)

type auditEraseVerb struct {
	verb.AuditFlags
	Principal string `required:"" placeholder:"NAME" help:"The person, as in the report; or issuer#name for the person of one issuer."`
	verb.PeriodFlags
	JSON bool `name:"json" help:"Print JSON."`
}

// Run erases what Airlock keeps of a person's calls beside the log.
func (v *auditEraseVerb) Run(ctx context.Context, s *verb.Streams) error {
	if err := verb.Guarded("erasing arguments"); err != nil {
		return err
	}
	c, err := v.LoadState(s.Err)
	if err != nil {
		return err
	}
	directories, err := v.Find(s.Err)
	if err != nil {
		return err
	}
	if verb.IsMissing(directories.Audit) {
		return noLogYet(s)
	}
	e := audit.Erasure{Principal: v.Principal}
	if e.Period, err = v.Period(); err != nil {
		return err
	}
	recordings, err := state.EraseArguments(ctx, c, &e)
	if errors.Is(err, audit.ErrNoArgumentsKey) {
		return verb.WithHint(err, "put audit-arguments.key into "+directories.Keys+
			" while this command runs: without it, nobody can tell whose arguments are in a file", verb.ExitFailed)
	}
	if err != nil {
		return err
	}
	for _, path := range e.Damaged {
		fmt.Fprintf(s.Err, "airlock: %q cannot be read and may still have arguments of %s\n", path,
			verb.Clean(v.Principal))
	}
	if v.JSON {
		err = verb.PrintLine(s.Out, struct {
			audit.Erasure
			Recordings int `json:"recordings"`
		}{e, recordings})
	} else {
		_, err = fmt.Fprintf(s.Out, "erased the arguments of %d calls and %d recordings of %d runs\n", e.Calls,
			recordings,
			len(e.Runs))
	}
	if err == nil && len(e.Damaged) > 0 {
		return verb.ExitError(verb.ExitFailed)
	}
	return err
}
