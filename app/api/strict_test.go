package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/app/server/servertest"
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
	s.bodies(id, func(method, path string, example map[string]any) {
		for what, text := range servertest.Ambiguous(t, example, "parameters") {
			tried++
			r, raw := s.send("admin", method, path, text)
			for r.StatusCode == http.StatusTooManyRequests { // verifications have a rate
				time.Sleep(20 * time.Millisecond)
				r, raw = s.send("admin", method, path, text)
			}
			if r.StatusCode == http.StatusUnprocessableEntity {
				continue
			}
			// An announcement is answered with a decision, which is in the activity.
			if r.StatusCode != http.StatusOK || !strings.Contains(string(raw), `"DENIED"`) {
				t.Errorf("%s %s with %s: got %d %s for %s", method, path, what, r.StatusCode, raw, text)
			}
		}
	})
	if tried < 200 {
		t.Errorf("tried %d bodies", tried)
	}
	if _, list := s.do("admin", "GET", "/v1/agents", ""); len(list["agents"].([]any)) != 1 {
		t.Errorf("a refused body registered an agent: %v", list)
	}
}

// bodies calls f for each endpoint with a body, with an example of the body.
func (s *served) bodies(agent string, f func(method, path string, example map[string]any)) {
	s.Helper()
	for path, item := range s.spec["paths"].(map[string]any) {
		for method, operation := range item.(map[string]any) {
			body, ok := operation.(map[string]any)["requestBody"].(map[string]any)
			if !ok {
				continue
			}
			schema := body["content"].(map[string]any)["application/json"].(map[string]any)["schema"].(map[string]any)
			example, ok := s.example(schema, 2).(map[string]any)
			if !ok {
				s.Fatalf("%s %s: the body is not an object", method, path)
			}
			f(strings.ToUpper(method), strings.NewReplacer("{agent}", agent, "{tool}", "send_email").Replace(path),
				example)
		}
	}
}

// Each endpoint with a body refuses one that is too large with 413, whether or not its length is
// declared (issue 24).
func TestEveryEndpointRefusesLargeBodies(t *testing.T) {
	s := serveWith(t, asking(func(_ context.Context, _ caller.Caller, r verify.Request) (verify.Verdict, error) {
		t.Errorf("engine %s was asked", r.Engine)
		return verify.Verdict{}, errors.New("asked")
	}))
	tried := 0
	s.bodies(s.register("admin", "own"), func(method, path string, _ map[string]any) {
		for _, declared := range []bool{true, false} {
			body := strings.NewReader(`{"a": "` + strings.Repeat("x", 12<<20) + `"}`) // as large as the largest limit
			r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, struct{ io.Reader }{body})
			if err != nil {
				t.Fatal(err)
			}
			if declared {
				r.ContentLength = body.Size()
			}
			r.Header.Set("Authorization", "Bearer "+s.tokens["admin"])
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Errorf("%s %s, declared %v: got %v, want 413", method, path, declared, err)
				continue
			}
			raw, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			if tried++; answer.StatusCode != http.StatusRequestEntityTooLarge ||
				!strings.Contains(string(raw), `"too_large"`) {
				t.Errorf("%s %s, declared %v: got %d %.200s, want 413", method, path, declared, answer.StatusCode, raw)
			}
		}
	})
	if tried < 20 {
		t.Errorf("tried %d bodies", tried)
	}
}
