package main

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The Maven artifact that contains SonarSource's rules for secrets, and the digest of its file.
const (
	sonarArtifact = "org.sonarsource.text:sonar-text-plugin:2.16.0.4008"
	sonarFile     = "sonar-text-plugin-2.16.0.4008.jar"
	sonarSum      = "e8b8f52736a0f22f8cea23989ba5097644b0389d74498bd9fc0a940c95418635"
	sonarRules    = "org/sonar/plugins/secrets/configuration"
)

// sonarFileOfRules is the part of a file of rules that is read.
type sonarFileOfRules struct {
	Provider struct {
		Rules []struct {
			ID       string
			Examples []struct {
				Text           string
				Match          string
				ContainsSecret bool `yaml:"containsSecret"`
			}
		}
	}
}

// sonarExamples returns the examples published with SonarSource's rules for secrets.
func sonarExamples(ctx context.Context, scratch string) (set, error) {
	fetch := exec.CommandContext(ctx, "mvn", "-q", "dependency:copy", "-Dartifact="+sonarArtifact,
		"-DoutputDirectory="+scratch)
	fetch.Dir = scratch
	if out, err := fetch.CombinedOutput(); err != nil {
		return set{}, fmt.Errorf("fetching artifact %s: %w: %s", sonarArtifact, err, out)
	}
	archive := filepath.Join(scratch, sonarFile)
	content, err := os.ReadFile(archive)
	if err != nil {
		return set{}, err
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != sonarSum {
		return set{}, fmt.Errorf("artifact %s: got the digest %x, want %s", sonarArtifact, sum, sonarSum)
	}
	jar, err := zip.OpenReader(archive)
	if err != nil {
		return set{}, fmt.Errorf("opening artifact %s: %w", sonarArtifact, err)
	}
	defer jar.Close()
	var examples []example
	for _, file := range jar.File {
		if path.Dir(file.Name) != sonarRules || path.Ext(file.Name) != ".yaml" {
			continue
		}
		more, err := sonarExamplesOf(file)
		if err != nil {
			return set{}, fmt.Errorf("reading %s: %w", file.Name, err)
		}
		examples = append(examples, more...)
	}
	return set{name: "sonar", examples: unique(examples)}, nil
}

func sonarExamplesOf(file *zip.File) ([]example, error) {
	in, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, err
	}
	var rules sonarFileOfRules
	if err := yaml.Unmarshal(text, &rules); err != nil {
		return nil, err
	}
	var examples []example
	for _, rule := range rules.Provider.Rules {
		for _, e := range rule.Examples {
			switch {
			case !e.ContainsSecret:
				examples = append(examples, example{Name: rule.ID, Text: e.Text})
			case e.Match != "" && strings.Contains(e.Text, e.Match):
				examples = append(examples, example{rule.ID, e.Text, []string{e.Match}})
			}
		}
	}
	return examples, nil
}
