package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/reach"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

const (
	defaultRegistry = "https://registry.npmjs.org/"
	// maxManifest and maxArchive bound what is downloaded, in bytes. Node's archive has 50 MB.
	maxManifest = 4 << 20
	maxArchive  = 512 << 20
)

// fetchNPM downloads a package's archive to dir as npm pack does, for machines without
// npm: a whole npm to fetch one archive would be 672 Debian packages. It checks the
// archive against the registry's own digest. It knows the registry of npm's settings, and
// no sign-in to one.
func fetchNPM(ctx context.Context, pkg, version, dir string) (string, error) {
	registry, err := npmRegistry(os.Getenv)
	if err != nil {
		return "", err
	}
	return fetchFrom(ctx, registry, pkg, version, dir)
}

func fetchFrom(ctx context.Context, registry *url.URL, pkg, version, dir string) (_ string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("fetching %s %s from %s without npm: %w", pkg, version, registry.Host, err)
		}
	}()
	var manifest struct {
		Dist struct {
			Tarball   string `json:"tarball"`
			Integrity string `json:"integrity"`
		} `json:"dist"`
	}
	text, err := get(ctx, registry.JoinPath(pkg, version).String(), maxManifest)
	if err != nil {
		return "", err
	}
	defer text.Close()
	if err := strictjson.NewDecoder(text).DecodeOpen(&manifest); err != nil {
		return "", fmt.Errorf("reading the package's description: %w", err)
	}
	address := manifest.Dist.Tarball
	if rest, ok := strings.CutPrefix(address, defaultRegistry); ok { // as npm does for mirrors
		address = registry.JoinPath(rest).String()
	}
	if err := checkRegistry(address); err != nil {
		return "", err
	}
	archive, err := get(ctx, address, maxArchive)
	if err != nil {
		return "", err
	}
	defer archive.Close()
	name := filepath.Join(dir, path.Base(pkg)+"-"+version+".tgz")
	file, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(file, archive)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", err
	}
	digest, err := integrity(name)
	if err != nil {
		return "", err
	}
	if digest != manifest.Dist.Integrity {
		return "", errors.Join(fmt.Errorf("the archive has the digest %s, not %.100q as the registry announces", digest,
			manifest.Dist.Integrity), os.Remove(name))
	}
	return name, nil
}

// get returns the body of a successful answer, which ends with an error after most bytes.
func get(ctx context.Context, address string, most int64) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: reach.NewTransport(reach.Configured(), nil)}).Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, fmt.Errorf("%s answered %s", request.URL.Host, response.Status)
	}
	return http.MaxBytesReader(nil, response.Body, most), nil
}

// npmRegistry returns the registry that npm's settings name: the variable, else the
// user's .npmrc, else the public one.
func npmRegistry(getenv func(string) string) (*url.URL, error) {
	address := defaultRegistry
	for _, name := range []string{"npm_config_registry", "NPM_CONFIG_REGISTRY"} {
		if value := getenv(name); value != "" {
			address = value
		}
	}
	if address == defaultRegistry && getenv("HOME") != "" {
		settings, err := os.ReadFile(filepath.Join(getenv("HOME"), ".npmrc"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(settings)) {
			if key, value, ok := strings.Cut(line, "="); ok && strings.TrimSpace(key) == "registry" {
				address = strings.Trim(strings.TrimSpace(value), `"`)
			}
		}
	}
	if err := checkRegistry(address); err != nil {
		return nil, err
	}
	return url.Parse(address)
}

// checkRegistry refuses an address without TLS: on the way, the archive and its digest
// could be changed together.
func checkRegistry(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return fmt.Errorf("the registry's address cannot be read: %w", err)
	case u.Scheme == "https" && u.Host != "":
		return nil
	case u.Scheme == "http" && (u.Hostname() == "127.0.0.1" || u.Hostname() == "localhost"):
		return nil
	}
	return fmt.Errorf("the registry's address %.200q is not one with https", u.Redacted())
}
