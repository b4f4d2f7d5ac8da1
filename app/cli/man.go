package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/release"
	"github.com/alecthomas/kong"
)

type manVerb struct{}

// Run prints the manual page, for `airlock man | man -l -`.
func (manVerb) Run(s *verb.Streams, app *kong.Kong) error {
	_, err := io.WriteString(s.Out, manualPage(app.Model))
	return err
}

// exitCodes are the meanings of the exit codes.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{verb.ExitDone, "What was asked for is done; of a run: its result is ok."},
	{verb.ExitFailed, "It failed: a run whose result is not ok, a check that did not pass, a log that was changed."},
	{verb.ExitUsage, "Wrong usage, a mistake in the configuration, or something that this machine lacks: a hint on " +
		"stderr shows what to type."},
	{verb.ExitRefused, "Refused: policy, or a person, did not allow it."},
}

// environment are the environment variables that airlock reads, with their meanings.
var environment = [][2]string{
	{"AIRLOCK_CONFIG", "The configuration, where --config does not name one."},
	{"AIRLOCK_HOME", "The state directory: images, audit log, keys, recordings. By default /var/lib/airlock for " +
		"root, else airlock under $XDG_DATA_HOME or ~/.local/share."},
	{"AIRLOCK_RUNSC", "The program runsc, where it lies neither beside airlock nor in PATH."},
	{"AIRLOCK_PAGER, PAGER",
		"What shows long output on a terminal; less by default, nothing for cat or an empty value."},
	{"NO_COLOR, CLICOLOR, CLICOLOR_FORCE",
		"No colours where NO_COLOR is set or CLICOLOR is 0; colours even where there is no terminal where " +
			"CLICOLOR_FORCE is set."},
	{"COLUMNS", "The width of a terminal that does not say."},
}

// manualPage returns the manual page with all verbs, in the format of man(7).
func manualPage(app *kong.Application) string {
	var out strings.Builder
	fmt.Fprintf(&out, ".TH AIRLOCK 1 %s \"airlock %s\" \"User Commands\"\n", release.Date, verb.Version)
	fmt.Fprintf(&out, ".SH NAME\nairlock \\- run programs of an agent in a sandbox\n.SH SYNOPSIS\n.B airlock\n.I "+
		"command\n[flags]\n")
	fmt.Fprintf(&out, ".SH DESCRIPTION\n%s\n.SH COMMANDS\n", roff(app.Help))
	for _, leaf := range app.Leaves(true) {
		fmt.Fprintf(&out, ".SS %s\n%s\n", roff(synopsis(leaf)), roff(leaf.Help))
		for _, argument := range leaf.Positional {
			manualItem(&out, "\\fI"+roff(argument.Name)+"\\fR", argument.Help)
		}
		for _, flag := range leaf.Flags {
			if !flag.Hidden {
				manualItem(&out, flagName(flag), flag.Help)
			}
		}
	}
	out.WriteString(".SH EXIT STATUS\n")
	for _, e := range exitCodes {
		manualItem(&out, fmt.Sprint(e.code), e.meaning)
	}
	out.WriteString(".SH ENVIRONMENT\n")
	for _, variable := range environment {
		manualItem(&out, "\\fB"+roff(variable[0])+"\\fR", variable[1])
	}
	out.WriteString(".SH FILES\n")
	manualItem(&out, "airlock.yaml",
		"The configuration: in the current directory, or in airlock under $XDG_CONFIG_HOME or ~/.config.")
	return out.String()
}

// manualItem writes a term and its meaning.
func manualItem(out *strings.Builder, term, text string) {
	fmt.Fprintf(out, ".TP\n%s\n%s\n", term, roff(strings.ReplaceAll(text, "$$", "$")))
}

// synopsis returns a verb with its arguments.
func synopsis(leaf *kong.Node) string {
	return strings.TrimPrefix(leaf.FullPath(), "airlock ") + arguments(leaf)
}

func arguments(leaf *kong.Node) string {
	var text strings.Builder
	for _, argument := range leaf.Positional {
		text.WriteString(" " + argument.Summary())
	}
	return text.String()
}

// flagName returns a flag with the name of its value.
func flagName(flag *kong.Flag) string {
	text := "\\fB\\-\\-" + roff(flag.Name) + "\\fR"
	if flag.Short != 0 {
		text = "\\fB\\-" + string(flag.Short) + "\\fR, " + text
	}
	if !flag.IsBool() {
		text += "=\\fI" + roff(flag.FormatPlaceHolder()) + "\\fR"
	}
	return text
}

// roff escapes text for man(7): backslashes, hyphens, and a first character that would begin a
// request.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

type helpVerb struct {
	Topic []string `arg:"" optional:"" help:"A command, or the topics exit-codes and environment."`
}

// Run prints the help of a topic. The help of commands is printed by kong, see helpOf.
func (v *helpVerb) Run(s *verb.Streams) error {
	switch strings.Join(v.Topic, " ") {
	case "exit-codes":
		for _, e := range exitCodes {
			if _, err := fmt.Fprintf(s.Out, "%s  %s\n", verb.PainterFor(s.Out).Paint(verb.Bold, fmt.Sprint(e.code)),
				e.meaning); err != nil {
				return err
			}
		}
		return nil
	case "environment":
		for _, variable := range environment {
			if _, err := fmt.Fprintf(s.Out, "%s\n    %s\n", verb.PainterFor(s.Out).Paint(verb.Bold, variable[0]),
				variable[1]); err != nil {
				return err
			}
		}
		return nil
	}
	return verb.Usage(fmt.Sprintf("there is no help about %q", strings.Join(v.Topic, " ")), "airlock --help")
}

// helpOf turns `help COMMAND` into `COMMAND --help`. It returns other command lines unchanged.
func helpOf(app *kong.Application, args []string) []string {
	if len(args) == 0 || args[0] != "help" {
		return args
	}
	node := app.Node
	for _, word := range args[1:] {
		if node = childNamed(node, word); node == nil {
			return args
		}
	}
	return append(slices.Clone(args[1:]), "--help")
}
