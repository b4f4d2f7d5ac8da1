package engines

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/verify"
)

// SkillManifestVariable names the manifest that CheckSkill checks.
const SkillManifestVariable = "QWED_SKILL_MANIFEST"

// maxManifest is the most bytes of a skill's manifest.
const maxManifest = 1 << 20

// CheckSkill returns an error if the manifest of a skill is not trusted. It runs the guard of
// qwed_mcp.security in a sandbox, because the manifest may be hostile.
func (v *Verifier) CheckSkill(ctx context.Context, path string) error {
	manifest, err := readManifest(path)
	if err != nil {
		return &setup.Error{Err: fmt.Errorf("the skill manifest %q: %w", path, err),
			Advice: SkillManifestVariable + " names a JSON object, as docs/gateway.md says"}
	}
	arguments, err := json.Marshal(map[string]json.RawMessage{"manifest": manifest})
	if err != nil {
		return fmt.Errorf("the skill manifest %q: %w", path, err)
	}
	verdict, err := v.Verify(ctx, verify.Request{Engine: skillEngine, Arguments: arguments})
	if err != nil {
		return fmt.Errorf("checking the skill manifest %q: %w", path, err)
	}
	if verdict.Status != verify.Verified || verdict.Engine != skillEngine {
		return &setup.Error{Err: fmt.Errorf("the skill manifest %q is not trusted: %s", path, verdict.Reason),
			Advice: "remove the skill, or unset " + SkillManifestVariable}
	}
	return nil
}

// skillEngine is the guard of qwed_mcp.security among the engines.
const skillEngine = "skill"

func readManifest(path string) (json.RawMessage, error) {
	file, err := store.Open(path)
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxManifest+1))
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	if len(raw) > maxManifest {
		return nil, fmt.Errorf("it has more than %d bytes", maxManifest)
	}
	value, err := strictjson.Value([]byte(strings.TrimPrefix(string(raw), "\ufeff")))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, ok := value.(map[string]any); !ok {
		return nil, errors.New("it must be a JSON object, not an array or primitive")
	}
	return json.Marshal(value)
}
