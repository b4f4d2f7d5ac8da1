package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contract"
	"github.com/airlock-mcp/airlock/app/credentials"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/catalog"
)

// contractRuns is the number of cases that run concurrently.
const contractRuns = 2

// proveContract runs every case of the runtime contract on the installed system and prints a
// table. It uses the servers of the contract, not the configured ones, and writes recordings
// and generated files to a temporary directory.
func (v *Verb) proveContract(ctx context.Context, c *config.Config, s *verb.Streams) (err error) {
	cases, err := contract.Cases()
	if err != nil {
		return err
	}
	opened, remove, err := openContract(ctx, c, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close(), remove()) }()
	fmt.Fprintln(s.Out)
	failed := 0
	var failures strings.Builder // after the table, where they are seen
	for i, end := range runCases(ctx, opened, cases) {
		word := "ok"
		if end.err != nil {
			failed++
			word = "FAIL"
			fmt.Fprintf(&failures, "\n%s: %v\n", cases[i].Name, end.err)
		}
		fmt.Fprintf(s.Out, "%-5s %5d ms  %s\n", word, end.took.Milliseconds(), cases[i].Name)
	}
	fmt.Fprintf(s.Out, "%s\n%d cases, %d failed\n", &failures, len(cases), failed)
	if failed > 0 {
		return verb.ExitError(verb.ExitFailed)
	}
	return ctx.Err()
}

// caseEnd is the outcome of one case.
type caseEnd struct {
	took time.Duration
	err  error
}

func runCases(ctx context.Context, opened *system.System, cases []contract.Case) []caseEnd {
	ends := make([]caseEnd, len(cases))
	slots := make(chan struct{}, contractRuns)
	var running sync.WaitGroup
	for i, one := range cases {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			started := time.Now()
			ends[i].err = runCase(ctx, opened, one)
			ends[i].took = time.Since(started)
		})
	}
	running.Wait()
	return ends
}

// runCase runs the program of a case and compares the outcome. A program that could not be
// started is reported in the same way as by `airlock run`.
func runCase(ctx context.Context, opened *system.System, c contract.Case) error {
	person := newPerson()
	request := orchestrator.Request{
		Language: c.Language, Code: c.Code, Timeout: time.Duration(c.Want.Timeout),
		Caller: verb.LocalCaller(), OnSuspend: person.noteSuspended, Alone: true, Background: c.Want.Background,
	}
	defer opened.Approvals().Register(request.Caller.Session, person)()
	outcome, err := opened.Orchestrator().Run(ctx, request)
	if err != nil {
		outcome = &orchestrator.Outcome{Envelope: orchestrator.Refused(
			request, verb.Version, orchestrator.RefusalType(err), credentials.Sentence(err.Error()))}
	}
	line, err := outcome.Envelope.Line()
	if err != nil {
		return err
	}
	err = c.Check(line, outcome.Stdout, outcome.Stderr)
	if n := person.suspensions(); n < c.Want.Suspended {
		err = errors.Join(err, fmt.Errorf("suspended: got %d times, want at least %d", n, c.Want.Suspended))
	}
	return err
}

// openContract opens a system with the contract's servers in a temporary directory. The caller
// must call remove after it has closed the system.
func openContract(ctx context.Context, c *config.Config, s *verb.Streams) (_ *system.System, remove func() error,
	err error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(directories.Home, "contract-")
	if err != nil {
		return nil, nil, fmt.Errorf("preparing the contract's cases: %w", err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			err = errors.Join(err, remove())
		}
	}()
	if err := os.Chmod(dir, 0o755); err != nil { // sandboxes must be able to read the wrappers
		return nil, nil, err
	}
	directories.Audit, directories.Keys = filepath.Join(dir, "audit"), filepath.Join(dir, "keys")
	directories.Wrappers, directories.Approvals = filepath.Join(dir, "wrappers"), filepath.Join(dir, "approvals")
	directories.Recordings = filepath.Join(dir, "recordings")
	changed, snapshot, err := contractServers(c)
	if err != nil {
		return nil, nil, err
	}
	opened, err := system.Open(ctx, changed, system.Options{
		Version: verb.Version, Logger: verb.NewLogger(s.Err, false, slog.LevelError), Directories: &directories,
		Fixed: &system.Fixed{Snapshot: snapshot, Upstream: contractUpstream{}},
	})
	return opened, remove, err
}

// contractServers returns a copy of the configuration in which the servers are replaced by the
// contract's servers, and their tools.
func contractServers(c *config.Config) (*config.Config, *catalog.Snapshot, error) {
	allow, deny := map[string][]string{}, map[string][]string{}
	items := map[string][]json.RawMessage{contract.DemoServer: nil, contract.StoreServer: nil}
	for _, tool := range contract.Tools() {
		definition, err := json.Marshal(tool)
		if err != nil {
			return nil, nil, err
		}
		items[tool.Server] = append(items[tool.Server], definition)
		if !tool.Denied && !tool.Asks {
			allow[tool.Server] = append(allow[tool.Server], tool.Name)
		}
		if tool.Denied {
			deny[tool.Server] = append(deny[tool.Server], tool.Name)
		}
	}
	changed := *c
	changed.Servers = nil
	changed.Runs.SuspendAfter = suspendAfter
	servers := []catalog.Server{{ID: contract.MissingServer, Problem: "it exited at once"}}
	for id, definitions := range items {
		tools, warnings := catalog.ParseTools(id, definitions)
		servers = append(servers, catalog.Server{ID: id, Tools: tools, Warnings: warnings})
		changed.Servers = append(changed.Servers, config.Server{ID: id,
			Settings: config.Settings{Allow: allow[id], Deny: deny[id]}})
	}
	snapshot, err := catalog.NewSnapshot(servers)
	return &changed, snapshot, err
}

// contractUpstream answers the calls of the contract's cases.
type contractUpstream struct{}

// Call returns the answer of the contract's tool.
func (contractUpstream) Call(_ context.Context, _, name string, arguments json.RawMessage) (json.RawMessage, error) {
	return contract.Answer(name, arguments)
}
