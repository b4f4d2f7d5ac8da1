package redact

import (
	"bytes"
	"net/netip"
	"regexp"
	"slices"
	"sync"
)

// The longest parts of an address (RFC 5321, section 4.5.3.1).
const (
	maxLocalPart = 64
	maxDomain    = 255
)

// findEmails looks around every @.
func findEmails(text []byte) []span {
	var spans []span
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], '@')
		if i < 0 {
			return spans
		}
		at += i
		start, stop := at, at+1
		for start > 0 && at-start < maxLocalPart && isLocalByte(text[start-1]) {
			start--
		}
		for start < at && !isAlnum(text[start]) {
			start++
		}
		for stop < len(text) && stop-at <= maxDomain && isDomainByte(text[stop]) {
			stop++
		}
		for stop > at && !isLetter(text[stop-1]) {
			stop--
		}
		if start < at && stop > at && !inAddress(text, start) && isEmail(text[start:stop]) {
			spans = append(spans, span{start, stop, "email"})
		}
	}
}

// inAddress says whether what begins at start stands in a URL's user part,
// where a @ makes no e-mail address.
func inAddress(text []byte, start int) bool {
	before := text[max(0, start-200):start]
	if i := bytes.LastIndexAny(before, " \t\r\n\"'<>()"); i >= 0 {
		before = before[i+1:]
	}
	i := bytes.LastIndex(before, []byte("://"))
	return i >= 0 && bytes.IndexByte(before[i+3:], '/') < 0 && bytes.IndexByte(before[i+3:], '?') < 0
}

func isLocalByte(c byte) bool  { return isAlnum(c) || bytes.IndexByte([]byte("._%+-'"), c) >= 0 }
func isDomainByte(c byte) bool { return isAlnum(c) || c == '.' || c == '-' }
func isLetter(c byte) bool     { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool      { return '0' <= c && c <= '9' }
func isAlnum(c byte) bool      { return isDigit(c) || isLetter(c) }

// findNumbers looks at every place where digits begin.
func findNumbers(text []byte) []span {
	var spans []span
	for i := 0; i < len(text); i++ {
		c := text[i]
		if !isDigit(c) && c != ':' {
			continue
		}
		if i > 0 && isDigit(text[i-1]) && isDigit(c) {
			continue
		}
		s, ok := numberAt(text, i)
		if ok {
			spans = append(spans, s)
			i = s.end - 1
			continue
		}
		for c != ':' && i+1 < len(text) && isDigit(text[i+1]) {
			i++
		}
	}
	return spans
}

// numberAt recognises what begins at, or a little before, the digit at text[i].
func numberAt(text []byte, i int) (span, bool) {
	if text[i] == ':' {
		return ipv6At(text, i)
	}
	if s, ok := ibanAt(text, i); ok {
		return s, true
	}
	if s, ok := phoneAt(text, i); ok {
		return s, true
	}
	if i > 0 && (isWord(text[i-1]) || text[i-1] == '.' || text[i-1] == '-') {
		return span{}, false
	}
	for _, recognise := range []func([]byte, int) (span, bool){ssnAt, cardAt, ipv4At} {
		if s, ok := recognise(text, i); ok {
			return s, true
		}
	}
	return span{}, false
}

// ends says whether a number that stops here is not part of something longer.
func ends(text []byte, stop int) bool {
	if stop >= len(text) {
		return true
	}
	if isWord(text[stop]) {
		return false
	}
	return !(text[stop] == '-' || text[stop] == '.') || stop+1 >= len(text) || !isAlnum(text[stop+1])
}

// announced says whether one of a few words stands shortly before a place.
func announced(text []byte, i int, words *regexp.Regexp) bool {
	return words.Match(text[max(0, i-32):i])
}

var (
	cardWords  = compile(`(?i)(?:card|visa|pan\b|credit|debit)[^\n]{0,20}$`)
	ssnWords   = compile(`(?i)(?:\bssn|social.?security)[^\n]{0,20}$`)
	phoneWords = compile(`(?i)(?:\bphone|\bmobile|\btel(?:ephone|efon|e?fono|\.|:|\b)|\bfax|\bcall|\bdial|whatsapp|\bsms|\bcell|\bmob)[^\n0-9]{0,16}$`)
)

func ssnAt(text []byte, i int) (span, bool) {
	const size = len("123-45-6789")
	if s, ok := announcedSSN(text, i); ok {
		return s, true
	}
	if i+size > len(text) || text[i+3] != '-' || text[i+6] != '-' || !ends(text, i+size) {
		return span{}, false
	}
	number := text[i : i+size]
	if len(onlyDigits(number)) != 9 || !isSSN(number) {
		return span{}, false
	}
	return span{i, i + size, "us-ssn"}, true
}

// announcedSSN takes nine digits without hyphens, which only a word before them
// makes a social security number.
func announcedSSN(text []byte, i int) (span, bool) {
	m := bareSSN.FindIndex(text[i:min(len(text), i+12)])
	if m == nil || !ends(text, i+m[1]) || !announced(text, i, ssnWords) {
		return span{}, false
	}
	digits := onlyDigits(text[i : i+m[1]])
	if !isSSN(slices.Concat(digits[:3], []byte("-"), digits[3:5], []byte("-"), digits[5:])) {
		return span{}, false
	}
	return span{i, i + m[1], "us-ssn"}, true
}

var bareSSN = compile(`\A\d{3} ?\d\d ?\d{4}`)

// cardAt takes 13 to 19 digits, alone or in groups with one space or hyphen
// between them. Ungrouped, 13 digits are an article's number (EAN) and 19 an
// identifier far more often than a card's, so they have to be announced.
func cardAt(text []byte, i int) (span, bool) {
	digits, best := 0, 0
	for at := i; at < len(text) && digits <= 19; at++ {
		switch c := text[at]; {
		case isDigit(c):
			digits++
			if digits >= 13 && ends(text, at+1) && isCard(text[i:at+1]) && (digits != 13 && digits != 19 || at+1-i > digits || announced(text, i, cardWords)) {
				best = at + 1
			}
		case (c == ' ' || c == '-') && at+1 < len(text) && isDigit(text[at+1]) && isDigit(text[at-1]):
		default:
			at = len(text)
		}
	}
	return span{i, best, "card"}, best > 0
}

// ibanAt takes a country's two letters before the digit, two digits, and groups.
func ibanAt(text []byte, i int) (span, bool) {
	start := i - 2
	if start < 0 || !isUpper(text[start]) || !isUpper(text[start+1]) || (start > 0 && isWord(text[start-1])) {
		return span{}, false
	}
	best, count := 0, 0
	for at := start; at < len(text) && count < 34; at++ {
		c := text[at]
		if c == ' ' && at > i+1 && at+1 < len(text) && text[at-1] != ' ' {
			continue
		}
		if !isDigit(c) && !isUpper(c) {
			break
		}
		count++
		if count >= 15 && ends(text, at+1) && isIBAN(text[start:at+1]) {
			best = at + 1
		}
	}
	return span{start, best, "iban"}, best > 0
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

// phoneAt takes a number with + and country code (ITU-T E.164: at most 15
// digits), or one of North America's plan written with its usual separators.
func phoneAt(text []byte, i int) (span, bool) {
	if i > 0 && text[i-1] == '+' && (i < 2 || !isWord(text[i-2]) && bytes.IndexByte([]byte("])=+-.*/"), text[i-2]) < 0) {
		return internationalAt(text, i)
	}
	if i > 0 && (isWord(text[i-1]) || text[i-1] == '.' || text[i-1] == '-' || text[i-1] == '+') {
		return span{}, false
	}
	if c := text[i]; c == '0' {
		return nationalAt(text, i)
	}
	if m := northAmerican.FindIndex(text[i:min(len(text), i+20)]); m != nil && ends(text, i+m[1]) {
		start := i
		if i > 0 && text[i-1] == '(' {
			start--
		}
		return span{start, i + m[1], "phone"}, true
	}
	return nationalAt(text, i)
}

// nationalAt takes numbers with a trunk prefix as they are written in France
// and in Britain, and, where a word announces it, any number of 7 to 12 digits.
func nationalAt(text []byte, i int) (span, bool) {
	end := min(len(text), i+24)
	if text[i] == '0' {
		if m := national.FindIndex(text[i:end]); m != nil && ends(text, i+m[1]) && !isTable(text, i, i+m[1]) {
			return span{i, i + m[1], "phone"}, true
		}
	}
	stop, digits := i, 0
	for at := i; at < end && (isDigit(text[at]) || bytes.IndexByte([]byte(" -./()"), text[at]) >= 0); at++ {
		if isDigit(text[at]) {
			digits++
			stop = at + 1
		}
	}
	if digits < 7 || digits > 12 || !ends(text, stop) || !announced(text, i, phoneWords) {
		return span{}, false
	}
	start := i
	if i > 0 && text[i-1] == '(' {
		start--
	}
	return span{start, stop, "phone"}, true
}

// national is 01 23 45 67 89, 020 7946 0958, 07700 900123.
var national = compile(`\A0[1-9](?:(?: \d\d){4}|(?:\.\d\d){4}|\d{1,3} \d{3,4} \d{3,4}|\d{3} \d{6})`)

// isTable says whether numbers go on before or behind, as in a dump.
func isTable(text []byte, start, stop int) bool {
	return start > 1 && isDigit(text[start-2]) || stop+1 < len(text) && isDigit(text[stop+1])
}

// northAmerican is 555-234-5678, 555.234.5678 or 555) 234-5678, each also after 1 and a separator.
var northAmerican = compile(`\A(?:1[ .\-]\(?)?[2-9]\d\d(?:(?:\) ?|-|\)-)[2-9]\d\d-|\.[2-9]\d\d\.)\d{4}`)

// decimal is a number with a fraction, such as seconds in a log.
var decimal = compile(`^\d+\.\d+$`)

func internationalAt(text []byte, i int) (span, bool) {
	if text[i] == '0' {
		return span{}, false
	}
	digits, groups, stop := 0, 1, i
	for at := i; at < len(text) && digits < 16; at++ {
		c := text[at]
		if isDigit(c) {
			digits++
			stop = at + 1
			continue
		}
		if bytes.IndexByte([]byte(" -.()/"), c) < 0 || at+1 >= len(text) || at-stop > 1 {
			break
		}
		groups++
	}
	if digits < 8 || digits > 15 || groups > 8 || !ends(text, stop) || decimal.Match(text[i:stop]) || !isDialled(onlyDigits(text[i:stop])) {
		return span{}, false
	}
	return span{i - 1, stop, "phone"}, true
}

// isDialled checks country code and, of North America's plan, area and exchange
// codes (ITU-T E.164; NANPA).
func isDialled(digits []byte) bool {
	switch digits[0] {
	case '0':
		return false
	case '1':
		return len(digits) == 11 && digits[1] >= '2' && digits[4] >= '2'
	case '7':
		return len(digits) == 11
	}
	return true
}

func ipv4At(text []byte, i int) (span, bool) {
	stop, dots := i, 0
	for stop < len(text) && stop-i < len("255.255.255.255") && (isDigit(text[stop]) || text[stop] == '.') {
		if text[stop] == '.' {
			dots++
		}
		stop++
	}
	for stop > i && text[stop-1] == '.' {
		stop--
		dots--
	}
	if dots != 3 || !ends(text, stop) || isNetwork(text, stop) || i > 1 && text[i-1] == '/' && isLetter(text[i-2]) || bytes.HasSuffix(bytes.ToLower(text[max(0, i-9):i]), []byte("version ")) {
		return span{}, false
	}
	address, err := netip.ParseAddr(string(text[i:stop]))
	if err != nil || !isPersonal(address) {
		return span{}, false
	}
	return span{i, stop, "ip-address"}, true
}

// isNetwork says whether an address ends in the length of a prefix (CIDR).
func isNetwork(text []byte, stop int) bool {
	return stop+1 < len(text) && text[stop] == '/' && isDigit(text[stop+1])
}

// ipv6At looks at what surrounds a colon.
func ipv6At(text []byte, i int) (span, bool) {
	const most = len("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff")
	start, stop, colons := i, i, 0
	for start > 0 && i-start < 4 && isHex(text[start-1]) {
		start--
	}
	if start > 0 && (isWord(text[start-1]) || text[start-1] == ':') {
		return span{}, false
	}
	for stop < len(text) && stop-start < most && (isHex(text[stop]) || text[stop] == ':') {
		if text[stop] == ':' {
			colons++
		}
		stop++
	}
	if colons < 3 || stop-start < 9 || !ends(text, stop) || isNetwork(text, stop) {
		return span{}, false
	}
	address, err := netip.ParseAddr(string(text[start:stop]))
	if err != nil || !isPersonal(address) {
		return span{}, false
	}
	return span{start, stop, "ip-address"}, true
}

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

// isPersonal says whether an address can be a person's: not one of private,
// local, multicast or documentation ranges, nor a well-known public resolver.
func isPersonal(a netip.Addr) bool {
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, prefix := range notPersons() {
		if prefix.Contains(a) {
			return false
		}
	}
	if !a.Is4() {
		return true
	}
	// 1.2.3.4 and 2.5.29.31 are versions, sections and object identifiers far
	// more often than addresses.
	b := a.As4()
	if b[3] == 0 { // a network, or a version
		return false
	}
	return b[0] > 12 || b[1] > 40 || b[2] > 40 || b[3] > 40
}

// notPersons are reserved ranges (IANA's registries of special-purpose
// addresses) and the public resolvers that every example names.
var notPersons = sync.OnceValue(func() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"1.1.1.1/32", "1.0.0.1/32", "8.8.8.8/32", "8.8.4.4/32", "9.9.9.9/32", "2001:db8::/32", "3fff::/20", "64:ff9b::/96",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
})
