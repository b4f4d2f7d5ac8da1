package redact

import (
	"bytes"
	"slices"
)

// secretHint matches all JSON in which the surroundings of a string can identify it as a secret.
var secretHint = compile(
	`(?i)pass|pwd|contrase|kennwort|senha|wachtwoord|senord|salasana|adgangskode|has(?:ł|\\u0142)o|heslo|jelsz|` +
		`parola|парол|密码|密碼|パスワード|비밀번호|\\u[0-9a-f]{4}|secret|token|key|cred|auth|cookie|session|csrf|hmac|salt|pin|` +
		`-----BEGIN`)

// node is one value of a JSON text.
type node struct {
	start   int    // position of its token in the text
	text    []byte // decoded string, or digits of a number; otherwise nil
	number  bool
	names   [][]byte // of an object's members
	items   []*node  // of an array, or of an object
	isArray bool
}

// markSecrets returns the spans within strings that are secrets because of their surroundings. The
// keys are the positions of the strings' tokens.
func markSecrets(raw []byte) map[int]span {
	p := &treeReader{raw: raw}
	marked := marks{}
	marked.node(p.value())
	return marked
}

// treeReader reads valid JSON of bounded depth.
type treeReader struct {
	raw []byte
	at  int
}

func (p *treeReader) skip(more string) {
	for p.at < len(p.raw) && bytes.IndexByte([]byte(" \t\r\n"+more), p.raw[p.at]) >= 0 {
		p.at++
	}
}

func (p *treeReader) value() *node {
	p.skip("")
	n := &node{start: p.at}
	switch p.raw[p.at] {
	case '{':
		for p.at++; ; {
			if p.skip(","); p.raw[p.at] == '}' {
				break
			}
			n.names = append(n.names, p.token())
			p.skip(":")
			n.items = append(n.items, p.value())
		}
		p.at++
	case '[':
		n.isArray = true
		for p.at++; ; {
			if p.skip(","); p.raw[p.at] == ']' {
				break
			}
			n.items = append(n.items, p.value())
		}
		p.at++
	default:
		n.number = p.raw[p.at] != '"'
		if tokenEnd(p.raw, p.at) > p.at {
			n.text = p.token()
			break
		}
		for p.at < len(p.raw) && isLetter(p.raw[p.at]) { // true, false, null
			p.at++
		}
	}
	return n
}

func (p *treeReader) token() []byte {
	end := tokenEnd(p.raw, p.at)
	text, err := textOf(p.raw[p.at:end])
	if err != nil || text == nil {
		text = []byte{}
	}
	p.at = end
	return text
}

// marks are spans within strings, by the position of the string's token.
type marks map[int]span

func (m marks) node(n *node) {
	if n.isArray {
		m.entries(n)
		m.flags(n.items)
		m.table(n.items)
		m.keyLines(n.items)
	} else {
		m.members(n)
	}
	for _, item := range n.items {
		m.node(item)
	}
}

// value marks a string, or each string of a list, under a name.
func (m marks) value(name []byte, n *node) {
	if n.isArray {
		for _, item := range n.items {
			if !item.isArray && item.names == nil {
				m.cell(bytes.TrimSuffix(name, []byte("s")), item)
			}
		}
		return
	}
	if n.text == nil {
		for i, inner := range n.names { // {"value": …}, {"S": …}
			switch {
			case n.items[i].text == nil:
			case wrappedMember.Match(inner) && (!labelMember.Match(name) || isSecretName(name)):
				m.value(name, n.items[i])
			case indexMember.Match(inner):
				m.cell(name, n.items[i])
			}
		}
		return
	}
	if s, ok := namedSecret(name, n.text, n.number); ok {
		m[n.start] = s
	}
}

// cell marks a string of a column or a list.
func (m marks) cell(name []byte, n *node) {
	if n.text == nil || n.number {
		m.value(name, n)
	} else if s, ok := columnSecret(name, n.text); ok {
		m[n.start] = s
	}
}

// members marks the secrets in an object: members with the name of a secret, a value whose name is
// in the member beside it, and columns.
func (m marks) members(n *node) {
	var label, columns []byte
	var heads []*node
	isPatch := slices.ContainsFunc(n.names, func(name []byte) bool { return string(name) == "op" }) // RFC 6902
	for i, name := range n.names {
		m.value(name, n.items[i])
		switch {
		case isPatch && string(name) == "path" && n.items[i].text != nil:
			label = n.items[i].text[1+bytes.LastIndexByte(n.items[i].text, '/'):]
		case n.items[i].text != nil && labelMember.Match(name) && label == nil:
			label = n.items[i].text
		case n.items[i].isArray && columnsMember.Match(name):
			columns, heads = name, n.items[i].items
		case schemaMember.Match(name):
			for k, inner := range n.items[i].names {
				if columnsMember.Match(inner) && n.items[i].items[k].isArray {
					columns, heads = name, n.items[i].items[k].items
				}
			}
		}
	}
	for i, name := range n.names {
		switch {
		case label != nil && valueMember.Match(name):
			m.value(label, n.items[i])
		case columns != nil && n.items[i].isArray && !bytes.Equal(name, columns):
			m.columns(headTexts(heads), n.items[i].items)
		}
	}
}

var (
	labelMember = compile(
		`(?i)^(?:name|key|k|label|title|field|variable|var|env|header|param(?:eter)?|property|setting|option|id)$|` +
			`(?:Name|Key|_name|_key)$`)
	valueMember = compile(
		`(?i)^(?:value|val|v|content|data|text|secret|default|current|string_?value)$|(?:Value|_value)$`)
	// indexMember matches the number of a row, as in the columns that pandas writes.
	indexMember   = compile(`^\d{1,9}$`)
	schemaMember  = compile(`(?i)^(?:schema|meta|metadata|result_?set_?metadata)$`)
	wrappedMember = compile(`^(?:value|S|[sS]tring_?[vV]alue|plain_?[tT]ext|[dD]efault(?:_?[vV]alue)?)$`)
	columnsMember = compile(
		`(?i)^(?:columns?|fields|head(?:er)?s?|column_?names|column_?meta_?data|column_?info|keys)$`)
)

// entries marks the second of two strings if the first is the name of a secret: of a list, if the second is not a name
// itself, and of each list in it.
func (m marks) entries(n *node) {
	if n.isEntry() && !identifier.Match(n.items[1].text) && !joined.Match(n.items[1].text) {
		m.value(n.items[0].text, n.items[1])
	}
	for _, item := range n.items {
		if item.isEntry() && len(n.items) > 1 {
			m.value(item.items[0].text, item.items[1])
		}
	}
}

// isEntry reports whether a value is a list of two strings, the first of which is not a path.
func (n *node) isEntry() bool {
	return n.isArray && len(n.items) == 2 && n.items[0].text != nil && n.items[1].text != nil && !n.items[0].number &&
		bytes.IndexByte(n.items[0].text, '/') < 0
}

// flags marks the string after a flag in a list of arguments: ["--password", "…"].
func (m marks) flags(items []*node) {
	for i := range len(items) - 1 {
		name, isFlag := bytes.CutPrefix(items[i].text, []byte("--"))
		if isFlag && !items[i].number && items[i+1].text != nil && !bytes.HasPrefix(items[i+1].text, []byte("-")) {
			m.value(name, items[i+1])
		}
	}
}

// table marks columns of a table whose rows are arrays. The first row is a header if all its cells
// are different names and the other rows have as many cells. Rows that are pairs of name and value
// have no header.
func (m marks) table(rows []*node) {
	if len(rows) < 2 || cellsOf(rows[0]) == nil {
		return
	}
	heads := headTexts(cellsOf(rows[0]))
	seen := map[string]bool{}
	for _, head := range heads {
		if !columnName.Match(head) || seen[string(head)] {
			return
		}
		seen[string(head)] = true
	}
	for _, row := range rows[1:] {
		if len(cellsOf(row)) != len(heads) {
			return
		}
	}
	if len(heads) == 2 && isListOfPairs(rows) {
		return
	}
	m.columns(heads, rows[1:])
}

// isListOfPairs reports whether the rows are pairs of name and value without a header: the first
// cell of another row is also the name of a secret, or that of the first row is and its second cell
// is a value.
func isListOfPairs(rows []*node) bool {
	for i, row := range rows {
		cells := cellsOf(row)
		if isSecretName(cells[0].text) && (i > 0 || !isSecretName(cells[1].text)) {
			return true
		}
	}
	return false
}

func isSecretName(name []byte) bool {
	return len(name) <= 100 && !harmlessName.Match(name) &&
		(passwordName.Match(name) || secretNames.Match(name) || strongName.Match(name))
}

// columnName matches names of columns: words without the punctuation of paths and URLs.
var columnName = compile(`^[\p{L}_#][\p{L}\p{N}_ .()-]{0,60}$`)

// headTexts returns the names of columns, which are strings or objects with a name.
func headTexts(heads []*node) [][]byte {
	list := make([][]byte, len(heads))
	for i, head := range heads {
		list[i] = unwrapped(head).text
		if at := slices.IndexFunc(
			head.names, func(name []byte) bool { return bytes.EqualFold(name, []byte("name")) }); at >= 0 {
			list[i] = head.items[at].text
		}
	}
	return list
}

func (m marks) columns(heads [][]byte, rows []*node) {
	for _, row := range rows {
		cells := cellsOf(row)
		if len(cells) != len(heads) {
			continue
		}
		for i, cell := range cells {
			if cell := unwrapped(cell); len(heads[i]) > 0 && cell.text != nil {
				m.cell(heads[i], cell)
			}
		}
	}
}

// cellsOf returns the cells of a row, which is an array or an object with an array as its only member ({"f": […]}).
// It returns nil for other values.
func cellsOf(row *node) []*node {
	if !row.isArray && len(row.items) == 1 {
		row = row.items[0]
	}
	if !row.isArray {
		return nil
	}
	return row.items
}

// unwrapped returns the string of a cell that is an object with one member ({"v": …}), or the cell itself.
func unwrapped(cell *node) *node {
	if !cell.isArray && len(cell.items) == 1 && cell.items[0].text != nil {
		return cell.items[0]
	}
	return cell
}

// keyLines marks the lines of a private key that are strings of one list.
func (m marks) keyLines(items []*node) {
	inside := false
	for _, item := range items {
		switch {
		case item.text == nil || item.number:
			inside = false
		case keyBegin.Match(item.text) && !keyEnd.Match(item.text):
			inside = true
		case keyEnd.Match(item.text):
			inside = false
		case inside && keyLine.Match(item.text):
			m[item.start] = span{start: 0, end: len(item.text), kind: "private-key"}
		}
	}
}

var (
	keyBegin = compile(`-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----`)
	keyEnd   = compile(`-----END [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----`)
	keyLine  = compile(`^\s*[A-Za-z0-9+/]{4,90}={0,2}\s*$`)
)
