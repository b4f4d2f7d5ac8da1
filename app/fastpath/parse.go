package fastpath

import (
	"strings"

	"github.com/airlock-mcp/airlock/internal/program"
)

// Command is a command line that the fast path understands.
type Command struct {
	File     string // the program; - is the standard input
	Language string // "python" or "node"
}

// Parse understands these command lines, whose words may stand in any order behind run,
// and no others:
//
//	run [FILE | -] [--lang NAME | --lang=NAME] [--json]
//
// It reads them as the grammar of package cli does.
func Parse(args []string) (command Command, understood bool) {
	if len(args) == 0 || args[0] != "run" {
		return Command{}, false
	}
	var named string
	for args = args[1:]; len(args) > 0; args = args[1:] {
		word := args[0]
		name, isLanguage := strings.CutPrefix(word, "--lang=")
		switch {
		case word == "--lang" && len(args) > 1:
			args = args[1:]
			name, isLanguage = args[0], true
			fallthrough
		case isLanguage:
			if _, known := program.ParseLanguage(name); !known || named != "" {
				return Command{}, false
			}
			named = name
		case word == "--json":
		case command.File != "" || word == "" || word != "-" && strings.HasPrefix(word, "-"):
			return Command{}, false
		default:
			command.File = word
		}
	}
	if command.File == "" {
		command.File = "-"
	}
	command.Language = program.LanguageOf(named, command.File)
	return command, true
}
