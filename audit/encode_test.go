package audit

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// hostile are texts that encoders disagree about.
var hostile = []string{
	"", "plain", `"`, `\`, "\x00\x1f\x7f", "\b\f\n\r\t", "\u2028\u2029\ufeff", "\u00e9\u20ac\U0001f600", "a\xffb\xc3",
	"</script>&",
	`,"hash":"",`, `"hash":"sha256:0"`, "hash", strings.Repeat("x", 3000), "\ufffd", "\ue000", "\U0010ffff",
}

// fill gives every member of a record a value at random, or none.
func fill(v reflect.Value) {
	text := func() string { return hostile[rand.IntN(len(hostile))] + hostile[rand.IntN(len(hostile))] }
	if rand.IntN(3) == 0 && v.Kind() != reflect.Struct {
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString(text())
	case reflect.Int, reflect.Int64:
		v.SetInt(rand.Int64N(1<<40) - 1<<20)
	case reflect.Uint64:
		v.SetUint(rand.Uint64N(1 << 53))
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			raw := []string{`{"b":1.50,"a":[true,null,{"z":"\u00e9\/"}]}`, `[]`, `"text"`, `null`, ` {"n": 1e3} `, `{}`,
				`7`}
			v.SetBytes([]byte(raw[rand.IntN(len(raw))]))
			return
		}
		v.Set(reflect.ValueOf([]string{text(), text()}[:rand.IntN(3)]))
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		for range rand.IntN(4) {
			value := reflect.New(v.Type().Elem()).Elem()
			fill(value)
			m.SetMapIndex(reflect.ValueOf(strings.ToValidUTF8(text(), "?")+".rate"), value)
		}
		v.Set(m)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("a record has a member of a kind that is not filled: " + v.Kind().String())
	}
}

// The record's own encoder writes what the general one does, for every member
// of a record, those to come included.
func TestEncodingIsCanonical(t *testing.T) {
	for range 3000 {
		var r Record
		fill(reflect.ValueOf(&r).Elem())
		r.Hash = ""
		line, err := seal([]byte("before"), &r)
		if err != nil {
			t.Fatal(err)
		}
		line = bytes.TrimSuffix(bytes.TrimPrefix(line, []byte("before")), []byte("\n"))
		want, err := canon.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(line, want) {
			t.Fatalf("got  %s\nwant %s", line, want)
		}
		var bare map[string]json.RawMessage
		if err := json.Unmarshal(want, &bare); err != nil {
			t.Fatal(err)
		}
		delete(bare, "hash")
		text, err := canon.Marshal(bare)
		if err != nil {
			t.Fatal(err)
		}
		if r.Hash != canon.Digest(text) {
			t.Fatalf("got the hash %s, want that of %s", r.Hash, text)
		}
		if again, err := open(line); err != nil || again.Hash != r.Hash || claimedHash(line) != r.Hash {
			t.Fatalf("reading %s: got %v", line, err)
		}
	}
}

func TestRecordsThatCannotBeEncoded(t *testing.T) {
	for name, r := range map[string]Record{
		"too large":         {Detail: strings.Repeat("x", maxLine)},
		"a number too long": {Effect: Effect{ResultSize: 1<<53 + 1}},
		"no JSON":           {Act: Act{Arguments: json.RawMessage(`{"a"`)}},
		"two values":        {Act: Act{Arguments: json.RawMessage(`1],[2`)}},
	} {
		if _, err := seal(nil, &r); err == nil {
			t.Errorf("%s: got nil, want an error", name)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	r := Record{Seq: 7, Kind: KindIntent, Time: "2026-11-21T10:00:00.000000Z", Writer: "w_1", Prev: genesis,
		Identity: Identity{RunID: "run_1", Principal: "ann", CodeHash: genesis},
		Act:      Act{CallID: "call_1", ServerID: "files", ToolName: "read"}}
	var text []byte
	for b.Loop() {
		var err error
		if text, err = seal(text[:0], &r); err != nil {
			b.Fatal(err)
		}
	}
}
