// Package cli is the command line of Airlock: it parses the arguments and runs the verb that they
// name. Each noun has a package with its verbs, and package verb has what the verbs share.
package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/agents"
	"github.com/airlock-mcp/airlock/app/cli/approvals"
	"github.com/airlock-mcp/airlock/app/cli/audit"
	"github.com/airlock-mcp/airlock/app/cli/doctor"
	"github.com/airlock-mcp/airlock/app/cli/hosts"
	"github.com/airlock-mcp/airlock/app/cli/images"
	"github.com/airlock-mcp/airlock/app/cli/measure"
	"github.com/airlock-mcp/airlock/app/cli/policy"
	"github.com/airlock-mcp/airlock/app/cli/runs"
	"github.com/airlock-mcp/airlock/app/cli/serve"
	"github.com/airlock-mcp/airlock/app/cli/servers"
	"github.com/airlock-mcp/airlock/app/cli/state"
	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/alecthomas/kong"
)

// grammar is the whole command line.
type grammar struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	working         `embed:""`
	selfDescription `embed:""`
}

// working are the verbs that can be parsed without the rest of the grammar.
type working struct {
	Run  runs.Run   `cmd:"" help:"Run a program in a sandbox; print one line of JSON."`
	Init hosts.Init `cmd:"" help:"Move the MCP servers of your agent hosts behind Airlock, with a backup; --undo takes it back."`
	MCP  hosts.MCP  `cmd:"" name:"mcp" help:"Serve an agent host: MCP over stdin and stdout."`

	aboutServers `embed:""`
	pastRuns     `embed:""`

	Trust     policy.Trust    `cmd:"" help:"Confirm a configuration: the one of a directory, or one that changed while agents are served."`
	Policy    policy.Verbs    `cmd:"" help:"Check, test and explain the policies."`
	Approvals approvals.Verbs `cmd:"" help:"Answer calls that wait for a person."`
	Audit     audit.Verbs     `cmd:"" help:"Read the audit log."`
	State     state.Verbs     `cmd:"" help:"Back up, check and restore the state directory."`
	Measure   measure.Verbs   `cmd:"" help:"Measure searches on a set of queries."`
	Images    images.Verbs    `cmd:"" help:"Build and list the sandbox images."`
	Integrity audit.Integrity `cmd:"" help:"Check that what is installed is what was installed."`
	Doctor    doctor.Verb     `cmd:"" help:"Check whether this machine can run sandboxes; say what to install."`
	Version   versionVerb     `cmd:"" help:"Print the version."`

	overHTTP `embed:""`
}

// aboutServers are the verbs about the configured servers.
type aboutServers struct {
	Servers  servers.Servers  `cmd:"" help:"List, add, change, restart and read the servers of the configuration."`
	Tools    servers.Tools    `cmd:"" help:"Look at the tools of the configured servers."`
	Profiles servers.Profiles `cmd:"" help:"List the profiles: which servers and tools each client sees."`
	Login    servers.Login    `cmd:"" help:"Sign in to a server that wants it; without a name, list the sign-ins."`
	Logout   servers.Logout   `cmd:"" help:"Sign out of a server: revoke and forget its tokens."`
	Generate servers.Generate `cmd:"" help:"Write the typed wrappers of all tools to a directory."`
}

// pastRuns are the verbs about past runs.
type pastRuns struct {
	Runs   runs.Verbs  `cmd:"" help:"List the runs, and show one with its code and its output."`
	BOM    runs.BOM    `cmd:"" name:"bom" help:"Print what a run was made of: model and host as announced, engines, tools, image, policies."`
	Replay runs.Replay `cmd:"" help:"Run a recorded run's code again with the answers it was given then."`
}

// overHTTP are the verbs about agents and other callers over HTTP.
type overHTTP struct {
	Agents  agents.Verbs     `cmd:"" help:"Register agents, and say what they may do and spend."`
	Budgets agents.Budgets   `cmd:"" help:"List the limits of agents and their principals, and what they have spent."`
	Costs   agents.CostsVerb `cmd:"" help:"Report what principals or agents spent on each day."`
	Tokens  agents.Tokens    `cmd:"" help:"Make, list and revoke the tokens of callers over HTTP."`
	Console serve.Console    `cmd:"" help:"Print a link that signs in to the web pages of the daemon, once."`
	Status  serve.Status     `cmd:"" help:"Say how the daemon is that airlock serve is."`
	Cluster serve.Cluster    `cmd:"" help:"Prepare a cluster of several machines."`
	Stop    serve.Stop       `cmd:"" help:"End the daemon: runs under way get their time."`
	Serve   serve.Verb       `cmd:"" help:"Serve many hosts over HTTP: MCP at /mcp, the API at /v1, web pages at /."`
}

// selfDescription are the verbs that describe the other verbs.
type selfDescription struct {
	Help       helpVerb       `cmd:"" help:"Say more about a command, or about exit-codes and environment."`
	Completion completionVerb `cmd:"" help:"Print what a shell needs to complete commands: bash, zsh or fish."`
	Man        manVerb        `cmd:"" help:"Print the manual page: airlock man | man -l -"`
	Complete   completeVerb   `cmd:"" hidden:"" help:"Print what can be typed next; completions ask this."`
}

// Main runs the command line and returns the exit code. The requested output goes to stdout,
// everything else to stderr. Cancelling ctx ends the verb.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = verb.Cleaned(stderr)
	typed := verb.ConfigFlag{Config: verb.FlagValue(args, "--config")}
	parsed, understood := parseVerb(args)
	if !understood {
		parser, exited := newWholeParser(stdout, stderr)
		if len(args) == 0 {
			args = []string{"--help"}
		}
		var err error
		parsed, err = parser.Parse(helpOf(parser.Model, args))
		if *exited >= 0 { // --help or --version has printed its output
			return *exited
		}
		if err != nil {
			typed.Hold()
			return verb.Report(stderr, usage(err))
		}
	}
	ctx, hangup, stop := verb.OnHangup(ctx)
	defer stop()
	parsed.BindTo(ctx, (*context.Context)(nil))
	err := parsed.Run(&verb.Streams{In: stdin, Out: stdout, Err: stderr, Hangup: hangup})
	if err != nil {
		typed.Hold()
	}
	return verb.Report(stderr, err)
}

// newWholeParser returns the parser of the whole command line. For exited, see newParser.
func newWholeParser(stdout, stderr io.Writer) (parser *kong.Kong, exited *int) {
	return verb.NewParser(new(grammar), "airlock",
		"Airlock lets an agent work by writing code: programs run in a gVisor sandbox and use MCP tools through one "+
			"broker.", stdout, stderr)
}

// usage turns a parser's error into one with a hint.
func usage(err error) error {
	command := "airlock"
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil {
		if selected := parse.Context.Selected(); selected != nil {
			for word := range strings.FieldsSeq(selected.Path()) {
				if strings.ContainsAny(word, "<[(") { // its arguments
					break
				}
				command += " " + word
			}
		}
	}
	return verb.Usage(plainly(err.Error()), command+" --help")
}

// parserSentences are our messages for the parser's errors about missing and wrong values.
var parserSentences = []struct {
	said *lazyregexp.Regexp
	say  string
}{
	{lazyregexp.New(`^(--[\w-]+): expected \w+ value but got "EOL" .*`), "$1 needs a value"},
	{lazyregexp.New(`^(--[\w-]+): expected duration but got "(.*)": time: .*`),
		`$1 takes a number with its unit, as in 30s or 5m, not "$2"`},
	{lazyregexp.New(`^(--[\w-]+): expected a valid \d+ bit int but got (.*)`), "$1 takes a whole number, not $2"},
	{lazyregexp.New(`^expected "(<.*)"$`), "$1 is missing"},
}

// plainly rewrites an error of the parser so that it can be understood without knowing the parser.
func plainly(said string) string {
	for _, sentence := range parserSentences {
		if sentence.said.MatchString(said) {
			return sentence.said.ReplaceAllString(said, sentence.say)
		}
	}
	return said
}
