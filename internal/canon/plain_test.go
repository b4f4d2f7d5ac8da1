package canon

import (
	"bytes"
	"testing"

	"github.com/gowebpki/jcs"
)

func TestPlainIsSeen(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, `[]`: true, `{"a":"b","b":[1,-20,true,false,null,{"":{}}]}`: true, `[123456789012345]`: true,
		`[0]`: true,
		``:    false, `"a"`: false, `1`: false, ` {}`: false, `{"a": 1}`: false, `{"b":1,"a":1}`: false,
		`{"a":1,"a":1}`: false,
		`[-0]`:          false, `[01]`: false, `[1.0]`: false, `[1e2]`: false, `[1234567890123456]`: false,
		`["\u0041"]`: false, `["ä"]`: false,
		`[1,]`: false, `{"a":1,}`: false, `[1`: false, `{"a"`: false, `[nul]`: false, `[-]`: false, `{}{}`: false,
		`["a]`: false,
	} {
		if got := isPlain([]byte(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// A plain value equals its canonical form.
func FuzzPlainIsCanonical(f *testing.F) {
	for _, text := range []string{`{"a":"hmac-sha256:00","b":[1,{"c":null}]}`, `[-12,true]`, `{"":[],"~":" "}`,
		`{"b":0,"a":0}`, `[[[[]]]]`, `[100000000000000]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if !isPlain(text) {
			return
		}
		want, err := jcs.Transform(text)
		if err != nil || !bytes.Equal(text, want) {
			t.Errorf("%q: its canonical form is %q, %v", text, want, err)
		}
	})
}
