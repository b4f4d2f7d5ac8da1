package sqltext

import (
	"regexp"
	"strings"
	"sync"
)

// Some statements with effects have so few words that prose can have them: "create user accounts", "lock table". These
// are only found if they are a whole statement, and their keywords are in capitals or the text ends with a semicolon.
// Other statements of the list have words that prose has not: these are found in any case.

// strict is a pair of regular expressions for a whole statement.
type strict struct{ capitals, any *regexp.Regexp }

// stricts are keyed by their first word, in lower case.
var stricts = sync.OnceValue(func() map[string][]strict {
	all := map[string][]strict{}
	for line := range strings.Lines(strictLines) {
		line, always := strings.CutPrefix(strings.TrimSpace(line), "~")
		if line == "" {
			continue
		}
		verbs, rest, _ := strings.Cut(line, " ")
		text := `(?s)^(?:` + verbs + `)`
		if rest != "" {
			text += expand(" " + rest)
		}
		text = strings.ReplaceAll(text, "<lower>", `(?-i:[a-z_\x60"\[@][\w.\x60"\]$]*)`) + `$`
		anyCase := regexp.MustCompile(`(?i)` + text)
		one := strict{anyCase, anyCase}
		if !always {
			one.capitals = regexp.MustCompile(text)
		}
		for verb := range strings.SplitSeq(strings.ToLower(verbs), "|") {
			all[verb] = append(all[verb], one)
		}
	}
	return all
})

// strictLines are regular expressions for whole statements, as in shapeLines. "~" marks those that are found in any
// case; the others are in capitals. <lower> is a name in lower case.
const strictLines = `
~REINDEX|SHUTDOWN|RECONFIGURE
VACUUM|CHECKPOINT
VACUUM|ANALYZE|ANALYSE (?:FULL |FREEZE |VERBOSE |ANALYZE )*<lower>
VACUUM (?:FULL|FREEZE|VERBOSE|ANALYZE)
VACUUM <name> RETAIN \d+ HOURS.*
ANALYZE|CHECK|REPAIR|OPTIMIZE|LOCK|UNDROP TABLE <name>.*
CREATE (?:OR REPLACE |TRUSTED )?(?:USER|ROLE|GROUP|LOGIN|DATABASE|SCHEMA|SEQUENCE|EXTENSION|LANGUAGE|WAREHOUSE|STAGE|TASK|PIPE|SERVER|TABLESPACE|KEYSPACE|CATALOG|SHARE|STREAM|DOMAIN|SYNONYM|DIRECTORY|CREDENTIAL) (?:IF NOT EXISTS )?<name>.*
~CREATE (?:TABLESPACE <name> (?:LOCATION|DATAFILE|ADD) .*|(?:TASK|PIPE) <name> .*\bAS .*)
COPY INTO \S+ FROM .*
~COPY INTO \S+ FROM [@'(].*
~UNLOAD \(.*\) TO '.*
~PUT file:/.*
~GET @\S+ file:/.*
~REMOVE|RM|LIST|LS @\S+
~EXPORT|IMPORT DATABASE '.*
~EXPORT DATA OPTIONS\s*\(.*
~LOAD|INSTALL (?:EXTENSION )?'.*
LOAD|INSTALL|LISTEN|UNLISTEN|NOTIFY|DETACH|EXECUTE|CALL|DELETE <lower>
EXEC <lower>(?: .*)?
~ATTACH '[^']*'\s*(?:\(.*)?
DISCARD (?:ALL|PLANS|SEQUENCES|TEMP|TEMPORARY)
UNLISTEN \*
UNLOCK TABLES
RESET (?:ALL|ROLE|SESSION AUTHORIZATION|<lower>)
SET <lower>\s*(?:=|TO) ?.*
ALTER (?:TABLE|EXTENSION|SEQUENCE|VIEW|FUNCTION|PROCEDURE|DATABASE|USER|ROLE|SERVER|TASK|WAREHOUSE|STAGE|PIPE|SHARE|LOGIN|SCHEMA|EVENT|INDEX|TRIGGER|TYPE|DOMAIN|POLICY|LANGUAGE|KEYSPACE|TABLESPACE|PUBLICATION|SUBSCRIPTION|ROUTINE) (?:IF EXISTS )?<name>.+
~ALTER DEFAULT PRIVILEGES .*
~ALTER LARGE OBJECT \d+ .*
~ALTER VIEW <name> AS .*
~ALTER (?:FUNCTION|PROCEDURE|AGGREGATE) <name>\(.*
~ALTER TABLE <name> (?:DELETE|UPDATE) .+
~DROP|REASSIGN OWNED BY <name>.*
~DROP (?:AGGREGATE|FUNCTION|PROCEDURE) <name>\(.*
~DROP CAST \(.*
DROP (?:EVENT|WAREHOUSE|STAGE|TASK|PIPE|SHARE|STREAM|LANGUAGE|OPERATOR|CAST|AGGREGATE|COLLATION|CONVERSION|TABLESPACE|KEYSPACE|DOMAIN|SYNONYM|TEXT SEARCH|FOREIGN DATA WRAPPER|ACCESS METHOD|USER MAPPING|RESOURCE GROUP|CREDENTIAL|ASSEMBLY|ROUTINE) (?:IF EXISTS )?\S.*
TRUNCATE (?:ONLY <name>.*|<name>\s*,.*)
GRANT|REVOKE (?:ROLE )?<name> (?:TO|FROM) .*
LOCK (?:TABLE )?<name> IN .* MODE(?: NOWAIT)?
~PREPARE TRANSACTION '.*
~COMMIT|ROLLBACK PREPARED '.*
DO <name>\(.*
~DBCC \w+\s*(?:\(.*)?
~DECLARE <name> (?:\w+ )*CURSOR .*
BEGIN (?:DELETE|UPDATE|INSERT|DROP|EXECUTE|MERGE|TRUNCATE|ALTER|CREATE)\s.*
~TABLE <name> INTO (?:OUTFILE|DUMPFILE) .*
SELECT .* FROM .* LOCK IN SHARE MODE
~INSERT INTO <name>\s*(?:\([^()]*\)\s*)?\(\s*(?:SELECT|VALUES|TABLE|WITH)\b.*
~INSERT|REPLACE (?:(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|IGNORE) )*<name>\s*(?:\([^()]*\)\s*)?VALUES?\s*\(.*
DELETE FROM <name> (?:AS )?<name>
~DELETE FROM (?:<name> AS \w+|[\w.]{4,} \w{1,3})
DELETE (?:TOP \(?\d+\)? (?:PERCENT )?|LOW_PRIORITY |QUICK |IGNORE )+(?:FROM )?<name>.*
DELETE <name>(?:\s*,\s*<name>)+ FROM <name>.*
RENAME USER \S+ TO .*
~SIGNAL SQLSTATE '.*
~BINLOG '.*
~MSCK (?:REPAIR )?TABLE .*
~OPTIMIZE <name> ZORDER BY .*
SYSTEM (?:DROP|SHUTDOWN|KILL|FLUSH|STOP|START|RELOAD|RESTART|RESTORE|SYNC|UNFREEZE)\b.*
EXCHANGE (?:TABLES|DICTIONARIES) <name> AND .*
DETACH (?:TABLE|VIEW|DATABASE|DICTIONARY) <name>.*
CACHE INDEX <name>.* IN <name>
`

// procedure matches SQL Server's call of a procedure without EXEC, which the first statement can have.
var procedure = regexp.MustCompile(`(?i)^(?:sp|xp)_\w+\s*(?:'|@|N')`)

// isStrict reports whether a statement of a text is one of strictLines.
func isStrict(text string) bool {
	terminated := strings.HasSuffix(strings.TrimSpace(text), ";")
	count := 0
	for statement := range strings.SplitSeq(text, ";") {
		statement = strings.TrimSpace(statement)
		if statement == "" {
			continue
		}
		if count++; count > maxBeginnings {
			return true
		}
		if len(statement) > window {
			statement = statement[:window]
		}
		end := strings.IndexFunc(statement, func(r rune) bool { return r > 0x7f || !isWordByte(byte(r)) })
		if end < 0 {
			end = len(statement)
		}
		if procedure.MatchString(statement) {
			return true
		}
		verb := strings.ToLower(statement[:end])
		for _, s := range stricts()[verb] {
			if s.capitals.MatchString(statement) || terminated && s.any.MatchString(statement) {
				return true
			}
		}
	}
	return false
}
