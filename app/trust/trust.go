// Package trust remembers which configuration a person has confirmed: the content of its
// file and of its policy files, by the file's path. A configuration that changed is
// compared with the one that was confirmed, and shown to a person as a difference.
package trust

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/visible"
	"github.com/airlock-mcp/airlock/policies"
)

// Content is a configuration's file with its policy files, as they were read.
type Content struct {
	File     string `json:"file"` // the absolute path
	Text     []byte `json:"text"`
	Policies []Part `json:"policies,omitempty"`
}

// Part is one policy file.
type Part struct {
	Name string `json:"name"`
	Text []byte `json:"text"`
}

// ContentOf returns the content of a configuration that was read from a file.
func ContentOf(c *config.Config, files []policies.File) Content {
	content := Content{File: c.File, Text: c.Text()}
	if len(c.Policies) > 0 { // else they are those that Airlock ships
		for _, file := range files {
			content.Policies = append(content.Policies, Part{file.Name, file.Source})
		}
	}
	return content
}

// Digest returns a digest of the content.
func (c Content) Digest() string {
	text, err := json.Marshal(c)
	if err != nil {
		panic(err) // bytes and strings can be marshalled
	}
	return canon.Digest(text)
}

// IsCurrent reports whether the files still have the content.
func (c Content) IsCurrent() bool {
	for _, part := range append([]Part{{c.File, c.Text}}, c.Policies...) {
		if text, err := store.ReadFile(part.Name); err != nil || !bytes.Equal(text, part.Text) {
			return false
		}
	}
	return true
}

// files returns the policy files.
func (c Content) files() []policies.File {
	if len(c.Policies) == 0 {
		return []policies.File{policies.Default()}
	}
	var files []policies.File
	for _, part := range c.Policies {
		files = append(files, policies.File{Name: part.Name, Source: part.Text})
	}
	return files
}

// Difference returns a unified diff from one content to another. Characters that could hide
// something are escaped. The diff may contain credentials.
func Difference(before, after Content) []byte {
	var out bytes.Buffer
	out.Write(diff.Diff(before.File+" (confirmed)", shown(before.Text), after.File+" (now)", shown(after.Text)))
	was, names := map[string][]byte{}, []string{}
	for _, part := range before.Policies {
		was[part.Name] = part.Text
		names = append(names, part.Name)
	}
	for _, part := range after.Policies {
		out.Write(diff.Diff(part.Name+" (confirmed)", shown(was[part.Name]), part.Name+" (now)", shown(part.Text)))
		delete(was, part.Name)
	}
	for _, name := range names {
		if text, removed := was[name]; removed {
			out.Write(diff.Diff(name+" (confirmed)", shown(text), name+" (not used any more)", nil))
		}
	}
	return out.Bytes()
}

func shown(text []byte) []byte {
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(bytes.Clone(text), '\n')
	}
	return []byte(visible.Lines(string(text)))
}

// Widens returns why after may permit more than before: keys of the configuration, and
// policies. It is empty only if it is certain that nothing more is permitted. env is that
// of config.Load. An earlier content that cannot be read any more counts as narrower.
func Widens(before, after Content, env func(string) (string, bool)) []string {
	was, err := config.Read(before.File, before.Text, env)
	if err != nil {
		return []string{"the earlier configuration cannot be read: " + err.Error()}
	}
	is, err := config.Read(after.File, after.Text, env)
	if err != nil {
		return []string{"the configuration cannot be read: " + err.Error()}
	}
	reasons := config.Widens(was, is)
	rules, err := policies.Widens(before.files(), after.files())
	if err != nil {
		return append(reasons, err.Error())
	}
	return append(reasons, rules...)
}

// Book is the contents that were confirmed, in a directory of the state. It is safe for
// concurrent use, also by several processes.
type Book struct{ dir string }

// Open returns the book of a state directory, which need not exist.
func Open(home string) *Book { return &Book{store.Trust(home)} }

// entry is a file of the book.
type entry struct {
	Content
	Time time.Time `json:"time"`
	By   string    `json:"by"`
}

// Entry returns the path at which the content of a configuration is kept.
func (b *Book) Entry(file string) string {
	return filepath.Join(b.dir, fmt.Sprintf("%x.json", sha256.Sum256([]byte(file))))
}

// Find returns the content that was confirmed last for a configuration's file, and
// whether there is one.
func (b *Book) Find(file string) (Content, bool, error) {
	text, err := store.ReadFile(b.Entry(file))
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, false, nil
	}
	var e entry
	if err == nil {
		err = strictjson.Unmarshal(text, &e)
	}
	if err == nil && e.File != file {
		err = errors.New("it is about another file")
	}
	if err != nil {
		return Content{}, false, fmt.Errorf("reading what was confirmed of %q: %w", file, err)
	}
	return e.Content, true, nil
}

// Keep stores a content as the confirmed one of its file.
func (b *Book) Keep(c Content, by string) error {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(entry{c, time.Now().UTC(), by})
	if err != nil {
		return err
	}
	return store.WriteFile(b.Entry(c.File), text, 0o600)
}

// Edit calls f while no other process changes the book or, by Edit, a configuration that it confirms.
func (b *Book) Edit(ctx context.Context, f func() error) (err error) {
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return err
	}
	lock, err := store.Acquire(ctx, filepath.Join(b.dir, "lock"), store.Exclusive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return f()
}

// Forget removes the content of a file, and reports whether there was one.
func (b *Book) Forget(file string) (bool, error) {
	err := os.Remove(b.Entry(file))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// IsConfirmed reports whether a content is the confirmed one of its file.
func (b *Book) IsConfirmed(c Content) (bool, error) {
	kept, found, err := b.Find(c.File)
	return found && kept.Digest() == c.Digest(), err
}

// IsFixed reports whether this process's user cannot change any file of a content, as if
// root wrote it and the daemon has another user. Such files need no confirmation.
func IsFixed(c Content) bool {
	if os.Geteuid() == 0 {
		return false
	}
	paths := []string{c.File}
	for _, part := range c.Policies {
		paths = append(paths, part.Name)
	}
	return !slices.ContainsFunc(paths, store.IsWritable)
}
