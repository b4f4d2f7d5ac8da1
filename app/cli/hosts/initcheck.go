package hosts

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/cli/doctor"
	imagesverbs "github.com/airlock-mcp/airlock/app/cli/images"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/hosts"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/app/trust"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/truncate"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// startTime is the timeout of the start that proves a plan. It includes the start of the servers.
const startTime = 3 * time.Minute

// prove shows that the plan's configuration works before any host's file is changed: it
// builds the images that are missing, makes the checks of airlock doctor, and starts
// Airlock once as the hosts would.
func (v *Init) prove(ctx context.Context, s *verb.Streams, plan *hosts.Plan,
	proposals []contained.Proposal) (err error) {
	progress := &verb.Streams{In: s.In, Out: s.Err, Err: s.Err}
	if err := buildContained(ctx, progress, plan, proposals); err != nil {
		return unproved(err)
	}
	draft, remove, err := plan.Draft()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	flags := verb.ConfigFlag{Config: draft}
	if err := buildMissing(ctx, progress, flags); err != nil {
		return unproved(err)
	}
	e := &doctor.Examination{}
	e.Config, e.Unreadable = flags.Load(s.Err)
	fmt.Fprintln(s.Err, "airlock: checking this machine")
	results := (&doctor.Verb{ConfigFlag: flags}).Examine(ctx, e)
	var failed []doctor.Checked
	for _, r := range results {
		if r.Blocks && r.State != doctor.CheckOK && r.State != doctor.CheckNoted {
			r.Name, r.Text, r.Hint, r.Details = verb.Clean(r.Name), verb.Clean(r.Text), verb.Clean(r.Hint),
				verb.CleanAll(r.Details)
			failed = append(failed, r)
		}
	}
	if len(failed) > 0 {
		doctor.PrintChecks(progress, failed)
		return unproved(errors.New("no code runs on this machine before these checks pass"))
	}
	if err := confirmBesideAgents(ctx, draft); err != nil {
		return unproved(err)
	}
	fmt.Fprintln(s.Err, "airlock: starting Airlock once, as your hosts will")
	if err := startAsHost(ctx, plan, draft); err != nil {
		return unproved(err)
	}
	if err := v.askTrust(ctx, s, plan, flags); err != nil {
		return unproved(err)
	}
	return nil
}

// confirmBesideAgents confirms a configuration while agents are served, which takes a person's terminal.
// Otherwise the first host that names a new file confirms it.
func confirmBesideAgents(ctx context.Context, path string) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	if served, err := approval.IsServed(home); err != nil || !served {
		return err
	}
	if err := verb.Guarded("connecting a host"); err != nil {
		return err
	}
	c, err := verb.ConfigFlag{Config: path}.Load(io.Discard)
	if err != nil {
		return err
	}
	k, err := rules.NewConfirmation(c)
	if err != nil || k.IsDone() {
		return err
	}
	return k.Confirm(ctx)
}

// unproved adds to an error that no host was changed.
func unproved(err error) error {
	hint := "no host's file was changed; airlock doctor checks this machine"
	var advised interface{ Hint() string }
	if errors.As(err, &advised) && advised.Hint() != "" {
		hint = advised.Hint() + "; no host's file was changed"
	}
	return verb.WithHint(err, hint, verb.ExitFailed)
}

// buildMissing builds the images that run code and cannot be opened.
func buildMissing(ctx context.Context, s *verb.Streams, flags verb.ConfigFlag) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	var missing []string
	for _, definition := range images.List() {
		if definition.Language == "" {
			continue
		}
		image, err := images.Open(home, definition.Name)
		switch {
		case err == nil:
			if err := image.Close(); err != nil {
				return err
			}
		case errors.Is(err, images.ErrNotBuilt), errors.Is(err, images.ErrStale):
			missing = append(missing, definition.Name)
		default:
			return err
		}
	}
	if len(missing) == 0 {
		return nil
	}
	fmt.Fprintf(s.Err, "airlock: building the sandbox images that are missing: %s\n", strings.Join(missing, ", "))
	err = (&imagesverbs.Build{ConfigFlag: flags, Names: missing}).Run(ctx, s)
	if err != nil && ctx.Err() == nil && anyBuilt(home) {
		verb.Report(s.Err, err) // programs in the other language run, and doctor shows what is missing
		return nil
	}
	return err
}

// anyBuilt reports whether there is an image that runs code.
func anyBuilt(home string) bool {
	return slices.ContainsFunc(images.Languages(), func(d images.Definition) bool {
		image, err := images.Open(home, d.Name)
		return err == nil && image.Close() == nil
	})
}

// startAsHost starts this program as hosts do, with their arguments and environment but in the
// directory /, and requests its tools.
func startAsHost(ctx context.Context, plan *hosts.Plan, draft string) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	defer trust.Open(home).Forget(draft) // the draft is removed, so its confirmation is not needed
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	command := plan.Starts(draft, os.LookupEnv)
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Dir = "/"
	for name, value := range command.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting Airlock as a host does: %w", err)
	}
	answered := converse(in, out)
	ended := errors.Join(in.Close(), cmd.Wait())
	if answered != nil {
		const most = 2000
		return fmt.Errorf("starting Airlock as a host does: %w\n%s", errors.Join(answered, ended),
			truncate.Tail(strings.TrimSpace(said.String()), most))
	}
	return nil
}

// converse sends the first requests of a host to an MCP server, and returns nil if the server
// offers the tool that runs code.
func converse(in io.Writer, out io.Reader) error {
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"airlock init","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`
	if _, err := io.WriteString(in, hello); err != nil {
		return err
	}
	const most = 16 << 20
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, most)
	for lines.Scan() {
		var answer struct {
			ID     int `json:"id"`
			Result struct {
				Tools []struct {
					Name string `json:"name"`
				} `json:"tools"`
			} `json:"result"`
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if strictjson.UnmarshalOpen(lines.Bytes(), &answer) != nil || answer.ID != 2 {
			continue
		}
		for _, tool := range answer.Result.Tools {
			if tool.Name == "run_code" {
				return nil
			}
		}
		return fmt.Errorf("it does not offer run_code: %s", answer.Error.Message)
	}
	return errors.Join(errors.New("it ended without an answer"), lines.Err())
}

// remedy returns the advice for users whose hosts give the model a shell.
func remedy(config string) string {
	return fmt.Sprintf(`A host that gives its model a shell gives it your rights, and with them Airlock's state and credentials. To separate them:
  1. install the package and copy the servers: sudo install -m 600 %s /etc/airlock/airlock.yaml
  2. sudo systemctl enable --now airlock.socket
  3. sudo airlock tokens create %s --scope run, and register http://127.0.0.1:7823/mcp with that token in the host
SECURITY.md explains this and two other ways.
`, visible.Word(config), visible.Word(filepath.Base(os.Args[0])+"-host"))
}
