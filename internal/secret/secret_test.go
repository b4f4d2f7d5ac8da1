package secret_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/internal/secret"
)

const text = "hunter2-and-more"

// However a value is written, it is not in what was written.
func TestValueNeverPrints(t *testing.T) {
	v := secret.New(text)
	holder := struct {
		Token  secret.Value
		Ptr    *secret.Value
		Nested map[string]secret.Value
	}{v, &v, map[string]secret.Value{"a": v}}
	written := map[string]string{}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%20.3s"} {
		written["fmt "+verb] = fmt.Sprintf(verb, v) + fmt.Sprintf(verb, &v) + fmt.Sprintf(verb, holder)
	}
	out, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	written["json"] = string(out)
	if out, err = yaml.Marshal(map[string]any{"t": v}); err != nil {
		t.Fatal(err)
	}
	written["yaml"] = string(out)
	for name, handler := range map[string]func(*bytes.Buffer) slog.Handler{
		"slog text": func(b *bytes.Buffer) slog.Handler { return slog.NewTextHandler(b, nil) },
		"slog json": func(b *bytes.Buffer) slog.Handler { return slog.NewJSONHandler(b, nil) },
	} {
		var out bytes.Buffer
		slog.New(handler(&out)).Info("x", slog.Any("v", v), slog.Any("h", holder), slog.Any("p", &v))
		written[name] = out.String()
	}
	written["an error"] = fmt.Errorf("with %v and %w", v, errors.New("x")).Error()
	for how, text := range written {
		if strings.Contains(text, "hunter2") || strings.Contains(text, fmt.Sprintf("%x", "hunter2")) {
			t.Errorf("%s: got %s", how, text)
		}
	}
	if v.Reveal() != text {
		t.Error("the value was lost")
	}
}
