package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// material is ordinary text in which no secret should be found.
type material struct {
	name  string
	texts []string
}

// Files larger than maxFile are data rather than written text. At most maxMaterial is read of one
// material, and at most maxSource of Go and of Python.
const (
	maxFile     = 1 << 20
	maxMaterial = 24 << 20
	maxSource   = 40_000_000
)

// ordinary returns the materials: the files that the project's own build has fetched, in the
// versions pinned by go.sum and package-lock.json, and generated lists.
func ordinary(ctx context.Context) ([]material, error) {
	root, err := filepath.Abs("../..") // the working directory is that of the program
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{if not .Main}}{{.Dir}}{{end}}", "all")
	cmd.Dir = root
	answer, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the project's modules: %w", err)
	}
	modules := strings.Fields(string(answer))
	goRoot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("finding the standard library: %w", err)
	}
	goSource := append([]string{filepath.Join(strings.TrimSpace(string(goRoot)), "src")}, modules...)
	pythonSource, err := pythonDirectories(ctx, root)
	if err != nil {
		return nil, err
	}
	npm := []string{filepath.Join(root, "test", "servers", "node_modules"),
		filepath.Join(root, "test", "conformance", "node_modules")}
	toolLists := cmp.Or(os.Getenv("AIRLOCK_CORPUS"), filepath.Join(root, "..", "shared", "corpus"))
	list := []material{
		{"Go source", nil}, {"Python source", nil}, {"JavaScript and TypeScript", nil}, {"prose", nil},
		{"JSON and YAML", nil},
		{"lock files", nil}, {"tool lists", nil},
	}
	for i, pick := range []func() ([]string, error){
		func() ([]string, error) { return readMost(maxSource, goSource, ".go") },
		func() ([]string, error) { return readMost(maxSource, pythonSource, ".py") },
		func() ([]string, error) { return read(npm, ".js", ".mjs", ".cjs", ".ts") },
		func() ([]string, error) { return read(append(npm, modules...), ".md", ".txt", "LICENSE", "NOTICE") },
		func() ([]string, error) { return read(append(npm, modules...), ".json", ".yaml", ".yml", ".toml") },
		func() ([]string, error) {
			return read(append([]string{root}, modules...), "go.sum", "package-lock.json")
		},
		func() ([]string, error) { return read([]string{toolLists}, ".json", ".jsonl") },
	} {
		if list[i].texts, err = pick(); err != nil {
			return nil, err
		}
		if len(list[i].texts) == 0 {
			return nil, fmt.Errorf("there is no %s to measure on", list[i].name)
		}
	}
	return append(list, material{"UUIDs", []string{uuids()}}, material{"digests", []string{digests()}}), nil
}

// pythonDirectories returns the directories of Python's library, of the packages of the system, and of
// those that the build has installed.
func pythonDirectories(ctx context.Context, root string) ([]string, error) {
	const program = "import os, sysconfig; print(sysconfig.get_path('stdlib')); " +
		"[print(d) for d in ('/usr/lib/python3/dist-packages', sysconfig.get_path('purelib')) if os.path.isdir(d)]"
	answer, err := exec.CommandContext(ctx, "python3", "-c", program).Output()
	if err != nil {
		return nil, fmt.Errorf("finding Python's library: %w", err)
	}
	installed, err := filepath.Glob(filepath.Join(root, "bin", "python-*"))
	return append(strings.Fields(string(answer)), installed...), err
}

// read returns the texts below directories whose names have one of the endings. It ignores test
// data, which may contain secrets.
func read(directories []string, endings ...string) ([]string, error) {
	return readMost(maxMaterial, directories, endings...)
}

// readMost is read with another limit.
func readMost(left int, directories []string, endings ...string) ([]string, error) {
	var texts []string
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := entry.Name()
			if entry.IsDir() {
				if path != directory && (strings.HasPrefix(name, "test") || strings.HasPrefix(name, ".") ||
					name == "bin") {
					return filepath.SkipDir
				}
				return nil
			}
			if !slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) }) ||
				strings.HasSuffix(name, "_test.go") || left <= 0 {
				return nil
			}
			if info, err := entry.Info(); err != nil || info.Size() > maxFile || !info.Mode().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			left -= len(text)
			texts = append(texts, string(bytes.ToValidUTF8(text, nil)))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// uuids returns random UUIDs (RFC 9562, version 4), as in the export of a table.
func uuids() string {
	rng := rand.New(rand.NewPCG(4, 2))
	var b strings.Builder
	for i := range 20_000 {
		hi, lo := rng.Uint64()&^0xf000|0x4000, rng.Uint64()&^(3<<62)|1<<63
		fmt.Fprintf(&b, `{"id": "%08x-%04x-%04x-%04x-%012x", "row": %d}`+"\n", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48,
			lo&0xffffffffffff, i)
	}
	return b.String()
}

// digests returns lines in the format of sha256sum, and image references.
func digests() string {
	var b strings.Builder
	for i := range 10_000 {
		sum := sha256.Sum256(fmt.Append(nil, i))
		fmt.Fprintf(&b, "%s  file-%d.tar.gz\nregistry.local/image@sha256:%s\ncommit %s\n", hex.EncodeToString(sum[:]),
			i, hex.EncodeToString(sum[:]), hex.EncodeToString(sum[:20]))
	}
	return b.String()
}
