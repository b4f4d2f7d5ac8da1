// Package cli is the command line: verbs, flags, exit codes and hints. It is also the
// composition root, which connects the parts of Airlock.
package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// The exit codes of every verb.
const (
	ExitDone    = 0
	ExitFailed  = 1 // a run whose result is ok:false, a check that did not pass
	ExitUsage   = 2 // wrong usage or configuration
	ExitRefused = 3 // refused by policy
)

// grammar is the whole command line.
type grammar struct {
	ShowVersion kong.VersionFlag `name:"version" help:"Print the version."`

	working         `embed:""`
	selfDescription `embed:""`
}

// working are the verbs that can be parsed without the rest of the grammar.
type working struct {
	Run  runVerb  `cmd:"" help:"Run a program in a sandbox; print one line of JSON."`
	Init initVerb `cmd:"" help:"Move the MCP servers of your agent hosts behind Airlock, with a backup; --undo takes it back."`
	MCP  mcpVerb  `cmd:"" name:"mcp" help:"Serve an agent host: MCP over stdin and stdout."`

	aboutServers `embed:""`
	pastRuns     `embed:""`

	Trust     trustVerb      `cmd:"" help:"Confirm a configuration: the one of a directory, or one that changed while agents are served."`
	Policy    policyVerbs    `cmd:"" help:"Check, test and explain the policies."`
	Approvals approvalsVerbs `cmd:"" help:"Answer calls that wait for a person."`
	Audit     auditVerbs     `cmd:"" help:"Read the audit log."`
	Measure   measureVerbs   `cmd:"" help:"Measure searches on a set of queries."`
	Images    imagesVerbs    `cmd:"" help:"Build and list the sandbox images."`
	Integrity integrityVerbs `cmd:"" help:"Check that what is installed is what was installed."`
	Doctor    doctorVerb     `cmd:"" help:"Check whether this machine can run sandboxes; say what to install."`
	Version   versionVerb    `cmd:"" help:"Print the version."`

	overHTTP `embed:""`
}

// aboutServers are the verbs about the configured servers.
type aboutServers struct {
	Tools    toolsVerbs   `cmd:"" help:"Look at the tools of the configured servers."`
	Profiles profilesVerb `cmd:"" help:"List the profiles: which servers and tools each client sees."`
	Login    loginVerb    `cmd:"" help:"Sign in to a server that wants it; without a name, list the sign-ins."`
	Logout   logoutVerb   `cmd:"" help:"Sign out of a server: revoke and forget its tokens."`
	Generate generateVerb `cmd:"" help:"Write the typed wrappers of all tools to a directory."`
}

// pastRuns are the verbs about past runs.
type pastRuns struct {
	Runs   runsVerbs  `cmd:"" help:"List the runs, and show one with its code and its output."`
	BOM    bomVerb    `cmd:"" name:"bom" help:"Print what a run was made of: model and host as announced, engines, tools, image, policies."`
	Replay replayVerb `cmd:"" help:"Run a recorded run's code again with the answers it was given then."`
}

// overHTTP are the verbs about agents and other callers over HTTP.
type overHTTP struct {
	Agents  agentsVerbs `cmd:"" help:"Register agents, and say what they may do and spend."`
	Budgets budgetsVerb `cmd:"" help:"List what agents and their principals have spent."`
	Tokens  tokensVerbs `cmd:"" help:"Make, list and revoke the tokens of callers over HTTP."`
	Console consoleVerb `cmd:"" help:"Print a link that signs in to the web pages of the daemon, once."`
	Status  statusVerb  `cmd:"" help:"Say how the daemon is that airlock serve is."`
	Stop    stopVerb    `cmd:"" help:"End the daemon: runs under way get their time."`
	Serve   serveVerb   `cmd:"" help:"Serve many hosts over HTTP: MCP at /mcp, the API at /v1, web pages at /."`
}

// selfDescription are the verbs that describe the other verbs.
type selfDescription struct {
	Help       helpVerb       `cmd:"" help:"Say more about a command, or about exit-codes and environment."`
	Completion completionVerb `cmd:"" help:"Print what a shell needs to complete commands: bash, zsh or fish."`
	Man        manVerb        `cmd:"" help:"Print the manual page: airlock man | man -l -"`
	Complete   completeVerb   `cmd:"" hidden:"" help:"Print what can be typed next; completions ask this."`
}

// streams are the standard streams that a verb works with.
type streams struct {
	in       io.Reader
	out, err io.Writer
	hangup   *hangup
}

// Main runs the command line and returns the exit code. The requested output goes to stdout,
// everything else to stderr. Cancelling ctx ends the verb.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = cleaned(stderr)
	typed := configFlag{Config: flagValue(args, "--config")}
	verb, understood := parseVerb(args)
	if !understood {
		parser, exited := newWholeParser(stdout, stderr)
		if len(args) == 0 {
			args = []string{"--help"}
		}
		var err error
		verb, err = parser.Parse(helpOf(parser.Model, args))
		if *exited >= 0 { // --help or --version has printed its output
			return *exited
		}
		if err != nil {
			typed.hold()
			return report(stderr, usage(err))
		}
	}
	ctx, hangup, stop := onHangup(ctx)
	defer stop()
	verb.BindTo(ctx, (*context.Context)(nil))
	err := verb.Run(&streams{in: stdin, out: stdout, err: stderr, hangup: hangup})
	if err != nil {
		typed.hold()
	}
	return report(stderr, err)
}

// newWholeParser returns the parser of the whole command line. For exited, see newParser.
func newWholeParser(stdout, stderr io.Writer) (parser *kong.Kong, exited *int) {
	return newParser(new(grammar), "airlock",
		"Airlock lets an agent work by writing code: programs run in a gVisor sandbox and use MCP tools through one broker.", stdout, stderr)
}

// usage turns a parser's error into one with a hint.
func usage(err error) error {
	command := "airlock"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		if selected := parse.Context.Selected(); selected != nil {
			for word := range strings.FieldsSeq(selected.Path()) {
				if strings.ContainsAny(word, "<[(") { // its arguments
					break
				}
				command += " " + word
			}
		}
	}
	return &usageError{plainly(err.Error()), command + " --help"}
}

// parserSentences are our messages for the parser's errors about missing and wrong values.
var parserSentences = []struct {
	said *lazyregexp.Regexp
	say  string
}{
	{lazyregexp.New(`^(--[\w-]+): expected \w+ value but got "EOL" .*`), "$1 needs a value"},
	{lazyregexp.New(`^(--[\w-]+): expected duration but got "(.*)": time: .*`), `$1 takes a number with its unit, as in 30s or 5m, not "$2"`},
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
