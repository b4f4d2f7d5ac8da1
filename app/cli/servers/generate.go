package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/codegen"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Generate is airlock generate.
type Generate struct {
	verb.ToolsFlags
	Out   string `required:"" type:"path" placeholder:"DIR" help:"Where to write; python/ and node/ appear below it."`
	Tools string `type:"path" placeholder:"DIR" help:"Read tools/list answers from DIR/*.json instead of asking servers; a file's name is its server's ID."`
	JSON  bool   `name:"json" help:"Report as JSON."`
}

// generated is one language in the output of --json.
type generated struct {
	Language string   `json:"language"`
	Path     string   `json:"path"`
	Servers  int      `json:"servers"`
	Tools    int      `json:"tools"`
	Files    int      `json:"files"`
	Digest   string   `json:"digest"`
	Warnings []string `json:"warnings"`
}

// Run writes the wrapper trees. It needs neither a sandbox nor root. With --tools it needs no
// network.
func (v *Generate) Run(ctx context.Context, s *verb.Streams) error {
	servers, err := v.servers(ctx, s)
	if err != nil {
		return err
	}
	var reports []generated
	for _, language := range []codegen.Language{codegen.Python, codegen.Node} {
		report, err := v.write(servers, language)
		if err != nil {
			return err
		}
		report.Warnings = append(unusable(servers), report.Warnings...)
		reports = append(reports, report)
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"trees": reports})
	}
	for _, r := range reports {
		fmt.Fprintf(s.Out, "%s: %s of %s in %s, %s\n", r.Path, verb.Counted(r.Tools, "tool"),
			verb.Counted(r.Servers, "server"),
			verb.Counted(r.Files, "file"), r.Digest)
	}
	for _, warning := range reports[0].Warnings {
		fmt.Fprintf(s.Err, "airlock: %s\n", warning)
	}
	return nil
}

func (v *Generate) servers(ctx context.Context, s *verb.Streams) ([]catalog.Server, error) {
	if v.Tools != "" {
		return ReadLists(v.Tools)
	}
	snapshot, err := v.Snapshot(ctx, s.Err)
	if err != nil {
		return nil, err
	}
	return snapshot.Shown(), nil
}

func (v *Generate) write(servers []catalog.Server, language codegen.Language) (generated, error) {
	tree, err := codegen.Generate(servers, language)
	if err != nil {
		return generated{}, fmt.Errorf("generating %s wrappers: %w", language, err)
	}
	dir := filepath.Join(v.Out, string(language), "servers")
	if err := writeTree(dir, tree); err != nil {
		return generated{}, err
	}
	report := generated{
		Language: string(language), Path: dir, Servers: tree.Servers, Tools: tree.Tools, Files: len(tree.Files),
		Digest: tree.Digest, Warnings: []string{},
	}
	for _, warning := range tree.Warnings {
		report.Warnings = append(report.Warnings, describe(warning))
	}
	return report, nil
}

// unusable returns the warnings about the servers' lists, such as tools that cannot be used.
func unusable(servers []catalog.Server) []string {
	warnings := []string{}
	for _, server := range servers {
		for _, warning := range server.Warnings {
			warnings = append(warnings, fmt.Sprintf("server %q: %s", server.ID, warning))
		}
	}
	return warnings
}

// describe returns a warning as one line.
func describe(w codegen.Warning) string {
	if w.Tool == "" {
		return fmt.Sprintf("server %q: %s", w.ServerID, w.Text)
	}
	return fmt.Sprintf("tool %q of server %q: %s", w.Tool, w.ServerID, w.Text)
}

// writeTree writes a tree to a directory, which must be new or empty, because files of an
// earlier tree could still be imported.
func writeTree(dir string, tree *codegen.Tree) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return verb.Usage(fmt.Sprintf("the directory %q is not empty", dir),
			"name a new directory, or remove this one first")
	}
	for _, file := range tree.Files {
		path := filepath.Join(dir, filepath.FromSlash(file.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing wrappers: %w", err)
		}
		if err := os.WriteFile(path, file.Data, 0o644); err != nil {
			return fmt.Errorf("writing wrappers: %w", err)
		}
	}
	return nil
}

// ReadLists reads every DIR/*.json as the result of tools/list, with all pages joined.
func ReadLists(dir string) ([]catalog.Server, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(paths) == 0 {
		return nil, verb.Usage(fmt.Sprintf("the directory %q has no *.json files", dir),
			"each file is one tools/list answer: {\"tools\": [...]}")
	}
	var servers []catalog.Server
	for _, path := range paths {
		server, err := readList(path)
		if err != nil {
			return nil, err
		}
		servers = append(servers, server)
	}
	return servers, nil
}

func readList(path string) (catalog.Server, error) {
	raw, err := os.ReadFile(path)
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return catalog.Server{}, verb.Usage(fmt.Sprintf("the file %q cannot be read: %v", path, pathErr.Err), "")
	}
	var answer struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := strictjson.UnmarshalOpen(raw, &answer); err != nil {
		return catalog.Server{}, verb.Usage(fmt.Sprintf("the file %q is not a tools/list answer: %v", path, err),
			"each file is one tools/list answer: {\"tools\": [...]}")
	}
	id := strings.TrimSuffix(filepath.Base(path), ".json")
	tools, warnings := catalog.ParseTools(id, answer.Tools)
	return catalog.Server{ID: id, Tools: tools, Warnings: warnings}, nil
}
