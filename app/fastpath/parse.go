package fastpath

import (
	"strings"
	"time"

	"github.com/airlock-mcp/airlock/internal/program"
)

// Command is a command line that the fast path understands.
type Command struct {
	File     string // the program; - is the standard input
	Language string // "python" or "node"
	Config   string // the configuration's file; empty: the one that is found
	Profile  string // empty: the default one
	Timeout  time.Duration
}

// Parse understands only these command lines. The words after run can be in any order; each
// flag is allowed once, also as --flag=VALUE:
//
//	run [FILE | -] [--lang NAME] [--config FILE] [--profile NAME] [--timeout DURATION] [--json]
//
// It reads them as the grammar of package cli does.
func Parse(args []string) (command Command, understood bool) {
	if len(args) == 0 || args[0] != "run" {
		return Command{}, false
	}
	values := map[string]string{}
	for args = args[1:]; len(args) > 0; args = args[1:] {
		switch flag, value, joined := strings.Cut(args[0], "="); {
		case flag == "--lang", flag == "--config", flag == "--profile", flag == "--timeout":
			if !joined && len(args) > 1 {
				args = args[1:]
				value = args[0]
			}
			if value == "" || strings.HasPrefix(value, "-") || values[flag] != "" {
				return Command{}, false
			}
			values[flag] = value
		case args[0] == "--json":
		case command.File != "" || args[0] == "" || args[0] != "-" && strings.HasPrefix(args[0], "-"):
			return Command{}, false
		default:
			command.File = args[0]
		}
	}
	return command.with(values)
}

// with returns the command with the values of its flags.
func (c Command) with(values map[string]string) (command Command, understood bool) {
	if c.File == "" {
		c.File = "-"
	}
	named := values["--lang"]
	if _, known := program.ParseLanguage(named); named != "" && !known {
		return Command{}, false
	}
	if timeout := values["--timeout"]; timeout != "" {
		var err error
		if c.Timeout, err = time.ParseDuration(timeout); err != nil || c.Timeout <= 0 {
			return Command{}, false
		}
	}
	c.Language = program.LanguageOf(named, c.File)
	c.Config, c.Profile = values["--config"], values["--profile"]
	return c, true
}
