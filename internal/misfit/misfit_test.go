package misfit_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/airlock-mcp/airlock/internal/misfit"
)

// form has a member of every kind that our types have.
type form struct {
	Name  string            `json:"name"`
	Size  int               `json:"size"`
	Share float64           `json:"share"`
	Done  bool              `json:"done"`
	Tags  []string          `json:"tags"`
	Meta  map[string]string `json:"_meta"`
	Inner *struct {
		Deep string `json:"deep"`
	} `json:"inner"`
}

func decode(text string) error {
	in := json.NewDecoder(strings.NewReader(text))
	in.DisallowUnknownFields()
	var f form
	return in.Decode(&f)
}

func TestJSON(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"a number in the place of a text", `{"name":7}`, `"name" has a number where a string belongs`},
		{"an object in the place of a number", `{"share":{}}`, `"share" has an object where a number belongs`},
		{"a list in the place of true", `{"done":[]}`, `"done" has a list where true or false belongs`},
		{"true in the place of a list", `{"tags":true}`, `"tags" has true or false where a list belongs`},
		{"a text in the place of an object", `{"_meta":"x"}`, `"_meta" has a string where an object belongs`},
		{"a number that does not fit", `{"size":1.5}`, `"size" has the number 1.5 where a whole number in its range belongs`},
		{"a member far inside", `{"inner":{"deep":7}}`, `"inner.deep" has a number where a string belongs`},
		{"a list in the place of everything", `[]`, `the whole is a list where an object belongs`},
		{"a number among texts", `{"_meta":{"a":7}}`, `"_meta" has a number where a string belongs`},
		{"an unknown member", `{"nam":"x"}`, `there is no member "nam"`},
		{"no JSON", `{name}`, `it is not JSON, at byte 2`},
		{"half a JSON", `{"name":`, `the JSON ends too early`},
		{"nothing", ``, `the JSON ends too early`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := misfit.JSON(decode(test.text)); got == nil || got.Error() != test.want {
				t.Errorf("got %v, want %s", got, test.want)
			}
		})
	}
	if got := misfit.JSON(nil); got != nil {
		t.Errorf("got %v for no error, want nil", got)
	}
	if got := misfit.JSON(errors.New("/etc/secret: boom")); got.Error() != "it cannot be read" {
		t.Errorf("got %v, want nothing of an unknown error", got)
	}
}

var goWords = regexp.MustCompile(`json:|Go |misfit_test|struct|\*|map\[|interface|unmarshal`)

// Whatever is decoded, no Go type is named.
func TestNoGoTypes(t *testing.T) {
	value := rapid.SampledFrom([]string{`7`, `1e999`, `"x"`, `true`, `null`, `[]`, `{}`, `[{}]`, `{"deep":[]}`, `{"a":7}`, ``, `x`})
	key := rapid.SampledFrom([]string{"name", "size", "share", "done", "tags", "_meta", "inner", "other"})
	rapid.Check(t, func(r *rapid.T) {
		text := `{"` + key.Draw(r, "key") + `":` + value.Draw(r, "value") + `}`
		if err := decode(text); err != nil && goWords.MatchString(misfit.JSON(err).Error()) {
			r.Fatalf("got %v for %s, want no word of Go", misfit.JSON(err), text)
		}
	})
}
