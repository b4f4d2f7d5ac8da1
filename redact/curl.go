package redact

import "bytes"

// curlUser finds the password in curl's argument -u USER:PASSWORD in any quoting of the shell, or a
// token given as user or password (curl(1), --user).
func curlUser(text []byte, at, size int) (place, bool) {
	if at == 0 || !bytes.Contains(text[max(0, at-600):at], []byte("curl ")) ||
		bytes.IndexByte([]byte(" \t\n'\""), text[at-1]) < 0 {
		return place{}, false
	}
	m := userArgument.FindSubmatchIndex(text[at+size : min(len(text), at+size+300)])
	if m == nil {
		return place{}, false
	}
	for group := 2; group < len(m); group += 2 {
		if m[group] >= 0 && m[group] < m[group+1] {
			start, end := at+size+m[group], at+size+m[group+1]
			end = start + endOfText(text[start:end])
			return place{start, end, 0}, end > start && isCurlPassword(text[start:end])
		}
	}
	return place{}, false
}

// userArgument captures a password, quoted or not, or a user name without a password.
var userArgument = compile(`\A[ =]{0,4}(?:` +
	`"[^"\s:]{0,80}:((?:[^"\\\n]|\\[^\n]){3,120})"|'[^'\s:]{0,80}:((?:[^'\n]|'\\''){3,120})'|` +
	`"([^"\s:]{8,120}):"|'([^'\s:]{8,120}):'|` +
	`(?:[^\s:"']{0,80}|"[^"\s]{0,80}"|'[^'\s]{0,80}'):["']?([^\s"']{3,120})|` +
	`([A-Za-z0-9_\-]{16,120}):(?:\s|\z))`)

// allSame reports whether a value is one repeated character.
func allSame(b []byte) bool { return len(bytes.Trim(b, string(b[:1]))) == 0 }

// isCurlPassword excludes the placeholders of documentation and the variables of scripts.
func isCurlPassword(b []byte) bool {
	isFallback := b[0] == '-' && bytes.IndexByte(b, '}') > 0 // of ${NAME:-fallback}
	return !isFallback && !allSame(b) && (notPlaceholder(b) || isTyped(b)) && notDummy(b) &&
		bytes.IndexByte([]byte("$<["), b[0]) < 0 &&
		!bytes.HasSuffix(b, []byte(">"))
}

// commandPassword finds the password in the arguments of commands that take it as -pPASSWORD, -p
// PASSWORD, -a PASSWORD or -w PASSWORD.
func commandPassword(text []byte, at, size int) (place, bool) {
	m := passwordArgument.FindSubmatchIndex(text[at:min(len(text), at+size+300)])
	if m == nil {
		return place{}, false
	}
	start, end := at+m[2], at+m[3]
	if bytes.IndexByte([]byte("'\""), text[start-1]) >= 0 {
		p := &reader{text: text, at: start - 1, nameStart: at}
		if a := (assignment{}); p.value(&a) && a.quoted && isTyped(a.value) {
			return place{a.start, a.end, 24 * len(a.value)}, true
		}
	}
	end = start + endOfText(text[start:end])
	return place{start, end, 0}, end > start && isPasswordWord(text[start:end])
}

var passwordArgument = compile(
	`(?i)\A(?:mysql[a-z]*|ldap(?:search|modify|add|delete|passwd|whoami)|mariadb[a-z\-]*|redis-cli|sshpass|(?:docker|` +
		`podman|az|ibmcloud|cf|oc) login|helm registry login|sqlcmd|ipmitool|plink|pscp|mosquitto_[ps]ub|mongo[a-z]*|` +
		`clickhouse-client)(?:[ \t][^\n|;&]{0,200}?)?[ \t](?:-pw? ?|-a |-w ` +
		`)["']?([^\s"'$<\-][^\s"']{4,100}|[^\n]{6,100})`)
