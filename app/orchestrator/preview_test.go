package orchestrator

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPreview(t *testing.T) {
	rows := make([]map[string]any, 5000)
	for i := range rows {
		rows[i] = map[string]any{"id": i, "name": fmt.Sprintf("customer %d", i), "note": strings.Repeat("long ", 100)}
	}
	wide := map[string]int{}
	for i := range 20_000 {
		wide[fmt.Sprintf("key_%05d", i)] = i
	}
	deep := any("bottom")
	for range 400 {
		deep = []any{deep, deep != nil, strings.Repeat("x", 200)}
	}
	tests := []struct {
		name  string
		value any
		want  []string
	}{
		{"rows", rows, []string{`"id":0`, "customer 0", "items more]"}},
		{"an object with rows", map[string]any{"total": 5000, "rows": rows}, []string{`"total":5000`, "customer 0"}},
		{"a text", strings.Repeat("äöü\n", 50_000), []string{"äöü", "bytes more]"}},
		{"many keys", wide, []string{"key_00000", "keys more]"}},
		{"nesting", deep, []string{"…"}},
		{"long keys", map[string]int{strings.Repeat("k", 100_000): 1}, []string{"kkk"}},
		{"markup", strings.Repeat("<&>", 50_000), []string{"<&>"}},
		{"numbers keep their digits", append([]json.Number{"12345678901234567890.12345678901234567890"},
			make10000()...), []string{"12345678901234567890.12345678901234567890", "[99"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, err := encodePlain(test.value)
			if err != nil {
				t.Fatal(err)
			}
			got := preview(data)
			if !json.Valid(got) || len(got) > 2*maxPreview || len(got) < 50 {
				t.Fatalf("%d bytes, valid: %v: %.300s", len(got), json.Valid(got), got)
			}
			for _, want := range test.want {
				if !strings.Contains(string(got), want) {
					t.Errorf("got %.400s, want it to contain %q", got, want)
				}
			}
		})
	}
}

func make10000() []json.Number {
	numbers := make([]json.Number, 10_000)
	for i := range numbers {
		numbers[i] = "7"
	}
	return numbers
}

func encodePlain(value any) ([]byte, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return []byte(strings.TrimSpace(b.String())), err
}
