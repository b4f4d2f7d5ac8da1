package upstream

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// Limits of the list cache.
const (
	cacheFormat    = 1
	cacheSuffix    = ".list"
	maxCacheHeader = 2 << 20             // bytes
	maxCacheAge    = 90 * 24 * time.Hour // older entries are not used, and removed
	maxCacheFiles  = 256                 // beyond it the oldest entries are removed
	maxCacheTotal  = 512 << 20           // bytes, likewise
)

// listCache keeps the newest tool list of each server on disk, so that the next
// Airlock knows the tools before any server has answered. An entry is a line of
// JSON (cacheHeader) and the definitions as they arrived, one behind the other.
// A nil *listCache keeps nothing. Its methods may be called concurrently, and by
// several processes: entries are replaced whole.
type listCache struct {
	dir string
	log *slog.Logger
	now func() time.Time

	pruning sync.Mutex
}

// cacheHeader describes one entry.
type cacheHeader struct {
	Format   int           `json:"format"`
	Identity string        `json:"identity"` // of the server: see identityOf
	Saved    time.Time     `json:"saved"`
	TTL      time.Duration `json:"ttl,omitempty"` // set by the server
	Warnings []string      `json:"warnings,omitempty"`
	Digest   string        `json:"digest"` // of everything behind the header
	Sizes    []int         `json:"sizes"`  // of the definitions, in bytes
	// Kinds are those of the last definitions, which are not tools.
	Kinds []catalog.Kind `json:"kinds,omitempty"`
}

// identityOf identifies the server of a list: how it is reached, and the capabilities that
// Airlock declares, because lists depend on both. Variables, headers and the query of a URL
// count by their names, because their values may be credentials.
func identityOf(c Config) string {
	var query []string
	if u, err := url.Parse(c.URL); err == nil {
		query = slices.Sorted(maps.Keys(u.Query()))
	}
	_, capabilities := declared(c)
	raw, err := json.Marshal(struct {
		ID, Command, Dir, URL string
		Args                  []string
		SSE                   bool
		Env, Headers, Query   []string
		Capabilities          string
		Contained             bool `json:",omitempty"` // in a sandbox a server may have other tools
	}{
		ID: c.ID, Command: c.Command, Args: c.Args, Dir: c.Dir, URL: plainURL(c.URL), SSE: c.SSE,
		Env: slices.Sorted(maps.Keys(c.Env)), Headers: slices.Sorted(maps.Keys(c.Headers)), Query: query,
		Capabilities: capabilities, Contained: c.Launcher != nil,
	})
	if err != nil {
		panic("upstream: texts and flags always have a JSON form")
	}
	return canon.Digest(raw)
}

func (c *listCache) path(identity string) string {
	return filepath.Join(c.dir, strings.TrimPrefix(identity, "sha256:")[:32]+cacheSuffix)
}

// load returns a server's list as it was last saved. An entry that is damaged, too old or too
// large counts as missing, which is logged. Definitions are validated like new ones.
func (c *listCache) load(config Config) (listing, bool) {
	if c == nil {
		return listing{}, false
	}
	identity := identityOf(config)
	list, err := c.read(c.path(identity), identity, config.ID)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.WarnContext(context.Background(), "a cached tool list is not used",
				slog.String(telemetry.KeyServer, config.ID), slog.Any(telemetry.KeyError, err))
		}
		return listing{}, false
	}
	return list, true
}

func (c *listCache) read(path, identity, serverID string) (listing, error) {
	raw, err := readRegular(path, maxListBytes+maxCacheHeader)
	if err != nil {
		return listing{}, err
	}
	line, body, ok := bytes.Cut(raw, []byte("\n"))
	var header cacheHeader
	if !ok || strictjson.UnmarshalOpen(line, &header) != nil {
		return listing{}, errors.New("the entry has no header")
	}
	switch {
	case header.Format != cacheFormat:
		return listing{}, fmt.Errorf("the entry has the format %d", header.Format)
	case header.Identity != identity:
		return listing{}, errors.New("the entry belongs to another server")
	case c.now().Sub(header.Saved) > maxCacheAge:
		return listing{}, errors.New("the entry is too old")
	case header.Digest != canon.Digest(body):
		return listing{}, errors.New("the entry does not have its digest")
	}
	items, err := splitSizes(body, header.Sizes)
	if err != nil {
		return listing{}, err
	}
	if len(header.Kinds) > len(items) {
		return listing{}, errors.New("the entry does not have its length")
	}
	tools, others := items[:len(items)-len(header.Kinds)], map[catalog.Kind][]json.RawMessage{}
	for i, kind := range header.Kinds {
		others[kind] = append(others[kind], items[len(tools)+i])
	}
	list := listing{ttl: header.TTL, warnings: header.Warnings}
	var warnings []string
	list.tools, warnings = catalog.ParseTools(serverID, tools)
	list.warnings = append(list.warnings, warnings...)
	for _, kind := range catalog.FeatureKinds() {
		features, warnings := catalog.ParseFeatures(serverID, kind, others[kind])
		list.features, list.warnings = append(list.features, features...), append(list.warnings, warnings...)
	}
	list.splitApps()
	return list, nil
}

// splitSizes cuts a body into pieces of the given sizes.
func splitSizes(body []byte, sizes []int) ([]json.RawMessage, error) {
	items := make([]json.RawMessage, 0, len(sizes))
	for _, size := range sizes {
		if size < 0 || size > len(body) {
			return nil, errors.New("the entry does not have its length")
		}
		items = append(items, json.RawMessage(body[:size:size]))
		body = body[size:]
	}
	if len(body) > 0 {
		return nil, errors.New("the entry does not have its length")
	}
	return items, nil
}

// readRegular reads a regular file of at most limit bytes. It follows no
// symbolic link and does not wait at a named pipe.
func readRegular(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("the entry is not a regular file")
	case info.Size() > limit:
		return nil, fmt.Errorf("the entry has %d bytes, more than %d", info.Size(), limit)
	}
	raw, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("the entry has more than %d bytes", limit)
	}
	return raw, err
}

// save stores a server's list. It logs errors, which only cost time at the next start.
func (c *listCache) save(config Config, list listing) {
	if c == nil {
		return
	}
	if err := c.write(config, list); err != nil {
		c.log.WarnContext(context.Background(), "a tool list is not cached",
			slog.String(telemetry.KeyServer, config.ID), slog.Any(telemetry.KeyError, err))
	}
}

func (c *listCache) write(config Config, list listing) error {
	header := cacheHeader{
		Format: cacheFormat, Identity: identityOf(config), Saved: c.now().UTC(), TTL: list.ttl,
		Warnings: list.warnings, Sizes: make([]int, 0, len(list.tools)),
	}
	var body []byte
	for _, tool := range slices.Concat(list.tools, list.features) {
		header.Sizes = append(header.Sizes, len(tool.Raw))
		body = append(body, tool.Raw...)
		if tool.IsRead() {
			header.Kinds = append(header.Kinds, tool.Kind)
		}
	}
	header.Digest = canon.Digest(body)
	line, err := json.Marshal(header)
	if err != nil {
		return err
	}
	if len(line) > maxCacheHeader {
		return fmt.Errorf("the header has %d bytes, more than %d", len(line), maxCacheHeader)
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := store.WriteFile(c.path(header.Identity), slices.Concat(line, []byte("\n"), body), 0o600); err != nil {
		return err
	}
	return c.prune()
}

// prune removes entries that were not saved for long, and the oldest ones
// beyond the limits of the whole cache.
func (c *listCache) prune() error {
	c.pruning.Lock()
	defer c.pruning.Unlock()
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && strings.HasSuffix(entry.Name(), cacheSuffix) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files,
		func(a, b fs.FileInfo) int { return cmp.Compare(b.ModTime().UnixNano(), a.ModTime().UnixNano()) })
	var total int64
	for i, file := range files {
		total += file.Size()
		if i < maxCacheFiles && total <= maxCacheTotal && c.now().Sub(file.ModTime()) <= maxCacheAge {
			continue
		}
		if err := os.Remove(filepath.Join(c.dir, file.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
