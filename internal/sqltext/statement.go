package sqltext

import "slices"

// statement is the tokens of one statement.
type statement []token

// split returns the statements of the tokens in a dialect that treats the given tails as comments.
func split(tokens []token, comments tail) []statement {
	if comments != 0 {
		kept := make([]token, 0, len(tokens))
		for _, t := range tokens {
			if t.tail&comments == 0 {
				kept = append(kept, t)
			}
		}
		tokens = kept
	}
	var all []statement
	for len(tokens) > 0 {
		end := slices.IndexFunc(tokens, func(t token) bool { return t.is(";") })
		if end < 0 {
			return append(all, tokens)
		}
		if end > 0 {
			all = append(all, tokens[:end])
		}
		tokens = tokens[end+1:]
	}
	return all
}

// at returns the i-th token, or an empty symbol if i is out of range.
func (s statement) at(i int) token {
	if i < 0 || i >= len(s) {
		return token{}
	}
	return s[i]
}

// first returns the index of the first token after opening parentheses.
func (s statement) first() int {
	return max(0, slices.IndexFunc(s, func(t token) bool { return !t.is("(") }))
}

// role is the role of a pair of parentheses.
type role uint8

const (
	group   role = iota // an expression, a list or a query
	call                // arguments of a function
	columns             // column names after an alias
)

// cte is a position in a list of common table expressions.
type cte uint8

const (
	outside  cte = iota
	expected     // a name follows
	named        // columns or AS follow
	defined      // a query in parentheses follows
	queried      // a comma or the statement follows
)

type frame struct {
	role role
	cte  cte
}

// reading is a walk over a statement that searches for a reason why it may not be a Read.
type reading struct {
	statement
	vocabulary
	frames []frame
	next   role // of the next parenthesis
	calls  bool // the reason is a function
}

// effect returns the reason why a statement may do more than read, and whether the reason is a
// function call. The reason is empty if it only reads.
func (s statement) effect() (reason string, calls bool) {
	first := s.at(s.first())
	r := reading{statement: s, vocabulary: words(), frames: []frame{{}}}
	if first.kind != word || !r.vocabulary.reading[first.text] {
		return "a statement that reads begins with SELECT, WITH, VALUES, TABLE, SHOW, DESCRIBE or EXPLAIN", false
	}
	for i := range s {
		if reason := r.step(i); reason != "" {
			return reason, r.calls
		}
	}
	if len(r.frames) != 1 {
		return "a parenthesis is not closed", false
	}
	return "", false
}

func (r *reading) top() *frame { return &r.frames[len(r.frames)-1] }

func (r *reading) step(i int) string {
	t := r.statement[i]
	if reason := r.list(i); reason != "" {
		return reason
	}
	switch {
	case t.is("("):
		r.frames = append(r.frames, frame{role: r.next})
		r.next = group
	case t.is(")"):
		if len(r.frames) == 1 {
			return "a parenthesis is closed that was not opened"
		}
		r.frames = r.frames[:len(r.frames)-1]
		if top := r.top(); top.cte == defined {
			top.cte = queried
		}
		if r.at(i + 1).is("(") {
			return "a parenthesis follows another one"
		}
	case t.is("::"):
		return r.conversion(i + 1)
	case t.kind == word:
		return r.word(i)
	case r.at(i + 1).is("("):
		return r.before(i)
	case r.top().role == columns && t.kind != name && !t.is(","):
		return "a list of columns has more than names"
	}
	return ""
}

// list parses a list of common table expressions: WITH a AS (…), b (c) AS (…) SELECT.
func (r *reading) list(i int) string {
	t, top := r.statement[i], r.top()
	switch top.cte {
	case expected:
		if t.kind == word && t.text == "recursive" {
			return ""
		}
		top.cte = named
		if t.kind != word && t.kind != name || r.at(i+1).is(".") {
			return "WITH is not followed by a name"
		}
	case named:
		if t.kind == word && t.text == "as" {
			top.cte = defined
		} else if !t.is("(") && !t.is(")") {
			return "WITH is not followed by a name and AS"
		}
	case defined:
		if !t.is("(") && t.text != "not" && t.text != "materialized" {
			return "a common table expression is not a query in parentheses"
		}
	case queried:
		switch {
		case t.is(","):
			top.cte = expected
		case t.is("(") || t.kind == word && (t.text == "select" || t.text == "values" || t.text == "table"):
			top.cte = outside
		default:
			return "no SELECT follows the common table expressions"
		}
	}
	return ""
}

// word checks a keyword or an unquoted name.
func (r *reading) word(i int) string {
	t, before, after := r.statement[i], r.at(i-1), r.at(i+1)
	if r.isMember(i) {
		switch {
		case after.is("("):
			r.calls = true
			return "functions with a schema, such as " + t.text + ", are not known to only read"
		case after.kind == literal:
			return "a type with a schema may call a function"
		case t.text == "nextval":
			return "nextval changes a sequence"
		}
		return ""
	}
	v, pair := r.vocabulary, ""
	if before.kind == word {
		pair = before.text + "_" + t.text
	}
	listed := r.top().cte == named && !before.is(")")
	switch {
	case listed:
	case pair == "show_create" && i == 1 && !slices.ContainsFunc(r.statement, func(t token) bool { return t.is("(") }):
	case v.harmless[pair]:
	case v.pairs[pair]:
		return "the statement has " + before.text + " " + t.text
	case t.text == "truncate" && after.is("("): // a function of numbers
	case v.changing[t.text]:
		return "the statement has " + t.text
	case v.starting[t.text] && r.mayEndBefore(i) && !r.isFollowedByKey(i):
		return "SQL Server begins another statement at " + t.text
	case before.is(":") && before.first && v.commands[t.text]:
		return "a line begins with a command of sqlcmd, :" + t.text
	case t.text == "go" && t.first && (after.kind == 0 && after.text == "" || after.first):
		return "a line GO begins another batch"
	}
	switch {
	case t.text == "with" && (i == r.first() || before.is("(") || before.text == "explain"):
		r.top().cte = expected
	case t.text == "select" && r.top().role == call:
		r.top().role = group // a query without parentheses around it
	case t.text == "as" && r.top().role == call:
		return r.conversion(i + 1)
	case after.is("("):
		return r.before(i)
	case after.kind == literal:
		return r.beforeText(i)
	}
	return ""
}

// isMember reports whether the i-th token follows a name and a dot.
func (s statement) isMember(i int) bool {
	return s.at(i-1).is(".") && (s.at(i-2).kind == word || s.at(i-2).kind == name || s.at(i-2).is("]"))
}

// mayEndBefore reports whether a statement can end before the i-th token, because the previous one
// is not a keyword or an operator that needs an operand.
func (r *reading) mayEndBefore(i int) bool {
	switch before := r.at(i - 1); before.kind {
	case symbol:
		return before.is(")") || before.is("]") || before.is("*") || before.is("?")
	case word:
		return r.isMember(i-1) || !r.introducers[before.text] && !r.parentheses[before.text]
	}
	return true
}

// isFollowedByKey accepts MySQL's hint USE INDEX.
func (s statement) isFollowedByKey(i int) bool {
	return s[i].text == "use" && (s.at(i+1).text == "index" || s.at(i+1).text == "key")
}

// before checks a token that is followed by a parenthesis.
func (r *reading) before(i int) string {
	t, v := r.statement[i], r.vocabulary
	plain := t.kind == word
	keyword := plain && (v.introducers[t.text] || v.parentheses[t.text])
	afterAs := r.at(i-1).kind == word && r.at(i-1).text == "as" && !r.isMember(i-1) && r.top().role != call
	switch {
	case t.kind == symbol && !t.is("]"):
	case r.top().cte == named, (afterAs || r.at(i-1).is(")")) && (plain && !keyword || t.kind == name):
		r.next = columns
	case keyword:
	case plain && (v.functions[t.text] || v.types[t.text]):
		r.next = call
	case plain:
		r.calls = true
		return "the function " + t.text + " is not known to only read"
	default:
		r.calls = true
		return "a call of a quoted name is not known to only read"
	}
	return ""
}

// beforeText checks a word that is followed by a string, which PostgreSQL may read as a conversion
// to a type with that name.
func (r *reading) beforeText(i int) string {
	t, v := r.statement[i].text, r.vocabulary
	before := r.at(i - 2).text
	isDistinct := t == "from" && r.at(i-1).text == "distinct" && (before == "is" || before == "not")
	if v.introducers[t] || v.types[t] || v.prefixes[t] || isDistinct || t == "from" && r.top().role == call {
		return ""
	}
	return "a string follows " + t + ", which may be a conversion that calls a function"
}

// conversion checks the target type of a conversion at i.
func (r *reading) conversion(i int) string {
	if t := r.at(i); t.kind == word && r.types[t.text] && !r.at(i+1).is(".") {
		return ""
	}
	return "a conversion to a type that is not built in may call a function"
}
