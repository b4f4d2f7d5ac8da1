package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/verify"
)

// example returns a value that conforms to a schema of the OpenAPI file.
func (s *served) example(schema map[string]any, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		name := ref[strings.LastIndex(ref, "/")+1:]
		schema = s.spec["components"].(map[string]any)["schemas"].(map[string]any)[name].(map[string]any)
	}
	if one, ok := schema["oneOf"].([]any); ok {
		return s.example(one[0].(map[string]any), depth)
	}
	if words, ok := schema["enum"].([]any); ok {
		return words[0]
	}
	kind, _ := schema["type"].(string)
	if list, ok := schema["type"].([]any); ok {
		kind = list[0].(string)
	}
	switch kind {
	case "object":
		object := map[string]any{}
		members, _ := schema["properties"].(map[string]any)
		for name, member := range members {
			if depth > 0 {
				object[name] = s.example(member.(map[string]any), depth-1)
			}
		}
		return object
	case "array":
		return []any{}
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "string":
		return "x"
	}
	return nil
}

// Issue 24: `{"type":"supervised","Type":"trusted"}` registered a trusted agent. Each endpoint with
// a body refuses members that are repeated, that differ from the known ones in their case, and that
// are unknown, also in the objects inside of the body.
func TestEveryEndpointReadsJSONStrictly(t *testing.T) {
	s := serveWith(t, asking(func(_ context.Context, _ caller.Caller, r verify.Request) (verify.Verdict, error) {
		t.Errorf("engine %s was asked: %s", r.Engine, r.Arguments)
		return verify.Verdict{}, errors.New("asked")
	}))
	id := s.register("admin", "own")
	tried := 0
	for path, item := range s.spec["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			body, ok := operation.(map[string]any)["requestBody"].(map[string]any)
			if !ok {
				continue
			}
			schema := body["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
			example, ok := s.example(schema, 2).(map[string]any)
			if !ok {
				t.Fatalf("%s %s: the body is not an object", method, path)
			}
			path := strings.NewReplacer("{agent}", id, "{tool}", "send_email").Replace(path)
			for what, text := range mutations(t, example) {
				tried++
				r, raw := s.send("admin", strings.ToUpper(method), path, text)
				if r.StatusCode == http.StatusUnprocessableEntity {
					continue
				}
				// An announcement is answered with a decision, which is in the activity.
				if r.StatusCode != http.StatusOK || !strings.Contains(string(raw), `"DENIED"`) {
					t.Errorf("%s %s with %s: got %d %s for %s", method, path, what, r.StatusCode, raw, text)
				}
			}
		}
	}
	if tried < 60 {
		t.Errorf("tried %d bodies", tried)
	}
	if _, list := s.do("admin", "GET", "/v1/agents", ""); len(list["agents"].([]any)) != 1 {
		t.Errorf("a refused body registered an agent: %v", list)
	}
}

// mutations returns variants of an object that a strict reader refuses, by what is wrong.
func mutations(t *testing.T, object map[string]any) map[string]string {
	marshal := func(value any) string {
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	whole := marshal(object)
	add := func(text string) string { return strings.TrimSuffix(whole, "}") + "," + text + "}" }
	made := map[string]string{"an unknown member": add(`"unknown_member":1`)}
	for name, value := range object {
		made["a repeated "+name] = add(fmt.Sprintf("%q:%s", name, marshal(value)))
		made[name+" in another case"] = add(fmt.Sprintf("%q:%s", strings.ToUpper(name[:1])+name[1:], marshal(value)))
		if inner, ok := value.(map[string]any); ok && name != "parameters" && len(inner) > 0 {
			for what, text := range mutations(t, inner) {
				rest := map[string]any{}
				for other, v := range object {
					if other != name {
						rest[other] = v
					}
				}
				made[what+" in "+name] = strings.TrimSuffix(marshal(rest), "}") + fmt.Sprintf(",%q:%s}", name, text)
			}
		}
	}
	for what, text := range made {
		made[what] = strings.Replace(text, "{,", "{", 1)
	}
	return made
}
