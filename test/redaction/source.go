package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// module is a Go module that is fetched for its examples.
type module struct {
	path, version string
	sum           string // hash of its content in the format of go.sum
}

// fetch returns the directory of the module, and downloads it if necessary.
func (m module) fetch(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", m.path+"@"+m.version)
	cmd.Dir = os.TempDir() // outside of any module
	answer, err := cmd.Output()
	var got struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(answer, &got); err == nil {
		err = jsonErr
	}
	if err != nil {
		return "", fmt.Errorf("fetching module %s: %w: %s", m.path, err, got.Error)
	}
	if got.Sum != m.sum {
		return "", fmt.Errorf("fetching module %s: got sum %s, want %s", m.path, got.Sum, m.sum)
	}
	return got.Dir, nil
}

// copied makes a writable copy of some directories of the module below scratch, with its go.mod and
// go.sum.
func (m module) copied(ctx context.Context, scratch string, directories ...string) (string, error) {
	from, err := m.fetch(ctx)
	if err != nil {
		return "", err
	}
	to := filepath.Join(scratch, filepath.Base(from))
	for _, directory := range directories {
		if err := os.CopyFS(filepath.Join(to, directory), os.DirFS(filepath.Join(from, directory))); err != nil {
			return "", fmt.Errorf("copying module %s: %w", m.path, err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return "", fmt.Errorf("copying module %s: %w", m.path, err)
		}
		if err := os.WriteFile(filepath.Join(to, name), text, 0o644); err != nil {
			return "", fmt.Errorf("copying module %s: %w", m.path, err)
		}
	}
	return to, nil
}

// recorded runs a Go command in a directory with patched code, which writes examples to the file
// named by EXAMPLES, and returns them. The command may fail as long as there are examples, because
// patched tests can fail.
func recorded(ctx context.Context, directory string, args ...string) ([]example, error) {
	file, err := os.CreateTemp("", "examples-*.jsonl")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "EXAMPLES="+file.Name(), "GOFLAGS=-mod=mod", "GOWORK=off")
	output, runErr := cmd.CombinedOutput()
	var list []example
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e example
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("reading examples of %s: %w", directory, err)
		}
		list = append(list, e)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading examples of %s: %w", directory, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("running go %v in %s gave no example: %w: %s", args, directory, runErr,
			bytes.TrimSpace(output[max(0, len(output)-2000):]))
	}
	return list, nil
}
