package config

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"reflect"
	"slices"
)

// Digest returns a digest of a configuration as far as it matters to hosts on this machine,
// including the credentials and the path of the file. It does not depend on the section
// serve. It must be kept secret, because it allows guesses of credentials to be checked.
func Digest(c *Config) string {
	same := *c
	same.Serve, same.source, same.text, same.named, same.findings, same.Sandbox.Asked = Serve{}, "", nil, "", nil, nil
	h := sha256.New()
	digest(h, reflect.ValueOf(same))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// SameMeaning reports whether two configurations that were read from one file have equal
// values. The text, such as comments and positions, and the findings may differ.
func SameMeaning(a, b *Config) bool {
	return Digest(a.withoutPlaces()) == Digest(b.withoutPlaces()) && reflect.DeepEqual(a.Serve, b.Serve)
}

// withoutPlaces returns c without positions in the file.
func (c *Config) withoutPlaces() *Config {
	same := *c
	same.Servers = slices.Clone(c.Servers)
	for i := range same.Servers {
		same.Servers[i].line, same.Servers[i].column = 0, 0
	}
	return &same
}

// digest writes a value so that different values are written differently. Positions in the
// file are part of the value.
func digest(h hash.Hash, v reflect.Value) {
	switch v.Kind() {
	case reflect.Invalid:
		mark(h, 'x', 0)
	case reflect.Pointer, reflect.Interface:
		mark(h, 'p', 0)
		digest(h, v.Elem())
	case reflect.Struct:
		mark(h, 's', v.NumField())
		for i := range v.NumField() {
			digest(h, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		mark(h, 'l', v.Len())
		for i := range v.Len() {
			digest(h, v.Index(i))
		}
	case reflect.Map:
		digestMap(h, v)
	case reflect.String:
		mark(h, 't', v.Len())
		io.WriteString(h, v.String()) // never fails
	default: // numbers and truth values
		text := fmt.Sprint(v)
		mark(h, 'n', len(text))
		io.WriteString(h, text)
	}
}

func digestMap(h hash.Hash, v reflect.Value) {
	var entries [][2]string
	for _, key := range v.MapKeys() {
		k, e := sha256.New(), sha256.New()
		digest(k, key)
		digest(e, v.MapIndex(key))
		entries = append(entries, [2]string{string(k.Sum(nil)), string(e.Sum(nil))})
	}
	slices.SortFunc(entries, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	mark(h, 'm', len(entries))
	for _, entry := range entries {
		io.WriteString(h, entry[0]+entry[1])
	}
}

// mark writes a kind and a length.
func mark(h hash.Hash, kind byte, n int) {
	h.Write(binary.BigEndian.AppendUint64([]byte{kind}, uint64(n))) // never fails
}
