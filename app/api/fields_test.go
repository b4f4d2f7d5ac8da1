package api_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// A refused body is answered with the name of the member that was wrong (issue 24).
func TestErrorsNameTheField(t *testing.T) {
	s := serve(t)
	tried := 0
	s.bodies(s.register("admin", "own"), func(method, path string, example map[string]any) {
		s.eachMember(example, nil, func(names []string, with func(value any) map[string]any) {
			for _, wrong := range []any{map[string]any{"wrong": 1}, []any{map[string]any{}}, true, -1.5} {
				raw, err := json.Marshal(with(wrong))
				if err != nil {
					t.Fatal(err)
				}
				r, answer := s.send("admin", method, path, string(raw))
				if r.StatusCode != http.StatusUnprocessableEntity {
					continue // the type is permitted, or another check refuses it
				}
				tried++
				if name := names[len(names)-1]; !strings.Contains(string(answer), name) {
					t.Errorf("%s %s with %s: got %s, want the name %q", method, path, raw, answer, name)
				}
			}
		})
	})
	if tried < 60 {
		t.Errorf("tried %d bodies", tried)
	}
}

// eachMember calls f for each member of an object and of the objects inside of it. with returns the
// object with another value of the member.
func (s *served) eachMember(object map[string]any, outer []string,
	f func(names []string, with func(value any) map[string]any)) {
	for name, value := range object {
		names := append(append([]string{}, outer...), name)
		with := func(value any) map[string]any {
			changed := maps.Clone(object)
			changed[name] = value
			return changed
		}
		f(names, with)
		if inner, ok := value.(map[string]any); ok && name != "parameters" {
			s.eachMember(inner, names, func(names []string, within func(any) map[string]any) {
				f(names, func(value any) map[string]any { return with(within(value)) })
			})
		}
	}
}
