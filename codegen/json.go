package codegen

import (
	"errors"
	"fmt"
	"slices"
)

// maxDepth bounds the nesting of a schema. Real ones reach 13.
const maxDepth = 200

// kindOf is the JSON type of a value.
type kindOf uint8

const (
	isNull kindOf = iota
	isBool
	isNumber
	isString
	isArray
	isObject
)

// value is one JSON value with what encoding/json forgets: the order of an
// object's members, the digits of a number, and lone surrogates, which stay in
// strings as three bytes each (WTF-8).
type value struct {
	kind    kindOf
	truth   bool     // isBool
	text    string   // isString: the characters; isNumber: the digits as written
	items   []*value // isArray
	members []member // isObject, a repeated key once, with its last value
}

type member struct {
	key   string
	value *value
}

// get returns the member with that key, or nil if it does not exist or v is not an object.
func (v *value) get(key string) *value {
	if v == nil {
		return nil
	}
	for i := range v.members {
		if v.members[i].key == key {
			return v.members[i].value
		}
	}
	return nil
}

// str returns the string member with that key, or "".
func (v *value) str(key string) string {
	if m := v.get(key); m != nil && m.kind == isString {
		return m.text
	}
	return ""
}

// parseJSON reads one JSON value (RFC 8259), strictly.
func parseJSON(data []byte) (*value, error) {
	p := parser{data: string(data)}
	v, err := p.value(0)
	if err != nil {
		return nil, fmt.Errorf("JSON at byte %d: %w", p.pos, err)
	}
	p.space()
	if p.pos != len(p.data) {
		return nil, fmt.Errorf("JSON at byte %d: more than one value", p.pos)
	}
	return v, nil
}

var (
	errSyntax = errors.New("unexpected character or end")
	errUTF8   = errors.New("not UTF-8")
	errDepth  = fmt.Errorf("nested more than %d deep", maxDepth)
)

type parser struct {
	data string
	pos  int
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte that is not white space, 0 at the end.
func (p *parser) peek() byte {
	p.space()
	if p.pos == len(p.data) {
		return 0
	}
	return p.data[p.pos]
}

func (p *parser) word(word string, v *value) (*value, error) {
	if len(p.data)-p.pos < len(word) || p.data[p.pos:p.pos+len(word)] != word {
		return nil, errSyntax
	}
	p.pos += len(word)
	return v, nil
}

func (p *parser) value(depth int) (*value, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	switch p.peek() {
	case '{':
		return p.object(depth)
	case '[':
		return p.array(depth)
	case '"':
		text, err := p.string()
		return &value{kind: isString, text: text}, err
	case 't':
		return p.word("true", &value{kind: isBool, truth: true})
	case 'f':
		return p.word("false", &value{kind: isBool})
	case 'n':
		return p.word("null", &value{})
	default:
		return p.number()
	}
}

func (p *parser) array(depth int) (*value, error) {
	v := &value{kind: isArray}
	p.pos++
	if p.peek() == ']' {
		p.pos++
		return v, nil
	}
	for {
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
		switch p.peek() {
		case ',':
			p.pos++
		case ']':
			p.pos++
			return v, nil
		default:
			return nil, errSyntax
		}
	}
}

func (p *parser) object(depth int) (*value, error) {
	v := &value{kind: isObject}
	p.pos++
	if p.peek() == '}' {
		p.pos++
		return v, nil
	}
	var places keyPlaces
	for {
		if p.peek() != '"' {
			return nil, errSyntax
		}
		key, err := p.string()
		if err != nil {
			return nil, err
		}
		if p.peek() != ':' {
			return nil, errSyntax
		}
		p.pos++
		item, err := p.value(depth + 1)
		if err != nil {
			return nil, err
		}
		places.put(v, key, item)
		switch p.peek() {
		case ',':
			p.pos++
		case '}':
			p.pos++
			return v, nil
		default:
			return nil, errSyntax
		}
	}
}

// keyPlaces finds repeated keys: by looking through a few members, by a map
// once there are many, so that a hostile object costs no quadratic time.
type keyPlaces map[string]int

const manyMembers = 16

// put adds a member to v or replaces the one with the same key.
func (k *keyPlaces) put(v *value, key string, item *value) {
	if at := k.find(v.members, key); at >= 0 {
		v.members[at].value = item
		return
	}
	v.members = append(v.members, member{key, item})
	switch n := len(v.members); {
	case *k != nil:
		(*k)[key] = n - 1
	case n == manyMembers:
		*k = make(keyPlaces, 2*manyMembers)
		for i := range v.members {
			(*k)[v.members[i].key] = i
		}
	}
}

// find returns the place of the member with that key, or -1.
func (k keyPlaces) find(members []member, key string) int {
	if k != nil {
		if at, ok := k[key]; ok {
			return at
		}
		return -1
	}
	return slices.IndexFunc(members, func(m member) bool { return m.key == key })
}

// number reads a number's digits and keeps them as they are.
func (p *parser) number() (*value, error) {
	start := p.pos
	p.skip('-')
	switch {
	case p.skip('0'):
	case !p.digits():
		return nil, errSyntax
	}
	if p.skip('.') && !p.digits() {
		return nil, errSyntax
	}
	if p.skip('e') || p.skip('E') {
		if !p.skip('+') {
			p.skip('-')
		}
		if !p.digits() {
			return nil, errSyntax
		}
	}
	return &value{kind: isNumber, text: p.data[start:p.pos]}, nil
}

func (p *parser) skip(c byte) bool {
	if p.pos < len(p.data) && p.data[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) digits() bool {
	start := p.pos
	for p.pos < len(p.data) && '0' <= p.data[p.pos] && p.data[p.pos] <= '9' {
		p.pos++
	}
	return p.pos > start
}
