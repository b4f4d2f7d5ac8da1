package bom

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/schema"
	"github.com/airlock-mcp/airlock/verify/verifytest"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// recorded writes a run to a real log and reads it back.
func recorded(t *testing.T, records ...audit.Record) *audit.RunTree {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "audit")
	log, err := audit.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		r.RunID = "run_1"
		if err := log.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	tree, err := audit.ShowFrom(dir, 1, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// whole is a run with everything that a bill lists.
func whole(t *testing.T) *audit.RunTree {
	call := func(kind audit.Kind, id, server, tool string) audit.Record {
		return audit.Record{
			Kind: kind, Act: audit.Act{CallID: id, ServerID: server, ToolName: tool, DefinitionDigest: digest},
			Ruling: audit.Ruling{Decision: "allow", PolicyVersion: digest},
			Effect: audit.Effect{Outcome: audit.OutcomeOK},
		}
	}
	return recorded(t,
		audit.Record{Kind: audit.KindDecision, Act: audit.Act{ToolName: "execute_python_code", Engine: "code"},
			RunFacts: audit.RunFacts{Image: "verify@" + digest},
			Ruling:   audit.Ruling{Decision: "allow", VerificationID: "ab"}},
		audit.Record{Kind: audit.KindRunStart, Identity: audit.Identity{CodeHash: digest}, RunFacts: audit.RunFacts{
			Language: "script", Image: "verify@" + digest, Snapshot: digest, Host: "Claude Desktop 1.2.3",
			Model: "modèle-5 😀"}},
		call(audit.KindIntent, "call_1", "crm", "list"), call(audit.KindOutcome, "call_1", "crm", "list"),
		call(audit.KindIntent, "call_2", "crm", "list"), call(audit.KindOutcome, "call_2", "crm", "list"),
		call(audit.KindOutcome, "call_3", "files", "read_file"),
		audit.Record{Kind: audit.KindRunEnd, Effect: audit.Effect{Outcome: audit.OutcomeOK}},
	)
}

var built = []images.Record{
	{Name: "python", Digest: "sha256:other",
		Packages: []images.Package{{Source: images.FromDebian, Name: "airlock-verify", Version: "9"}}},
	{Name: "verify", Digest: digest, Packages: []images.Package{
		{Source: "pypi", Name: "airlock-verify", Version: "0.3.0", Digest: digest},
		{Source: images.FromDebian, Name: "libc6", Version: "2.36-9+deb12u4", Digest: digest},
		{Source: images.FromNPM, Name: "@scope/x", Version: "1.0.0",
			Digest: "sha512-" +
				"z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="},
	}},
}

func billOf(t *testing.T, tree *audit.RunTree) *Bill {
	t.Helper()
	bill, err := Of(tree, Options{Version: "1.0", Images: built})
	if err != nil {
		t.Fatal(err)
	}
	return bill
}

func TestAManifestSaysWhatTheLogSays(t *testing.T) {
	manifest, err := billOf(t, whole(t)).Manifest(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"timestamp":"2026-01-02T03:04:05Z"`, `"compliance":"QWED_AI_SPM_v1"`,
		`"models":[{"name":"modèle-5 😀","type":"generator"}]`,
		`"verification_engines":[{"name":"qwed_new.engines.code","type":"qwed_deterministic"}]`,
		`"mcp_tools":[{"name":"crm/list","type":"action_execution"},{"name":"execute_python_code",` +
			`"type":"action_execution"},{"name":"files/read_file","type":"action_execution"}]`,
		`"host":"Claude Desktop 1.2.3"`, `"images":["verify@` + digest + `"]`,
		`"engine_versions":{"qwed_new.engines.code":"0.3.0"}`,
		`"tool_definitions":{"crm/list":["` + digest + `"],"files/read_file":["` + digest + `"]}`,
		`"policy_versions":["` + digest + `"]`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("got %s, want it to say %s", got, want)
		}
	}
}

// the hash is that of the seed's generator for the same names.
func TestTheHashIsThatOfTheGenerator(t *testing.T) {
	manifest, err := billOf(t, whole(t)).Manifest(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	names := func(components []Component) []string {
		var all []string
		for _, c := range components {
			all = append(all, c.Name)
		}
		return all
	}
	input, err := json.Marshal([]any{manifest.Components.Models[0].Name, names(manifest.Components.Engines),
		names(manifest.Components.Tools)})
	if err != nil {
		t.Fatal(err)
	}
	command := verifytest.Python(
		t, "-c", "import json, sys\nfrom qwed_mcp.observability.aibom import "+
			"AIBOMGenerator\nprint(AIBOMGenerator().generate_manifest(*json.load(sys.stdin))['manifest_hash'])")
	command.Stdin = bytes.NewReader(input)
	want, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Hash != strings.TrimSpace(string(want)) {
		t.Errorf("got %s, the generator has %s", manifest.Hash, want)
	}
	example := Components{
		Models: []Component{{"gpt-4o", "generator"}},
		Engines: []Component{{"qwed_tax.TaxVerifier", "qwed_deterministic"},
			{"qwed_legal.FairnessGuard", "qwed_deterministic"}},
		Tools: []Component{{"execute_python_code", "action_execution"}},
	}
	if got, err := manifestHash(example); err != nil ||
		got != "98daf7bf6397564badbc301b8bba40335872f3a7b13a691186da5d8f33af1c9e" {
		t.Errorf("got %s and %v for the document's example", got, err)
	}
}

// cycloneDXSchema is the schema that CycloneDX publishes, with the two that it refers to.
func cycloneDXSchema(t *testing.T) *schema.Schema {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string, replace ...string) map[string]any {
		raw, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if err := json.Unmarshal([]byte(strings.NewReplacer(replace...).Replace(string(raw))), &document); err != nil {
			t.Fatal(err)
		}
		delete(document, "$id")
		return document
	}
	bom := read("bom-1.6.schema.json", `"jsf-0.82.schema.json#/definitions/`, `"#/definitions/jsf/definitions/`,
		`"spdx.schema.json"`, `"#/definitions/spdx"`)
	definitions := bom["definitions"].(map[string]any)
	definitions["jsf"], definitions["spdx"] = read(
		"jsf-0.82.schemax.json", `"#/definitions/`, `"#/definitions/jsf/definitions/`), read("spdx.schema.json")
	raw, err := json.Marshal(bom)
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := schema.Compile(raw)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func TestCycloneDXIsValid(t *testing.T) {
	valid := cycloneDXSchema(t)
	if valid.Validate([]byte(
		`{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": [{"type": "spaceship", "name": `+
			`"x"}]}`)) == nil {
		t.Fatal("the schema accepts a component of no type: it checks nothing")
	}
	bare := recorded(t, audit.Record{Kind: audit.KindRunStart})
	for name, tree := range map[string]*audit.RunTree{"whole": whole(t), "bare": bare} {
		var text bytes.Buffer
		if err := billOf(t, tree).WriteCycloneDX(&text, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := valid.Validate(text.Bytes()); err != nil {
			t.Errorf("%s: %v\n%s", name, err, text.Bytes())
		}
		if name == "bare" {
			continue
		}
		for _, want := range []string{
			`"machine-learning-model"`, `"pkg:pypi/airlock-verify@0.3.0"`, `"pkg:deb/debian/libc6@2.36-9+deb12u4"`,
			`"pkg:npm/%40scope/x@1.0.0"`, `"SHA-512"`,
			`"name": "Claude Desktop"`, `"version": "1.2.3"`, `"group": "crm"`, digest[len("sha256:"):],
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("got %s, want it to have %s", text.Bytes(), want)
			}
		}
	}
}

func TestABillOfARunThatTheLogDoesNotBegin(t *testing.T) {
	if bill, err := Of(recorded(t, audit.Record{Kind: audit.KindRunEnd}), Options{}); err == nil {
		t.Errorf("got %+v, want an error", bill)
	}
}

// Another build of an image has other packages: none are claimed.
func TestPackagesAreThoseOfTheRunsImage(t *testing.T) {
	bill, err := Of(whole(t), Options{Images: built[:1]})
	if err != nil || len(bill.Images) != 1 || bill.Images[0].Packages != nil || bill.Engines[0].Version != "" {
		t.Errorf("got %+v and %v, want no packages and no version", bill, err)
	}
}
