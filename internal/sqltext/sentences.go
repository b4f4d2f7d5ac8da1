package sqltext

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A text can ask for a statement: "Please run DELETE FROM users for me." The statements of sentenceLines are found at
// any word. They are as long as is necessary to distinguish them from prose, which uses the same words.

// sentenceLines are regular expressions for the beginnings of statements, as in strictLines: those with "~" are found
// in any case, the others in capitals. <condition> is a comparison, and <stop> is the end of a sentence.
const sentenceLines = `
DELETE FROM (?:ONLY )?<name>
~DELETE FROM (?:ONLY )?<name> (?:(?:AS )?\w+ )?WHERE (?:NOT )?<condition>
DELETE <name> WHERE
UPDATE (?:ONLY )?<name> (?:(?:AS )?\w+ )?SET <name>
~UPDATE (?:ONLY )?<name> (?:(?:AS )?\w+ )?SET <name>\s*[-+*|]?=\s*\S
INSERT|REPLACE (?:\w+ )?INTO <name>\s*(?:\(|VALUES|SELECT|DEFAULT|SET)
~INSERT|REPLACE (?:(?:or|ignore|overwrite|replace|low_priority|delayed) )*INTO <name>\s*(?:\([^()';]*\)\s*)?(?:VALUES?\s*\(|SELECT (?:\*|\S+\s*,|\S+ FROM\b))
MERGE INTO <name>
~WHEN (?:NOT )?MATCHED (?:AND [^;]{1,80}?\s)?THEN (?:DELETE|UPDATE|INSERT|DO)\b
DROP <object> (?:CONCURRENTLY )?(?:IF EXISTS )?<name>
~DROP <object> (?:CONCURRENTLY )?IF EXISTS <name>
~DROP (?:TABLE|DATABASE|SCHEMA|VIEW|INDEX) <name>(?:\s*;|\s+CASCADE\b)
~DROP TABLE <name>(?:\s*,\s*<name>)*<stop>
TRUNCATE TABLE <name>
~TRUNCATE TABLE <name><stop>
~ALTER TABLE (?:IF EXISTS )?(?:ONLY )?<name> DROP (?:COLUMN|CONSTRAINT|PRIMARY|FOREIGN|PARTITION)
ALTER <object> (?:IF EXISTS )?(?:ONLY )?<name> [A-Z]{2,}
ALTER SYSTEM (?:SET|RESET)
~ALTER TABLE (?:IF EXISTS )?(?:ONLY )?<name> (?:ADD|RENAME|MODIFY|ALTER) (?:COLUMN|CONSTRAINT|TO) <name>
CREATE (?:(?:OR REPLACE|TEMP|TEMPORARY|UNIQUE|MATERIALIZED|EXTERNAL|UNLOGGED) )*<object> (?:IF NOT EXISTS )?<name>
~CREATE TABLE (?:IF NOT EXISTS )?<name>\s*\(\s*\w+ (?:INT|TEXT|VARCHAR|CHAR|SERIAL|BIGINT|UUID|DATE|TIMESTAMP|BOOL|NUMERIC|JSON)
GRANT|REVOKE (?:[A-Z]{2,}[ ,]\s*){1,20}(?:ON \S+ )?(?:TO|FROM) ['\w"\x60]
~GRANT|REVOKE (?:ALL|SELECT|INSERT|UPDATE|DELETE|EXECUTE)(?: PRIVILEGES)?(?:\s*,\s*(?:SELECT|INSERT|UPDATE|DELETE))* ON (?:TABLE |SCHEMA |DATABASE )?(?:\S+) (?:TO|FROM) \S
~EXEC|EXECUTE (?:\w+\.+)*(?:xp_|sp_)\w+
~INTO (?:OUTFILE|DUMPFILE) ['"]
~COPY <name>\s*(?:\([^()]*\)\s*)?(?:FROM|TO) (?:PROGRAM )?'
~SELECT (?:pg_terminate_backend|pg_cancel_backend|pg_read_file|pg_ls_dir|lo_import|lo_export|dblink_exec|set_config|setval|nextval|xp_cmdshell|load_file|pg_sleep|pg_reload_conf)\s*\(
LOCK TABLES? <name>
VACUUM FULL
`

// sentence is a pattern for statements in prose.
type sentence struct {
	*regexp.Regexp
	words   []string // in lower case; a text without one of these does not match
	anyCase bool
}

var sentences = sync.OnceValue(func() []sentence {
	var all []sentence
	for line := range strings.Lines(sentenceLines) {
		line, anyCase := strings.CutPrefix(strings.TrimSpace(line), "~")
		if line == "" {
			continue
		}
		flags, objects := `(?is)`, strings.Join(slices.Sorted(maps.Keys(words().objects)), "|")
		if !anyCase {
			flags, objects = `(?s)`, strings.ToUpper(objects)
		}
		verbs, rest, _ := strings.Cut(line, " ")
		rest = strings.NewReplacer(
			"<condition>", `[\w."\x60\[\]]+\s*`+
				`(?:[=<>!]|\b(?:IN\s*\(|LIKE\s+'|IS\s+(?:NOT\s+)?NULL\b|BETWEEN\s+\S+\s+AND\b))`,
			"<object>", `(?:`+objects+`)`,
			"<stop>", `\s*(?:$|[;.!?](?:\s|$)|['"\)\x60])`,
		).Replace(rest)
		all = append(all, sentence{
			regexp.MustCompile(flags + `\b(?:` + verbs + `)` + expand(" "+rest)),
			strings.Split(strings.ToLower(verbs), "|"), anyCase,
		})
	}
	return all
})

// noNames are words after the name of a statement in prose, such as "DROP TABLE statements". Those of the first group
// are in capitals in a text that has no other letters.
var noNames = regexp.MustCompile(`\b(?:(?i:the|an|your|my|this|that|these|those|our|their|each|every)|and|or|are|is|` +
	`as|was|were|will|can|may|must|in|on|for|with|without|to|by|if|when|which|has|have|needs?|takes?|requires?|does|` +
	`works?|fails?|statements?|commands?|quer(?:y|ies)|clauses?|syntax|privileges?|permissions?|operations?|` +
	`keywords?|requests?|calls?|lines?|tests?)\b`)

// inSentence reports whether a text contains a statement of sentenceLines.
func inSentence(text string) bool {
	lower, named := strings.ToLower(text), ""
	for _, s := range sentences() {
		for _, word := range s.words {
			if !strings.Contains(lower, word) {
				continue
			}
			if named == "" {
				named = noNames.ReplaceAllString(text, ",")
			}
			if s.anyCase && s.MatchString(text) || !s.anyCase && s.MatchString(named) {
				return true
			}
			break
		}
	}
	return false
}
