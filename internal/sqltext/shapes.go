package sqltext

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// shape describes the start of a statement with effects.
type shape struct {
	*regexp.Regexp
	destroys bool // something is removed as a whole
}

// Limits of a search. A text in which more than maxBeginnings statements may start is treated as
// SQL with effects.
const (
	window        = 500 // inspected bytes of a statement
	maxBeginnings = 4096
)

// shapes are keyed by their first word. They match more than the first words, so that ordinary
// sentences such as "Update the page" do not match.
var shapes = sync.OnceValue(func() map[string][]shape {
	all := map[string][]shape{}
	for line := range strings.Lines(shapeLines) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		destroys := strings.HasPrefix(line, "!")
		verbs, rest, _ := strings.Cut(strings.TrimPrefix(line, "!"), " ")
		compiled := regexp.MustCompile(`(?is)^` + expand(" "+rest))
		for verb := range strings.SplitSeq(verbs, "|") {
			all[verb] = append(all[verb], shape{compiled, destroys})
		}
	}
	return all
})

// expand replaces the abbreviations in a line of shapeLines.
func expand(line string) string {
	plain := `[\p{L}_@#:$%?][\p{L}\p{Nd}_$#-]*`
	quoted := "(?:\"[^\"]{1,99}\"|`[^`]{1,99}`|\\[[^\\]]{1,99}\\]|\\{{1,2}[\\w .]{0,60}\\}{1,2})" // or a placeholder
	more := `(?:\s*\.\s*(?:` + plain + `|` + quoted + `))*`
	return strings.NewReplacer(
		" <name>", `(?:\s+`+plain+`|\s*`+quoted+`)`+more,
		"<name>", `(?:`+plain+`|`+quoted+`)`+more,
		"<end>", `\s*(?:;|$|--|#|/\*|['"\)\x60\\])`,
		"<object>", `(?:(?:materialized|temporary|foreign|public|external)\s+)?(?:`+
			strings.Join(slices.Sorted(maps.Keys(words().objects)), "|")+`)`,
		" ", `\s+`,
	).Replace(line)
}

// shapeLines are verbs and regular expressions for the text after them. A space matches any white
// space; "!" marks a destructive statement.
const shapeLines = `
delete from (?:only )?<name>(?:<end>|\s*,| (?:(?:as )?\w+ )?(?:where|using|order|limit|returning|output|inner|left|join|partition)\b)
delete <name> (?:where [^;]{0,200}?(?:[=<>!]|\b(?:in|like|is|between|exists)\b)|from <name>(?:<end>|\s*,| (?:(?:as )?\w+ )?(?:where|inner|left|right|cross|natural|join|using)\b| (?:as \w+|\w{1,3})<end>))
update [^;=]{1,300}?\sset [^;=]{0,60}[^;=\s]\s*\+?=
insert|replace (?:\w+ )?into <name>\s*(?:(?:as )?\w+\s*)?(?:\([^()';]*\)\s*)?(?:values?\s*\(|select\b|default values|set \S+\s*=|with\b|table\b|overriding\b|output\b|exec)
insert <name>\s*(?:\([^()';]*\)\s*)?(?:values\s*\(|select\b)
merge (?:into )?<name>[^;]{0,100}?\susing\s[^;]*?\son\s[^;]*?\swhen (?:not )?matched
!drop <object> (?:concurrently )?(?:if exists )?<name>(?:<end>|\s*[,(]|\s*(?:cascade|restrict|purge|force)\b)
!drop (?:trigger|policy|index|rule) (?:if exists )?<name> on <name>
!truncate table (?:only )?<name>(?:<end>|\s*,| (?:cascade|restrict|restart|continue|reuse|drop|purge|partition)\b)
truncate <name>(?: (?:cascade|restrict|restart|continue)\b[^;]{0,40})?\s*(?:;|$)
!alter <object> (?:if exists )?(?:only )?<name> drop\b
alter (?:<object>|system|session|profile|aggregate|rule) (?:if exists )?(?:only )?(?:<name> )?(?:add|alter|rename|modify|change|set|reset|owner|disable|enable|with|identified|password|attach|detach|rebuild|convert|engine|superuser|nologin|login|rename|replica|force|validate|inherit|cluster|auto_increment|refresh|depends|kill|switch)\b
create (?:(?:or replace|temp|temporary|global|local|unlogged|unique|virtual|external|transient|materialized|foreign|recursive|definer\s*=\s*\S+|algorithm\s*=\s*\S+) )*(?:table (?:if not exists )?<name>\s*(?:\(|as (?:select|with|table|values)\b|like\b|partition of\b|using\b|of \w+\s*[;$(])|view (?:if not exists )?<name>\s*(?:\([^()]*\)\s*)?as[\s(]+(?:select|with|values|table)\b)
create (?:or replace |unique |fulltext |clustered )?(?:index (?:concurrently )?(?:if not exists )?(?:<name> )?on (?:only )?<name>\s*(?:using \w+\s*)?\(|(?:function|procedure|proc|aggregate|package|event) (?:if not exists )?<name>\s*(?:\(|@|(?:as|is|begin|returns|on schedule)\b)|trigger (?:if not exists )?<name> (?:before|after|instead|on|for)\b)
create (?:or replace )?(?:database|schema|user|role|login|extension|sequence|type|domain|server|publication|subscription|policy|rule|cast|operator|synonym) (?:if not exists )?<name>\s*(?:;|(?:with|identified|password|authorization|character|collate|for login|as enum|as \(|as on|start|increment|superuser|foreign data|connection|on \S+ to)\b)
grant|revoke|deny (?:all|select|insert|update|delete|execute|usage|create|connect|references|trigger|alter|drop|super|file|process|reload|control|truncate|impersonate|dba|temporary)\b[^;]{0,300}?\s(?:on|to|from) <name>[^;]{0,200}?(?:(?:to|from) <name>|<end>)
grant|revoke <name>(?:\s*,\s*<name>)* (?:to|from) <name>\s*(?:;|with (?:admin|grant|inherit)\b)
exec|execute (?:\w+\.+)*(?:xp_|sp_)\w+
exec|execute (?:immediate [':@\w]|<name>\s*(?:;|@|'|\())
call <name>\(
copy (?:<name>\s*(?:\([^()]*\)\s*)?|\([^;]+\)\s*)(?:to|from) (?:program\b|stdin\b|stdout\b|['$@])
attach (?:database \S+|'[^']*'|"[^"]*") as \w
detach database \w
pragma (?:\w+\.)?\w+\s*(?:=|\(|;|$)
load data (?:low_priority |concurrent )?(?:local )?infile\b
set (?:(?:global|session|persist|local) [\w.]+\s*(?:=|to\b)|@@?[\w.]+\s*:?=|password\b[^;]{0,60}=|role <name>\s*(?:;|$)|search_path\b|identity_insert\b|(?:session )?authorization\b|sql_log_bin\b|foreign_key_checks\b)
do (?:\$\w*\$|'|language\b)
lock tables? <name>[^;]{0,100}?\b(?:read|write|in \w+)\b
rename table <name> to <name>
waitfor (?:delay|time) ['@]
backup|restore (?:database|log) <name> (?:to|from) \w
bulk insert <name> from ['N]
kill (?:query |connection )?\d+\s*(?:;|$)
shutdown (?:with nowait|immediate|abort)\b
begin (?:tran|transaction|work)?\s*;
declare @\w+ \w
vacuum (?:full|into)\b
reconfigure (?:with override)?\s*;
handler <name> (?:open|read|close)\b
select [^;]{1,400}?\sinto (?:outfile|dumpfile)\s*['"]
prepare <name>\s*(?:\([^()]*\)\s*)?(?:as (?:delete|insert|update|merge|select|values|with|table)\b|from ['"@])
reindex (?:\([^()]*\)\s*)?(?:index|table|schema|database|system) (?:concurrently )?<name><end>
cluster (?:verbose )?<name> using <name><end>
flush (?:no_write_to_binlog |local )?(?:tables|privileges|hosts|user_resources|(?:binary |engine |error |general |relay |slow )?logs)(?:<end>| with read lock\b)
install (?:plugin <name> soname\b|(?:soname|component) ['"])
uninstall (?:plugin <name>\s*;|(?:soname|component) ['"])
create (?:or replace )?(?:user|role) (?:if not exists )?'[^']*'
!drop (?:user|role) (?:if exists )?'[^']*'
refresh materialized view (?:concurrently )?<name>(?:<end>| with (?:no )?data\b)
import foreign schema <name>[^;]{0,300}?\sfrom server <name> into\b
comment on (?:\w+ ){1,2}<name>(?: on <name>)?\s*(?:\([^()]*\)\s*)?is (?:'|null\b)
security label (?:for \S+ )?on \w+ <name> is (?:'|null\b)
notify <name>\s*,\s*'
optimize|repair|analyze (?:no_write_to_binlog |local )?table <name>\s*;
reset (?:master|slave|replica)(?:<end>| (?:all|to)\b)
purge (?:binary|master) logs (?:to|before)\b
change (?:master|replication source|replication filter) (?:to )?[\w']+\s*=
start|stop (?:slave|replica|group_replication)<end>
insert overwrite (?:table )?<name>\s*(?:partition\s*\([^()]*\)\s*)?(?:\([^()';]*\)\s*)?(?:values\b|select\b|with\b|table\b|from\b)
upsert (?:into )?<name>\s*(?:\([^()';]*\)\s*)?(?:values\s*\(|select\b)
!drop (?:measurement|retention policy|continuous query) <name><end>
delete (?:(?:where|data) )?\{
insert (?:data )?\{
clear (?:silent )?graph <
delete \[\s*select\b
`

// HasEffects reports whether an arbitrary text could be, or contain, SQL that does more than read.
// Use it for arguments that are not declared as SQL: ordinary prose and SQL that is a Read have no
// effects. Use Judge for a text that is known to be SQL. HasEffects takes linear time and is safe
// for concurrent use.
func HasEffects(text string) bool {
	if Judge(text).Effect == Read {
		return false
	}
	return slices.ContainsFunc(views(text), func(view string) bool {
		return contains(view, func(shape) bool { return true }, true) || isStrict(view) || hasQuery(view) ||
			inSentence(view)
	})
}

// Destroys reports whether an arbitrary text contains a statement that removes a database, a table
// or the like, such as DROP TABLE, outside of closed quotes. It takes linear time and is safe for
// concurrent use.
func Destroys(text string) bool {
	destroying := func(s shape) bool { return s.destroys }
	if tokens, problem, _ := lex(text); problem == "" {
		return contains(plain(tokens), destroying, false)
	}
	return slices.ContainsFunc(views(text), func(view string) bool { return contains(view, destroying, false) })
}

// plain writes tokens without the contents of strings and quoted names.
func plain(tokens []token) string {
	var text strings.Builder
	for _, t := range tokens {
		switch t.kind {
		case name:
			text.WriteString(`"name"`)
		case literal:
			text.WriteString("''")
		case number:
			text.WriteString("0")
		default:
			text.WriteString(t.text)
		}
		text.WriteByte(' ')
	}
	return text.String()
}

// views returns the text unchanged, without its comments, with the contents of comments as part of
// the text, and with spaces around the quotes of names.
func views(text string) []string {
	all := []string{text}
	if strings.Contains(text, "/*") || strings.Contains(text, "--") || strings.Contains(text, "#") {
		all = append(all, withoutComments(text))
	}
	if strings.Contains(text, "/*") {
		all = append(all, delimiters.ReplaceAllString(text, " "))
	}
	if strings.ContainsAny(text, "\v\x00") {
		all = append(all, white.Replace(text)) // MySQL and newer PostgreSQL read a vertical tab as a space
	}
	if strings.ContainsAny(text, "\"`[") {
		all = append(all, spaced.Replace(text)) // no space is needed around a quoted name
	}
	return all
}

// delimiters are those of comments, with the version of the servers that execute a comment.
var delimiters = regexp.MustCompile(`/\*(?:M?!\d*)?|\*/`)

var white = strings.NewReplacer("\v", " ", "\x00", " ")

var spaced = strings.NewReplacer(`"`, ` " `, "`", " ` ", "[", " [ ", "]", " ] ")

// withoutComments replaces each comment in a text with a space, even inside quotes.
func withoutComments(text string) string {
	var kept strings.Builder
	for text != "" {
		i := strings.IndexAny(text, "/-#")
		if i < 0 {
			break
		}
		kept.WriteString(text[:i])
		text = text[i:]
		switch {
		case strings.HasPrefix(text, "/*"):
			_, text, _ = strings.Cut(text[2:], "*/")
		case strings.HasPrefix(text, "--") || text[0] == '#':
			end := strings.IndexAny(text, "\r\n")
			if end < 0 {
				end = len(text)
			}
			text = text[end:]
		default:
			kept.WriteByte(text[0])
			text = text[1:]
			continue
		}
		kept.WriteByte(' ')
	}
	kept.WriteString(text)
	return kept.String()
}

// contains reports whether a shape occurs at the start of the text or after punctuation after which
// a statement can start. In a text that starts as a query, a statement can start at any word,
// because SQL Server needs no semicolon.
func contains(text string, wanted func(shape) bool, inQuotes bool) bool {
	anywhere, begun, beginnings := false, true, 0
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case isLetter(c):
			end := i
			for end < len(text) && isWordByte(text[end]) {
				end++
			}
			first := begun
			begun = anywhere
			if all := verb(text[i:end]); first && (all.shapes != nil || all.query) {
				anywhere = anywhere || all.query
				begun = begun || all.query
				if beginnings++; beginnings > maxBeginnings {
					return true
				}
				rest := text[end:min(len(text), end+window)]
				if slices.ContainsFunc(all.shapes, func(s shape) bool { return wanted(s) && s.MatchString(rest) }) {
					return true
				}
			}
			i = end
		case c == ' ' || c == '\t' || c == ',' || c == '.' || c == '?' || c == '!' || c == ':':
			i++
		case !inQuotes && (c == '\'' || c == '"' || c == '`'):
			i++
		case isWordByte(c):
			begun = anywhere
			i++
		default:
			begun = true
			i++
		}
	}
	return false
}

func isWordByte(c byte) bool { return isLetter(c) || isDigit(c) || c == '_' || c >= 0x80 }

// statementStart is a possible start of a statement.
type statementStart struct {
	shapes []shape
	query  bool
}

// longestVerb is the length of the longest first word of a statement.
const longestVerb = len("reconfigure")

func verb(text string) statementStart {
	if len(text) > longestVerb {
		return statementStart{}
	}
	text = strings.ToLower(text)
	return statementStart{shapes()[text], text == "select" || text == "explain" || text == "with"}
}

// plurals matches endings such as those of "Select file(s)".
var plurals = regexp.MustCompile(`(?i)\((?:s|es|ies)\)`)

// hasQuery reports whether a text is a query with effects: it calls a function that is not known to
// be read-only, writes its rows somewhere, or locks them.
func hasQuery(text string) bool {
	if len(text) > MaxText {
		return false
	}
	tokens, problem, _ := lex(plurals.ReplaceAllString(text, ""))
	if problem != "" {
		return false
	}
	queried := false
	for _, s := range split(tokens, 0) {
		v := s.judge()
		if (v.calls || v.Effect != Read && s.writes()) && !s.isProse() {
			return true
		}
		if queried && v.Effect != Read {
			return true // the text after a query is SQL, too
		}
		queried = queried || v.Effect == Read && s.isQuery() && !s.isProse()
	}
	return false
}

// isQuery reports whether a read has more than words: sentences such as "Select a colour" have not.
func (s statement) isQuery() bool {
	return words().reading[s.at(s.first()).text] && slices.ContainsFunc(s, func(t token) bool {
		return t.kind != word || t.text == "from"
	})
}

// writes reports whether a query has INTO and a target, FOR UPDATE, or a sequence.
func (s statement) writes() bool {
	if first := s.at(s.first()).text; !words().reading[first] {
		return false
	}
	from := false
	for i, t := range s {
		if t.kind != word {
			continue
		}
		next, after := s.at(i+1), s.at(i+2)
		switch t.text {
		case "from":
			from = true
		case "into":
			if next.text == "outfile" || next.text == "dumpfile" || next.kind == parameter || after.text == "from" ||
				after.kind == symbol && after.text == "" {
				return true
			}
		case "for":
			if from && (next.text == "update" || next.text == "share" || next.text == "no" && after.text == "key") {
				return true
			}
		case "value":
			if s.at(i-1).text == "next" && next.text == "for" {
				return true
			}
		case "nextval":
			return true
		}
	}
	return false
}

// isProse reports whether the words have an order that is not possible in a query.
func (s statement) isProse() bool {
	v, depth, run := words(), 0, 0
	for _, t := range s {
		switch {
		case t.is("("):
			depth++
		case t.is(")"):
			depth--
		}
		plain := t.kind == word && !v.introducers[t.text] && !v.parentheses[t.text] && !v.reading[t.text] &&
			!v.types[t.text] && !v.functions[t.text] && !v.keywords[t.text]
		if plain || t.kind == number {
			run++
		} else {
			run = 0
		}
		if run == 3 || run == 2 && (depth > 0 || t.kind == number) {
			return true
		}
	}
	return false
}
