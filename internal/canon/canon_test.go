package canon_test

import (
	"testing"

	"github.com/airlock-mcp/airlock/internal/canon"
)

func TestJSON(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1.50,"a":[true,null]}`:                            `{"a":[true,null],"b":1.5}`,
		`{"\u20ac":1,"\r":2,"1":3,"\ud83d\ude00":4,"\ufb33":5}`: "{\"\\r\":2,\"1\":3,\"€\":1,\"😀\":4,\"\ufb33\":5}",
		`[1e21, 1e-7, 0.0, -0]`:                                 `[1e+21,1e-7,0,0]`,
		`{"a":"\u003c\/\u001f"}`:                                `{"a":"</\u001f"}`,
		`[1.7976931348623157e308]`:                              `[1.7976931348623157e+308]`,
		` "a" `:                                                 `"a"`,
	} {
		got, err := canon.JSON([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		}
	}
	for _, in := range []string{``, `{`, `{"a":1,"a":2}`, `[1e999]`, `{"a":-1e309}`, `{} {}`} {
		if got, err := canon.JSON([]byte(in)); err == nil {
			t.Errorf("%q: got %s, want an error", in, got)
		}
	}
}

func TestDigest(t *testing.T) {
	const want = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := canon.Digest(nil); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A number that the canonical form would change is not signed (issue 24).
func TestExact(t *testing.T) {
	for text, ok := range map[string]bool{
		`{"a":[1,0.1,-2.50,1e3,9007199254740992,1E-7]}`: true,
		`9007199254740993`: false, `{"a":[0.12345678901234567891]}`: false, `1e999`: false,
		`-9007199254740993.0`: false, `{"a":1,"a":2}`: false,
	} {
		if _, err := canon.Exact([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: got %v, want ok: %t", text, err, ok)
		}
	}
}
