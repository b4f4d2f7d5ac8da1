package bom

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
	"unicode/utf16"

	"github.com/airlock-mcp/airlock/internal/canon"
)

// compliance is the standard named in every manifest.
const compliance = "QWED_AI_SPM_v1"

// Manifest is the AI bill of materials of qwed_mcp's AIBOMGenerator, with what the
// audit log knows of the run beside it.
type Manifest struct {
	Timestamp  string     `json:"timestamp"` // of generation, RFC 3339, UTC
	Components Components `json:"components"`
	Compliance string     `json:"compliance"`
	// Hash is SHA-256 over Components and Compliance alone: that of the generator for
	// the same names.
	Hash string `json:"manifest_hash"`
	Run  Facts  `json:"run"`
}

// Components are the names of what a run was made of.
type Components struct {
	Models  []Component `json:"models"`
	Engines []Component `json:"verification_engines"`
	Tools   []Component `json:"mcp_tools"`
}

// Component is one of them.
type Component struct {
	Name string `json:"name"`
	Type string `json:"type"` // "generator", "qwed_deterministic" or "action_execution"
}

// Facts are the audit log's data about the run.
type Facts struct {
	ID             string            `json:"run_id"`
	Began          string            `json:"began"`
	CodeHash       string            `json:"code_hash"`
	Host           string            `json:"host,omitempty"` // as announced
	Images         []string          `json:"images"`         // NAME@DIGEST
	EngineVersions map[string]string `json:"engine_versions,omitempty"`
	// Definitions are the digests of the definitions of tools, by SERVER/TOOL.
	Definitions map[string][]string `json:"tool_definitions,omitempty"`
	Snapshot    string              `json:"tools_snapshot,omitempty"` // digest of all tools that the run saw
	Policies    []string            `json:"policy_versions,omitempty"`
	Airlock     string              `json:"airlock_version"`
}

// Manifest returns the bill as a manifest that is made now.
func (b *Bill) Manifest(now time.Time) (Manifest, error) {
	m := Manifest{Timestamp: now.UTC().Format(time.RFC3339Nano), Compliance: compliance, Run: b.facts()}
	m.Components = Components{Models: []Component{}, Engines: []Component{}, Tools: []Component{}}
	if b.Model != "" {
		m.Components.Models = append(m.Components.Models, Component{b.Model, "generator"})
	}
	for _, e := range b.Engines {
		add(&m.Components.Engines, Component{e.Name, "qwed_deterministic"}, true)
	}
	for _, t := range b.Tools {
		add(&m.Components.Tools, Component{t.fullName(), "action_execution"}, true)
	}
	var err error
	m.Hash, err = manifestHash(m.Components)
	return m, err
}

func (b *Bill) facts() Facts {
	f := Facts{
		ID: b.Run.RunID, Began: b.Run.Time, CodeHash: b.Run.CodeHash, Host: b.Host, Images: []string{},
		Snapshot: b.Run.Snapshot, Policies: b.Policies, Airlock: b.Airlock, EngineVersions: map[string]string{},
		Definitions: map[string][]string{},
	}
	for _, image := range b.Images {
		f.Images = append(f.Images, image.Name+"@"+image.Digest)
	}
	for _, e := range b.Engines {
		if e.Version != "" {
			f.EngineVersions[e.Name] = e.Version
		}
	}
	for _, t := range b.Tools {
		if t.Digest != "" {
			f.Definitions[t.fullName()] = append(f.Definitions[t.fullName()], t.Digest)
		}
	}
	return f
}

// manifestHash is SHA-256 over the text that Python's json.dumps makes with sorted keys
// and without spaces.
func manifestHash(c Components) (string, error) {
	canonical, err := canon.Marshal(map[string]any{"components": c, "compliance": compliance})
	if err != nil {
		return "", fmt.Errorf("hashing the manifest: %w", err)
	}
	sum := sha256.Sum256(inASCII(canonical))
	return hex.EncodeToString(sum[:]), nil
}

// inASCII escapes what Python escapes and RFC 8785 does not: DEL, and all beyond ASCII.
// The names of members are ASCII, so their order stays.
func inASCII(canonical []byte) []byte {
	var text []byte
	for _, r := range string(canonical) {
		switch {
		case r < 0x7f:
			text = append(text, byte(r))
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			text = fmt.Appendf(text, `\u%04x\u%04x`, high, low)
		default:
			text = fmt.Appendf(text, `\u%04x`, r)
		}
	}
	return text
}
