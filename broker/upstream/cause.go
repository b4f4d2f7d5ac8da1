package upstream

import (
	"strings"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// A server that cannot start prints the reason on its stderr. That line is seldom the last
// one: stack frames, hints and versions follow it.

// Limits on the lines that are kept of stderr: the first ones, which a loop of later
// messages could hide, and the last ones.
const (
	keptFirstLines = 50
	keptLastLines  = 150
	// maxCause is the maximum length of the line with the reason, in characters.
	maxCause = 300
	// maxDetailLines is how many further lines belong to a message that goes on.
	maxDetailLines = 3
)

// weight is how likely a line contains the reason why a server ended.
type weight int

const (
	isNoise   weight = iota // never: stack frames, hints, versions
	isUsage                 // how the program is called, which most often follows what was wrong
	isWarning               // deprecations: the server would have gone on
	isCode                  // an error's number, without its words
	isText                  // any other line
	isTrouble               // speaks of something that failed
	isError                 // is marked as an error
	isThrown                // is the exception that ended the program
)

// noise matches lines that accompany an error without explaining it, in the output of
// Node, npm, Deno and Bun, Python and uv, Go, Rust, Java, .NET, Ruby, PHP, Docker and
// common parsers of command lines.
var noise = lazyregexp.New(`^(?:` + strings.Join([]string{
	`[^\pL\pN]*$`, // nothing but punctuation
	`\s*at\s.*`, `\s+from\s.*`, `\s*File ".*", line \d+.*`, `#\d+\s.*`, `\s*\.\.\. \d+ .*`,
	`Node\.js v\d.*`, `Bun v\d.*`, `node:\S+:\d+$`, `(?:file://)?/\S+:\d+$`, `\s*throw\s.*`, `Require stack:`,
	`\s*- /.*`, `Emitted '.*`,
	`\s*(?:code|errno|syscall|path|address|port|requireStack|digest)\??: .*`,
	`npm (?:notice|http|info|verb|timing)\b.*`, `npm (?:error|ERR!)\s*(?:\d+\s*)?$`,
	`npm (?:error|ERR!).* complete log of this run.*`,
	`npm (?:error|ERR!)\s+404\s+(?:Note that you can|tarball, folder).*`,
	`npm (?:error|ERR!) (?:path|command|syscall|errno|dest|enoent This is related to npm).*`,
	`\s*"(?:code|expected|received|fatal)": .*`,
	`Traceback \(most recent call last\):?`, `The above exception was.*`, `During handling of the above.*`,
	`\s*For further information visit.*`, `Exception Group Traceback.*`,
	`goroutine \d+ .*`, `\[signal .*`, `exit status \d+`, `created by .*`, `note: run with .*RUST_BACKTRACE.*`,
	`stack backtrace:`, `Stack trace:`, `thrown in .*`,
	`(?i:see|run|try|use)\s['"` + "`" + `].*(?i:--?help|for (?:more|help)).*`,
	`(?i:for more (?:information|details|help)).*`, `(?i:hint|help|tip|note):.*`,
	`\(Use .node --trace.*`, `(?:Press|Shutting down|Exiting|Bye|Goodbye|Aborted)\b[^:]*$`, `Restart of the .* failed$`,
}, `|`) + `)$`)

var (
	isWarned = lazyregexp.New(
		`^(?:npm warn\b|npm WARN\b|\(node:\d+\)|(?:\S+: )?\w*Warning: |(?i:\[?warn(?:ing)?\]?\b)|\S+:\d+: ` +
			`\w*Warning: )|\bWARN(?:ING)?\b`)
	usage    = lazyregexp.New(`^(?:(?i:usage):|--?\w)`)
	isNumber = lazyregexp.New(`^npm (?:error|ERR!) (?:code|errno) `)
	thrown   = lazyregexp.New(`^(?:` + strings.Join([]string{
		`(?:Uncaught )?(?:[\pL_$][\pL\pN_$]*[.:]{1,2})*[\pL_$]*(?:Error|Exception|Rejection|Interrupt|Exit)(?: ` +
			`\[\w+\])?(?:: .*|$)`,
		`(?:[a-z_]\w*\.)+[A-Z]\w*: .*`, // a class of Python without the word
		`panic: .*`, `fatal error: .*`, `thread '.*' panicked at .*`, `Exception in thread .*`,
		`Unhandled exception\. .*`,
		`PHP Fatal error: .*`, `.+:\d+:in .*: .* \(\S+\)`, `error: Uncaught .*`,
	}, `|`) + `)`)
	grouped  = lazyregexp.New(`^(?:\pL+\.)*(?:Base)?ExceptionGroup: `)
	caused   = lazyregexp.New(`^\s*(?:Caused by:|\[cause\]:)\s*(.+)`)
	marked   = lazyregexp.New(`(?i)^(?:\S+ ){0,4}\W*(?:err(?:or)?|fatal|critical|emerg)\b|"level":\s*"(?:error|fatal)"`)
	troubled = lazyregexp.New(
		`(?i)\b(?:errors?|fail(?:ed|s|ure)?|cannot|can't|could not|couldn't|unable|not ` +
			`(?:found|set|exist|defined|installed|configured|provided|permitted|allowed|valid|supported|available)|` +
			`no such|denied|refused|missing|required|requires|must|invalid|unknown|timed ` +
			`out|timeout|expired|unsatisfiable|unauthorized|forbidden|already in use|does not|killed|out of ` +
			`memory|no \w+ (?:found|matches))\b`)
	goesOn = lazyregexp.New(`(?:[:\[{(,]|\d+ validation errors? for .*)$`)
	marker = lazyregexp.New(`^[\s|+]*[|+×╰─▶>]+[\s─▶]*`) // of exception groups and of uv
	colour = lazyregexp.New("\x1b\\[[0-9;?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)")
)

// causeOf returns the line of a server's stderr with the reason why it ended: the exception
// in a stack trace, the message of npm's error, or the last line if no other is more
// specific. It may be empty.
func causeOf(lines []string) string {
	plain := plainLines(lines)
	best, at := isNoise, -1
	for i, line := range plain {
		if w := weigh(line); w > best || w == best && w > isUsage {
			best, at = w, i
		}
	}
	if at < 0 {
		return ""
	}
	text := strings.TrimSpace(plain[at])
	text = withDetails(text, plain[at+1:])
	if best >= isError {
		text = withCause(text, plain[at+1:])
	}
	return cutRunes(withoutPaths(logMessage(text)), maxCause)
}

// plainLines removes colours and the frames that are drawn around a message, and
// joins what was wrapped within such a frame.
func plainLines(lines []string) []string {
	var plain []string
	framed := false
	for _, line := range lines {
		line = strings.TrimRight(colour.ReplaceAllString(line, ""), " \t\r\n")
		if framed && strings.HasPrefix(line, wrapped) {
			if last := &plain[len(plain)-1]; len(*last) < maxWrapped {
				*last += " " + strings.TrimSpace(line)
			}
			continue
		}
		drawn := marker.FindString(line)
		framed = strings.ContainsAny(drawn, "×╰")
		plain = append(plain, line[len(drawn):])
	}
	return plain
}

// maxWrapped is the length from which a message is not extended by further lines, in bytes.
const maxWrapped = 4 << 10

// wrapped begins the further lines of a message that uv draws a frame around.
const wrapped = "      "

// weigh returns how likely a line contains the reason.
func weigh(line string) weight {
	text := strings.TrimSpace(line)
	indented := len(line) - len(strings.TrimLeft(line, " \t"))
	switch {
	case text == "" || noise.MatchString(line) || caused.MatchString(line):
		return isNoise
	case usage.MatchString(text):
		return isUsage
	case isWarned.MatchString(text):
		return isWarning
	case isNumber.MatchString(text):
		return isCode
	case indented >= 4: // code in a stack trace
		return isNoise
	case indented == 0 && grouped.MatchString(text):
		return isError
	case indented == 0 && thrown.MatchString(text):
		return isThrown
	case marked.MatchString(text):
		return isError
	case troubled.MatchString(text):
		return isTrouble
	}
	return isText
}

// withDetails adds the lines that a message goes on with: a list of what is
// invalid, or the message behind a place.
func withDetails(text string, following []string) string {
	if !goesOn.MatchString(text) {
		return text
	}
	added := 0
	for _, line := range following {
		line = strings.TrimSpace(line)
		if added == maxDetailLines || strings.HasPrefix(line, "at ") || strings.HasPrefix(line, "goroutine ") {
			break
		}
		if noise.MatchString(line) {
			continue
		}
		text += " " + line
		added++
	}
	return text
}

// withCause adds what an exception names as its cause, the deepest one.
func withCause(text string, following []string) string {
	cause := ""
	for _, line := range following {
		if found := caused.FindStringSubmatch(line); found != nil {
			cause = strings.TrimSpace(found[1])
		}
	}
	if cause == "" {
		return text
	}
	return text + "; caused by " + cause
}

// logMessage returns the message in a line of a structured log, and every other
// line as it is.
func logMessage(line string) string {
	var entry struct {
		Msg     string `json:"msg"`
		Message string `json:"message"`
		Error   string `json:"error"`
		Err     string `json:"err"`
	}
	if !strings.HasPrefix(line, "{") || strictjson.UnmarshalOpen([]byte(line), &entry) != nil {
		return line
	}
	var parts []string
	for _, part := range []string{entry.Msg, entry.Message, entry.Error, entry.Err} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return line
	}
	return strings.Join(parts, ": ")
}

// hostPath matches an absolute path of this machine, but not the path of a URL:
// the model does not need to know where things lie.
var hostPath = lazyregexp.New(`(^|[\s'"` + "`" + `(\[{<=,:;|])((?:file|unix):/*|[A-Za-z]:)?(/|\\)((?:[^\s'"` + "`" +
	`()\[\]{}<>,:;|/\\]+[/\\])+)([^\s'"` + "`" + `()\[\]{}<>,:;|/\\]*)`)

// urlText matches a URL with what may be a credential in it.
var urlText = lazyregexp.New(`\b(https?|wss?|postgres(?:ql)?|mysql|redis|mongodb(?:\+srv)?|amqp)://[^\s'"<>` + "`" +
	`]+`)

// withoutPaths writes ... for the directories of this machine, and leaves of a URL
// what plainURL does.
func withoutPaths(text string) string {
	text = urlText.ReplaceAllStringFunc(text, func(found string) string {
		rest := strings.TrimRight(found, ".,;:)]}")
		if plain := plainURL(rest); plain != "" {
			return plain + found[len(rest):]
		}
		return "[URL]"
	})
	return hostPath.ReplaceAllString(text, "${1}.../${5}")
}

// cutRunes cuts text to at most limit characters.
func cutRunes(text string, limit int) string {
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit]) + "..."
}

// firstAndLast are the lines of a server's stderr that are kept.
type firstAndLast struct {
	first []string
	last  []string // the newest ones behind the first
}

func (l *firstAndLast) add(line string) {
	switch {
	case len(l.first) < keptFirstLines:
		l.first = append(l.first, line)
	case len(l.last) == keptLastLines:
		l.last = append(l.last[:0], l.last[1:]...)
		l.last = append(l.last, line)
	default:
		l.last = append(l.last, line)
	}
}

// all returns the kept lines in order.
func (l *firstAndLast) all() []string { return append(append([]string{}, l.first...), l.last...) }
