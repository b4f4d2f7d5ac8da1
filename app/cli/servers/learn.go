package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/app/orchestrator"
	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/policies"
)

type serversLearnVerb struct {
	verb.ConfigFlag
	For   time.Duration `default:"5m" placeholder:"TIME" help:"When the trial ends by itself, at most 1h."`
	Files []string      `placeholder:"DIR" help:"A directory that the server may read during the trial; by default the home directory. May be given several times."`
	Yes   bool          `short:"y" help:"Start the trial without asking."`
	JSON  bool          `name:"json" help:"Print the proposal as JSON."`
	Name  string        `arg:"" name:"server" help:"The server's ID."`
}

// maxTrial is the longest time of a trial.
const maxTrial = time.Hour

// Run tries a server and prints the sandbox that it needs. The lines of its input are calls: TOOL ARGUMENTS.
func (v *serversLearnVerb) Run(ctx context.Context, s *verb.Streams) error {
	if v.For <= 0 || v.For > maxTrial {
		return verb.Usage(fmt.Sprintf("a trial cannot last %v", v.For), "--for must be 1h or less, such as --for 10m")
	}
	c, err := v.Load(s.Err)
	if err != nil {
		return err
	}
	server, found := c.Server(v.Name)
	switch {
	case !found:
		return verb.Usage(fmt.Sprintf("there is no server %q", v.Name), "airlock servers list shows the servers")
	case server.Settings.Sandbox == nil:
		return verb.Usage(fmt.Sprintf("the server %q has no sandbox", v.Name), "write servers."+v.Name+
			".sandbox: true, or run airlock init --contain, and then airlock images build "+visible.Word(v.Name))
	}
	if err := verb.Guarded("a trial of a server"); err != nil {
		return err
	}
	trial := &contained.Trial{Server: v.Name}
	if trial.Files, err = v.directories(); err != nil {
		return err
	}
	if len(v.Files) == 0 && len(trial.Files) > 0 {
		trial.Home = trial.Files[0]
	}
	if agreed, err := v.agreed(s, trial); err != nil || !agreed {
		return err
	}
	did, err := v.try(ctx, s, c, server, trial)
	if err != nil {
		return err
	}
	return v.propose(s, trial.Learned(server, did), did)
}

// directories returns the directories that the server may read.
func (v *serversLearnVerb) directories() ([]string, error) {
	list := v.Files
	if len(list) == 0 {
		home, err := os.UserHomeDir()
		if err != nil || !images.Mountable(home) {
			return nil, nil
		}
		list = []string{home}
	}
	var directories []string
	for _, path := range list {
		path, err := filepath.Abs(path)
		if err == nil {
			path, err = filepath.EvalSymlinks(path)
		}
		if err != nil {
			return nil, verb.Usage(err.Error(), "--files takes directories")
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() || !images.Mountable(path) {
			return nil, verb.Usage(fmt.Sprintf("%q cannot be mounted", path),
				"--files takes directories below "+strings.Join(images.MountDirs(), ", "))
		}
		directories = append(directories, path)
	}
	return directories, nil
}

// agreed shows what the trial permits and asks whether to start it.
func (v *serversLearnVerb) agreed(s *verb.Streams, trial *contained.Trial) (bool, error) {
	files := "no directory but its mounts"
	if len(trial.Files) > 0 {
		files = strings.Join(trial.Files, ", ")
	}
	fmt.Fprintf(s.Err, "airlock: a trial of %s: for %v it may connect to every host on the internet, and read %s. "+
		"It can send what it reads. All of it is recorded.\n", verb.Clean(v.Name), v.For, verb.Clean(files))
	return agreed(s, v.Yes, "Start it?", "nobody can be asked whether to start the trial",
		"airlock servers learn --yes starts it")
}

// agreed asks a question at the terminal. Without one, the error is a usage error with problem and advice.
func agreed(s *verb.Streams, yes bool, question, problem, advice string) (bool, error) {
	if yes {
		return true, nil
	}
	in, isFile := s.In.(*os.File)
	if !isFile || !verb.IsTerminal(in) {
		return false, verb.Usage(problem, advice)
	}
	fmt.Fprint(s.Err, question+" [y/N] ")
	var answer [1]byte
	for read := ""; ; read += string(answer[:]) { // byte by byte: the rest of the input can be of others
		if n, err := in.Read(answer[:]); n == 0 || err != nil || answer[0] == '\n' {
			return strings.HasPrefix(strings.ToLower(read), "y"), nil
		}
	}
}

// try runs the server until the input or the time ends, and returns what it has done.
func (v *serversLearnVerb) try(ctx context.Context, s *verb.Streams, c *config.Config, server config.Server,
	trial *contained.Trial) (did contained.State, err error) {
	changed, remove, err := onTrial(c, server)
	if err != nil {
		return did, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	until, cancel := context.WithTimeout(ctx, v.For)
	defer cancel()
	opened, err := verb.OpenSystem(until, changed, s.Err, system.Options{Trial: trial,
		Reread: func() (*config.Config, error) { return changed, nil }})
	if err != nil {
		return did, err
	}
	state, _ := opened.ServerState(verb.LocalCaller(), v.Name)
	if state.Problem != "" {
		return did, errors.Join(verb.WithHint(fmt.Errorf("the server %q does not start: %s", v.Name, state.Problem),
			"airlock images build "+visible.Word(v.Name)+" builds its image", verb.ExitFailed), opened.Close())
	}
	fmt.Fprintf(s.Err, "airlock: %s runs with %s; the trial ends at %s, or with the end of the input. A line TOOL {…} "+
		"calls a tool; airlock approvals answers a call that is asked about.\n",
		verb.Clean(v.Name), verb.Counted(state.Tools, "tool"),
		time.Now().Add(v.For).Format(time.TimeOnly))
	v.calls(until, s, opened)
	err = opened.Close()
	return opened.Tried(), err
}

// onTrial returns the configuration with this server only. Its tools are allowed, and a rule permits its connections.
func onTrial(c *config.Config, server config.Server) (changed *config.Config, remove func() error, err error) {
	directory, err := os.MkdirTemp("", "airlock-trial-*")
	if err != nil {
		return nil, nil, err
	}
	remove = func() error { return os.RemoveAll(directory) }
	copied := *c
	copied.Policies = slices.Clone(c.Policies)
	rules := fmt.Sprintf("@id(\"trial\")\npermit (principal == ContainedServer::%q, action == Action::\"connect\", "+
		"resource);\n", server.ID)
	if len(copied.Policies) == 0 {
		rules = string(policies.Default().Source) + rules
	}
	file := filepath.Join(directory, "trial.cedar")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	copied.Policies = append(copied.Policies, file)
	server.Settings.Allow = append(slices.Clone(server.Settings.Allow), "*")
	copied.Servers = []config.Server{server}
	return &copied, remove, nil
}

// calls makes the calls that the input has, one a line.
func (v *serversLearnVerb) calls(ctx context.Context, s *verb.Streams, opened *system.System) {
	lines := make(chan string)
	go func() { // it ends with the process, or with the input
		defer close(lines)
		in := bufio.NewScanner(s.In)
		in.Buffer(nil, 1<<20)
		for in.Scan() {
			select {
			case lines <- in.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			fmt.Fprintln(s.Err, "airlock: the trial has ended")
			return
		case line, more := <-lines:
			if !more {
				return
			}
			if line = strings.TrimSpace(line); line != "" {
				v.call(ctx, s, opened, line)
			}
		}
	}
}

// call makes one call and prints its result.
func (v *serversLearnVerb) call(ctx context.Context, s *verb.Streams, opened *system.System, line string) {
	tool, arguments, _ := strings.Cut(line, " ")
	if strings.TrimSpace(arguments) == "" {
		arguments = "{}"
	}
	req, err := orchestrator.CallRequest(orchestrator.ToolCall{ServerID: v.Name, Name: tool,
		Arguments: []byte(arguments)})
	if err == nil {
		req.Caller = verb.LocalCaller()
		var outcome *orchestrator.Outcome
		if outcome, err = opened.Orchestrator().Run(ctx, req); err == nil {
			var text []byte
			if text, err = outcome.Envelope.Line(); err == nil {
				fmt.Fprintf(s.Err, "%s\n", verb.Clean(verb.OneLine(string(text), 2000)))
			}
		}
	}
	if err != nil {
		fmt.Fprintf(s.Err, "airlock: %s: %v\n", verb.Clean(tool), err)
	}
}

// propose prints the sandbox that the server needs.
func (v *serversLearnVerb) propose(s *verb.Streams, p contained.Proposal, did contained.State) error {
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"server": p.Server, "sandbox": p.Settings(), "rules": p.Rules(),
			"not_proposed": append([]string{}, p.Left...), "reached": append([]contained.Reached{}, did.Reached...),
			"files": append([]contained.Touched{}, did.Files...)})
	}
	box := map[string]any{"sandbox": p.Settings()}
	settings, err := yaml.Marshal(map[string]any{"servers": map[string]any{p.Server: box}})
	if err != nil {
		return err
	}
	out := verb.Cleaned(s.Out)
	fmt.Fprintf(out, "# The sandbox that %s needs for what it did. Read it before you use it.\n%s", p.Server, settings)
	if rules := p.Rules(); rules != "" {
		fmt.Fprintf(out, "\n// The rules for a file of policies.\n%s", rules)
	}
	for _, left := range p.Left {
		_, _ = io.WriteString(out, "# not proposed: "+left+"\n")
	}
	return nil
}
