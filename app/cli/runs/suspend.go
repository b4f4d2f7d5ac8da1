package runs

import (
	"fmt"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/daemon"
)

type runsSuspendVerb struct {
	RunID string `arg:"" name:"run" help:"The run's ID."`
}

// Run has the running daemon suspend a run that waits for a person.
func (v *runsSuspendVerb) Run(s *verb.Streams) error {
	if err := daemon.SuspendRun(v.RunID); err != nil {
		return verb.NoDaemon(err)
	}
	_, err := fmt.Fprintf(s.Err, "airlock: %s is suspended until its calls are answered, or airlock runs resume\n",
		verb.Clean(v.RunID))
	return err
}

type runsResumeVerb struct {
	RunID string `arg:"" name:"run" help:"The run's ID."`
}

// Run has the running daemon continue a suspended run.
func (v *runsResumeVerb) Run(s *verb.Streams) error {
	if err := daemon.ResumeRun(v.RunID); err != nil {
		return verb.NoDaemon(err)
	}
	_, err := fmt.Fprintf(s.Err, "airlock: %s goes on once a sandbox is free; its calls still wait for their answers\n",
		verb.Clean(v.RunID))
	return err
}
