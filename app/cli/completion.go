package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/alecthomas/kong"
)

type completionVerb struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Run prints the completion script of a shell.
func (v *completionVerb) Run(s *verb.Streams) error {
	_, err := io.WriteString(s.Out, completionScripts[v.Shell])
	return err
}

// completionScripts get the candidates from the installed program, so they fit every version.
// The candidate ":files" makes the shell complete file names.
var completionScripts = map[string]string{
	"bash": `# bash completion for airlock: source <(airlock completion bash)
_airlock() {
	local current=${COMP_WORDS[COMP_CWORD]} found
	found=$(airlock complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || return
	if [ "$found" = :files ]; then
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -f -- "$current")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$(cut -f1 <<<"$found")" -- "$current")
}
complete -F _airlock airlock
`,
	"zsh": `#compdef airlock
# zsh completion for airlock: airlock completion zsh >"${fpath[1]}/_airlock"
_airlock() {
	local line
	local -a found
	while IFS=$'\t' read -r line help; do
		[ "$line" = :files ] && { _files; return; }
		found+=("${line//:/\\:}${help:+:$help}")
	done < <(airlock complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	_describe airlock found
}
if [ "$funcstack[1]" = _airlock ]; then _airlock "$@"; else compdef _airlock airlock; fi
`,
	"fish": `# fish completion for airlock: airlock completion fish | source
function __airlock_complete
	set -l found (airlock complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
	if test "$found" = :files
		__fish_complete_path (commandline -ct)
	else
		printf '%s\n' $found
	end
end
complete -c airlock -f -a '(__airlock_complete)'
`,
}

type completeVerb struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words behind airlock, the last being typed."`
}

// Run prints the candidates for the last word, one per line: the word, a tab and the help text.
func (v *completeVerb) Run(s *verb.Streams, app *kong.Kong) error {
	words := v.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, c := range candidates(app.Model.Node, words) {
		text := c.word
		if c.help != "" {
			text += "\t" + verb.OneLine(c.help, 100)
		}
		if _, err := fmt.Fprintln(s.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// candidate is a word that can be typed, and its help text.
type candidate struct{ word, help string }

// filesCandidate makes the shell complete file names.
const filesCandidate = ":files"

// candidates returns the candidates for the last of the words.
func candidates(app *kong.Node, words []string) []candidate {
	node, current := app, ""
	if len(words) > 0 {
		current, words = words[len(words)-1], words[:len(words)-1]
	}
	var pending *kong.Flag // the next word is its value
	arguments := 0
	for _, word := range words {
		switch {
		case pending != nil:
			pending = nil
		case strings.HasPrefix(word, "-"):
			pending = flagNamed(node, word)
		default:
			if child := childNamed(node, word); child != nil {
				node = child
			} else {
				arguments++
			}
		}
	}
	switch {
	case pending != nil:
		return values(app, pending.Value, words)
	case strings.HasPrefix(current, "-"):
		return flags(node)
	}
	var found []candidate
	for _, child := range node.Children {
		if !child.Hidden {
			found = append(found, candidate{child.Name, child.Help})
		}
	}
	if len(node.Positional) > 0 {
		found = append(found, values(app, node.Positional[min(arguments, len(node.Positional)-1)], words)...)
	}
	return found
}

// childNamed returns the verb of a node, or nil.
func childNamed(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flagNamed returns the flag that a word names if it takes the next word as its value.
// Otherwise it returns nil.
func flagNamed(node *kong.Node, word string) *kong.Flag {
	for _, group := range node.AllFlags(false) {
		for _, flag := range group {
			long, short := "--"+flag.Name, "-"+string(flag.Short)
			if (word == long || flag.Short != 0 && word == short) && !flag.IsBool() {
				return flag
			}
		}
	}
	return nil
}

// flags returns the flags of a node and of its parents.
func flags(node *kong.Node) []candidate {
	var found []candidate
	for _, group := range node.AllFlags(true) {
		for _, flag := range group {
			found = append(found, candidate{"--" + flag.Name, flag.Help})
		}
	}
	return found
}

// values returns the possible values of a flag or an argument: the words of its enum, the
// values that known returns, or file names.
func values(app *kong.Node, v *kong.Value, words []string) []candidate {
	var found []candidate
	for _, word := range v.EnumSlice() {
		if word != "" {
			found = append(found, candidate{word, ""})
		}
	}
	if len(found) > 0 {
		return found
	}
	if isFile(v) {
		return []candidate{{filesCandidate, ""}}
	}
	return known(app, v, words)
}

// isFile reports whether a value names a file or a directory.
func isFile(v *kong.Value) bool {
	switch v.Tag.Type {
	case "path", "existingfile", "existingdir":
		return true
	}
	switch strings.ToUpper(v.Tag.PlaceHolder) {
	case "FILE", "DIR":
		return true
	}
	return v.Name == "file" || v.Name == "cases"
}
