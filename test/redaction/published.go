package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// gitleaksRecorder replaces the function with which Gitleaks checks the examples of its rules, and
// records them instead.
const gitleaksRecorder = `package utils

import (
	"encoding/json"
	"os"

	"github.com/zricethezav/gitleaks/v8/cmd/generate/config/base"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"
)

func Validate(rule config.Rule, truePositives, falsePositives []string) *config.Rule {
	cfg := base.CreateGlobalConfig()
	cfg.Rules = map[string]config.Rule{rule.RuleID: rule}
	cfg.Keywords = map[string]struct{}{}
	for _, keyword := range rule.Keywords {
		cfg.Keywords[keyword] = struct{}{}
	}
	d := detect.NewDetector(cfg)
	for _, text := range truePositives {
		var secrets []string
		for _, finding := range d.DetectString(text) {
			secrets = append(secrets, finding.Secret)
		}
		if len(secrets) > 0 {
			record(rule.RuleID, text, secrets)
		}
	}
	for _, text := range falsePositives {
		record(rule.RuleID, text, nil)
	}
	return &rule
}
` + recorderTail

// recorderTail ends the Go file that replaces a scanner's own validation. It appends an example to
// the file named by $EXAMPLES.
const recorderTail = `
// Rules that depend on the name of a file do not apply to a text.
func ValidateWithPaths(rule config.Rule, _, _ map[string]string) *config.Rule { return &rule }

func record(name, text string, secrets []string) {
	f, err := os.OpenFile(os.Getenv("EXAMPLES"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	json.NewEncoder(f).Encode(map[string]any{"name": name, "text": text, "secrets": secrets})
}
`

// gitleaksExamples returns the examples that Gitleaks generates or quotes to check its rules.
func gitleaksExamples(ctx context.Context, scratch string) (set, error) {
	m := module{"github.com/zricethezav/gitleaks/v8", "v8.30.1", "h1:PmEvCfVI7ti9dV3s5aMZUY7sS2GxRvG3yzih7E+cS3w="}
	directory, err := m.copied(ctx, scratch, "cmd", "config", "detect", "logging", "regexp", "report", "sources",
		"version")
	if err != nil {
		return set{}, err
	}
	generator := filepath.Join(directory, "cmd", "generate", "config")
	if err := patch(generator, "utils/validate.go", gitleaksRecorder); err != nil {
		return set{}, err
	}
	examples, err := recorded(ctx, generator, "run", ".", os.DevNull)
	return set{name: "gitleaks", examples: unique(examples)}, err
}

// velesRecorder wraps the engine of the detectors. It records each text that their tests pass to
// it, and the result.
const velesRecorder = `package veles

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"regexp"
	"strings"
)

// identifier is a field that names an account or has a public key. It is not a secret
// if there is another field beside it.
var identifier = regexp.MustCompile("(?i)(?:id|user|username|public_?key|email)$")

func (e *DetectionEngine) Detect(ctx context.Context, r io.Reader) ([]Secret, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	found, err := e.detect(ctx, bytes.NewReader(text))
	var secrets []string
	raw, _ := json.Marshal(found)
	var value any
	json.Unmarshal(raw, &value)
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if raw, err := base64.StdEncoding.DecodeString(v); err == nil && strings.Contains(string(text), string(raw)) {
				v = string(raw) // it was []byte
			}
			if len(v) > 4 && strings.Contains(string(text), v) {
				secrets = append(secrets, v)
			}
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			for name, item := range v {
				if len(v) == 1 || !identifier.MatchString(name) {
					walk(item)
				}
			}
		}
	}
	walk(value)
	if err == nil && (len(found) == 0) == (len(secrets) == 0) {
		f, err := os.OpenFile(os.Getenv("EXAMPLES"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		dir, _ := os.Getwd()
		json.NewEncoder(f).Encode(map[string]any{"name": dir[strings.LastIndexByte(dir, '/')+1:], "text": string(text), "secrets": secrets})
	}
	return found, err
}
`

// velesAccept keeps only the example of the tests that all detectors share.
const velesAccept = `package velestest

import (
	"strings"
	"testing"

	"github.com/google/osv-scalibr/veles"
)

type AcceptDetectorOption func(*int)

func WithPad(rune) AcceptDetectorOption    { return nil }
func WithBackToBack() AcceptDetectorOption { return nil }

func AcceptDetector(t *testing.T, d veles.Detector, example string, _ veles.Secret, _ ...AcceptDetectorOption) {
	e, err := veles.NewDetectionEngine([]veles.Detector{d})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Detect(t.Context(), strings.NewReader(example)); err != nil {
		t.Fatal(err)
	}
}
`

// velesSecrets returns the texts that the tests of Veles, the detectors of OSV-SCALIBR, pass to the
// detectors of secrets.
func velesSecrets(ctx context.Context, scratch string) (set, error) {
	examples, err := velesExamples(ctx, filepath.Join(scratch, "secrets"), "./veles/secrets/...")
	return set{name: "veles", examples: examples}, err
}

// velesPersonal returns the same for personal data.
func velesPersonal(ctx context.Context, scratch string) (set, error) {
	examples, err := velesExamples(ctx, filepath.Join(scratch, "personal"), "./veles/sensitiveinformation/ssn",
		"./veles/sensitiveinformation/iban")
	return set{name: "veles, personal data", personal: true, examples: examples}, err
}

func velesExamples(ctx context.Context, scratch string, packages ...string) ([]example, error) {
	m := module{"github.com/google/osv-scalibr", "v0.5.3", "h1:LcXnN8MLhrQF9O4jrFP2mv3Ae1afO516t+3QdPpbhqM="}
	directory, err := m.copied(ctx, scratch, "veles")
	if err != nil {
		return nil, err
	}
	engine, err := os.ReadFile(filepath.Join(directory, "veles", "detect.go"))
	if err != nil {
		return nil, err
	}
	renamed := strings.Replace(string(engine), "DetectionEngine) Detect(", "DetectionEngine) detect(", 1)
	for name, text := range map[string]string{"veles/detect.go": renamed, "veles/record.go": velesRecorder,
		"veles/velestest/accept.go": velesAccept} {
		if err := patch(directory, name, text); err != nil {
			return nil, err
		}
	}
	examples, err := recorded(ctx, directory, append([]string{"test", "-vet=off", "-run", "[dD]etect"}, packages...)...)
	return unique(examples), err
}

// patch replaces one file of a copied module.
func patch(directory, name, text string) error {
	path := filepath.Join(directory, filepath.FromSlash(name))
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	if err := os.Chmod(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// kicsExamples reads the files with which KICS checks its rule for passwords and secrets. An
// example is a line that it reports. A negative is a file in which it reports none.
func kicsExamples(ctx context.Context, _ string) (set, error) {
	m := module{"github.com/Checkmarx/kics/v2", "v2.2.0", "h1:3pEPW0zIZDfqJzEvxpUbBSgNFS4no3Sbq6qZ5jQCxMU="}
	root, err := m.fetch(ctx)
	if err != nil {
		return set{}, err
	}
	directory := filepath.Join(root, "assets", "queries", "common", "passwords_and_secrets", "test")
	raw, err := os.ReadFile(filepath.Join(directory, "positive_expected_result.json"))
	if err != nil {
		return set{}, err
	}
	var expected []struct {
		Line     int
		FileName string
	}
	if err := json.Unmarshal(raw, &expected); err != nil {
		return set{}, fmt.Errorf("reading what KICS expects: %w", err)
	}
	var examples []example
	for _, e := range expected {
		text, err := os.ReadFile(filepath.Join(directory, e.FileName))
		if err != nil {
			return set{}, err
		}
		lines := strings.Split(string(text), "\n")
		if e.Line < 1 || e.Line > len(lines) {
			return set{}, fmt.Errorf("reading what KICS expects: %s has no line %d", e.FileName, e.Line)
		}
		examples = append(examples, example{e.FileName, string(text), []string{strings.TrimSpace(lines[e.Line-1])}})
	}
	negatives, err := filepath.Glob(filepath.Join(directory, "negative*"))
	if err != nil {
		return set{}, err
	}
	for _, path := range negatives {
		text, err := os.ReadFile(path)
		if err != nil {
			return set{}, err
		}
		examples = append(examples, example{Name: filepath.Base(path), Text: string(text)})
	}
	return set{name: "kics", examples: examples}, nil
}
