package redact

import "bytes"

// value reads the value, with or without quotes.
func (p *reader) value(a *assignment) bool {
	if m := valueWrapper.FindSubmatchIndex(p.text[p.at:min(len(p.text), p.at+maxWrapper)]); m != nil {
		p.at += m[1]
		p.line = m[2] >= 0
	}
	if p.line {
		return p.block(a)
	}
	if m := inBrackets.FindIndex(p.rest()); m != nil {
		p.parenthesis = bytes.IndexByte(p.text[p.at:p.at+m[1]], '(') >= 0
		p.at += m[1] - 1
		a.loose = true
	}
	if !p.comma && p.raw(a) {
		return p.finish(a)
	}
	from := p.at
	p.blanks(true)
	lines := bytes.IndexByte(p.text[from:p.at], '\n') >= 0
	var quote []byte
	// in a query a quote is part of the value
	if before := p.text[max(0, p.nameStart-1)]; before != '?' && before != '&' {
		quote = p.quote()
	}
	if quote == nil {
		a.loose = a.loose || lines
		return !p.comma && p.plain(a) && (!lines || p.isOnlyLine(from, a))
	}
	a.quoted = true
	if isTriple(quote) && p.at < len(p.text) && p.text[p.at] == '\n' {
		p.at++
	}
	a.start = p.at
	if end := a.start + p.size; p.size > 0 && end < len(p.text) && bytes.HasPrefix(p.text[end:], quote) {
		a.end, p.at = end, end
		return p.finish(a)
	}
	escaped := -1 // the first quote after a backslash, which ends the value in some languages
	for p.at < len(p.text) && p.at-a.start <= maxValue {
		c := p.text[p.at]
		switch {
		case c == quote[0] && bytes.HasPrefix(p.text[p.at:], quote):
			if size := p.reopens(quote, a.start); size > 0 {
				p.at += size
				continue
			}
			a.end = p.at
			return p.parts(a, quote)
		case c == '\n':
			a.end = p.at
			if !isTriple(quote) && escaped >= 0 {
				a.end, p.at = escaped, escaped
				return p.finish(a)
			}
			return isTriple(quote) && p.finish(a)
		case c == '\\' && p.literal(quote):
		case c == '\\':
			if p.at+1 < len(p.text) && p.text[p.at+1] == quote[0] && escaped < 0 {
				escaped = p.at + 1
			}
			p.at++
			for quote[0] == '\\' && p.at < len(p.text) && p.text[p.at] == '\\' { // a string within a string
				p.at++
			}
		}
		p.at++
	}
	if escaped >= 0 && (p.at < len(p.text) || escaped+1 < len(p.text) && isDelimiter(p.text[escaped+1])) {
		a.end, p.at = escaped, escaped
		return p.finish(a)
	}
	p.at = min(p.at, len(p.text)) // a backslash may be the last character
	if p.at < len(p.text) || p.at-a.start < minTruncated {
		return false
	}
	a.end = len(p.text) // the text was cut within the value
	return p.finish(a)
}

// reopens returns the size of a closing quote after which the value continues, or 0. It is a
// doubled quote or, in a shell, a quote between two quoted parts.
func (p *reader) reopens(quote []byte, start int) int {
	if len(quote) != 1 {
		return 0
	}
	rest := p.text[p.at:min(len(p.text), p.at+8)]
	for _, again := range reopened[quote[0]] {
		if bytes.HasPrefix(rest, []byte(again)) {
			return len(again)
		}
	}
	if len(rest) > 1 && rest[1] == quote[0] && (p.at > start || len(rest) > 2 && !isDelimiter(rest[2])) {
		return 2
	}
	return 0
}

// literal reports whether the backslash at p.at is an ordinary character of a text in single
// quotes, as in a shell, in YAML and in SQL: the quote after it ends the text or is doubled.
func (p *reader) literal(quote []byte) bool {
	if len(quote) != 1 || quote[0] != '\'' {
		return false
	}
	rest := p.text[p.at+1 : min(len(p.text), p.at+8)]
	for _, again := range reopened['\''] {
		if bytes.HasPrefix(rest, []byte(again)) {
			return true
		}
	}
	return len(rest) > 2 && rest[0] == '\'' && rest[1] == '\'' && !isDelimiter(rest[2])
}

// isDelimiter reports whether a character can follow the closing quote of a value.
func isDelimiter(c byte) bool { return bytes.IndexByte([]byte(" \t\r\n,;:)]}>&|"), c) >= 0 }

// reopened are the ways to write a quote within a quoted text of a shell.
var reopened = map[byte][]string{'\'': {`'\''`, `'"'"'`}, '"': {`"'"'"`, `"\""`}}

// block reads a value that ends with its line: the first line of a block of YAML or of a heredoc, or a part of a form.
// It counts as quoted.
func (p *reader) block(a *assignment) bool {
	a.start, a.quoted = p.at, true
	for p.at < len(p.text) && p.at-a.start <= maxValue && p.text[p.at] != '\n' && p.text[p.at] != '\r' {
		p.at++
	}
	a.end = p.at
	return p.finish(a)
}

// valueWrapper matches the text before a value in some languages: block scalars of YAML and heredocs, which are its
// group, tags and anchors of YAML, constructors, an object with the value as a member, the length printed by PHP's
// var_dump.
var valueWrapper = compile(
	`\A(?:\*{2}[ \t]{1,4}` +
		`|([ \t]{1,4}[|>][-+0-9]{0,2}[ \t]{0,4}(?:#[^\n]{0,80})?\r?\n[ \t]{1,40}` +
		`|[ \t]{0,4}<<[-~]?["']?[A-Za-z_]\w{0,30}["']?\r?\n[ \t]{0,40})` +
		`|[ \t]{1,4}(?:!!str[ \t]{1,4}|&[\w\-]{1,30}[ \t]{1,4})` +
		`|[ \t]{0,4}(?:default|default_value|fallback)[ \t]{0,3}=[ \t]{0,3}` +
		`|[ \t]{0,4}(?:Some|Just|String::from|SecretStr|SecretString|SecretValue)\([ \t]{0,4}` +
		`|\s{0,10}\{\s{0,40}(?:\\{0,3}"[a-z_]{1,20}\\{0,3}":\s{0,3}[\w\\"]{1,20},\s{0,40}){0,3}` +
		`\\{0,3}["'](?:value|S|string_?value|plain_?[tT]ext)\\{0,3}["'][ \t]{0,3}:` +
		`|\s{0,20}string\(\d{1,5}\) )`)

// maxWrapper is the maximum length of such a text.
const maxWrapper = 300

// inBrackets matches the beginning of a quoted value in parentheses, or of a list.
var inBrackets = compile(`\A[ \t]{0,4}[(\[]\s{0,40}["'` + "`]")

// minTruncated is the minimum length of a quoted value that the end of the text cuts off before its
// closing quote.
const minTruncated = 8

// quote skips an opening quote and the letters that some languages put before it, and returns the
// closing quote.
func (p *reader) quote() []byte {
	m := opening.FindSubmatchIndex(p.text[p.at:min(len(p.text), p.at+12)])
	if m == nil {
		return nil
	}
	quote := p.text[p.at+m[2] : p.at+m[3]]
	p.at += m[1]
	if closing, ok := typographic[string(quote)]; ok {
		if !bytes.Contains(p.text[p.at:min(len(p.text), p.at+maxPrinted)], []byte(closing)) {
			p.at -= m[1]
			return nil
		}
		return []byte(closing)
	}
	if isTriple(quote) && !bytes.Contains(p.text[p.at:min(len(p.text), p.at+maxValue)], quote) {
		if p.at < len(p.text) && !isDelimiter(p.text[p.at]) {
			p.at -= 2 // one quote, followed by a doubled one
		}
		return quote[:1]
	}
	return quote
}

var opening = compile(`\A(?:[A-Za-z]{1,2}|[@$])?("""|'''|"|'|` + "`" + `|\\{1,3}["']|&quot;|[“„«‘])`)

// maxPrinted is the maximum number of bytes between typographic quotes.
const maxPrinted = 512

// typographic has the closing quote of each opening quote of printed text.
var typographic = map[string]string{"“": "”", "„": "“", "«": "»", "‘": "’"}

// isTriple reports whether a text is one quote three times.
func isTriple(quote []byte) bool { return len(quote) == 3 && quote[0] == quote[2] }
