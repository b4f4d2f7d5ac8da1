package images

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/images/layer"
	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// npmRoot is the directory that every npm package's archive consists of.
const npmRoot = "package"

// extractNPM puts the files that def names from its npm package below dir and
// returns which package it was. scratch is an empty directory for its use. No script of
// the package runs.
func extractNPM(ctx context.Context, def NPM, pkg, dir, scratch string, say *progress) (Package, error) {
	say.step(fmt.Sprintf("downloading %s %s from npm", pkg, def.Version))
	file, err := npmPack(ctx, pkg, def.Version, scratch)
	if err != nil {
		return Package{}, err
	}
	digest, err := integrity(file)
	if err != nil {
		return Package{}, err
	}
	say.step("extracting " + pkg)
	if err := unpackNPM(ctx, file, scratch, def); err != nil {
		return Package{}, fmt.Errorf("extracting npm package %q: %w", pkg, err)
	}
	for from, to := range def.Files {
		target := filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return Package{}, fmt.Errorf("extracting npm package %q: %w", pkg, err)
		}
		if err := os.Rename(filepath.Join(scratch, npmRoot, from), target); err != nil {
			return Package{}, fmt.Errorf("extracting npm package %q: %w", pkg, err)
		}
	}
	return Package{Source: FromNPM, Name: pkg, Version: def.Version, Digest: digest}, nil
}

// npmPack downloads a package's archive to dir and returns its path. It uses npm, which
// knows the user's registries and sign-ins, and does without it if npm is not installed.
func npmPack(ctx context.Context, pkg, version, dir string) (string, error) {
	program, err := findTool("npm", "npm")
	if err != nil {
		return fetchNPM(ctx, pkg, version, dir)
	}
	spec := pkg + "@" + version
	cmd := exec.CommandContext(ctx, program, "pack", "--silent", "--pack-destination", dir, spec)
	cmd.Dir = dir // no project's .npmrc
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("npm could not fetch %q: %w\n  %s", spec, err, strings.TrimSpace(stderr.String()))
	}
	name := strings.TrimSpace(string(out))
	if name == "" || filepath.Base(name) != name {
		return "", fmt.Errorf("npm fetched %q to a file named %q", spec, name)
	}
	return filepath.Join(dir, name), nil
}

// integrity returns the digest of a file in the form of the W3C's Subresource
// Integrity, as npm's lock files have it.
func integrity(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("hashing %q: %w", path, err)
	}
	defer file.Close()
	hash := sha512.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("hashing %q: %w", path, err)
	}
	return "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)), nil
}

func unpackNPM(ctx context.Context, archive, dir string, def NPM) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	undo.Add(file.Close)
	plain, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	undo.Add(plain.Close)
	return layer.Unpack(ctx, plain, dir, func(name string) bool {
		_, ok := def.Files[strings.TrimPrefix(name, npmRoot+"/")]
		return ok
	})
}
