// Package integrity compares an installation with its seal, a file with the digests of the program, the configuration,
// the policies and the images. It also finds startup hooks: code that an interpreter or the dynamic loader would run
// before a program, see package startuphooks.
package integrity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/startuphooks"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Report is the result of checking an installation before its state is opened: hooks in its
// images and differences from its seal.
type Report struct {
	startuphooks.Result
	Variables []string `json:"variables"`      // of the environment, that load code into programs
	Seal      string   `json:"seal,omitempty"` // the path of the seal; empty: nothing is sealed
	Changed   []string `json:"changed"`        // differences from the seal, as sentences
}

// Seal has the SHA-256 digests of what was installed, as "sha256:…".
type Seal struct {
	Made    time.Time         `json:"made"`
	Program string            `json:"program"`
	Files   map[string]string `json:"files"`  // configuration and policies, by their paths
	Images  map[string]string `json:"images"` // by their names

	// FileSystems are the files that sandboxes run from, by the names of their images.
	FileSystems map[string]string `json:"file_systems,omitempty"`
}

// systemSeal is the path of the administrator's seal. It has priority over the seal in the state
// directory, which the user who runs Airlock can change.
const systemSeal = "/etc/airlock/installed.json"

const sealFile = "installed.json"

// maxSeal bounds the bytes of a seal that are read.
const maxSeal = 1 << 20

// Check checks an installation. environ is the environment to check, or nil. If thorough
// is set, it reads whole images, which takes seconds.
func Check(ctx context.Context, c *config.Config, environ []string, thorough bool) (Report, error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return Report{}, err
	}
	i := Report{Variables: startuphooks.Variables(environ), Changed: []string{}}
	results, built, files := []startuphooks.Result{}, map[string]string{}, map[string]string{}
	all := installedImages(c, directories.Home)
	changed := make([]error, len(all)) // nil: the image is as it was built, or was not read
	var reading errgroup.Group         // whole images
	reading.SetLimit(runtime.GOMAXPROCS(0))
	for n, installed := range all {
		image, err := installed.open()
		if errors.Is(err, images.ErrNotBuilt) || errors.Is(err, images.ErrStale) || errors.Is(err, images.ErrUnlocked) {
			continue // opening it for a sandbox fails with advice
		}
		if err != nil { // it is not used
			if thorough {
				changed[n] = err
			}
			continue
		}
		built[installed.name] = image.Digest
		if files[installed.name], err = images.FileSystemDigest(image.RootFS); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			i.Changed = append(i.Changed, fmt.Sprintf(
				"the root file system of the image %q cannot be read: %v", installed.name, err))
		}
		results = append(results, startuphooks.Root(image.RootFS))
		reading.Go(func() error {
			if thorough {
				changed[n] = images.Verify(ctx, image)
			}
			return image.Close()
		})
	}
	if err := errors.Join(reading.Wait(), ctx.Err()); err != nil {
		return i, err
	}
	for n, err := range changed {
		if err != nil {
			i.Changed = append(i.Changed, fmt.Sprintf("the image %q is not what was built: %v", all[n].name, err))
		}
	}
	i.Result = startuphooks.All(results...)
	sealed, err := readSeal(&i, directories.Home)
	if err != nil {
		return i, err
	}
	if sealed != nil {
		now, err := sealOf(c, built, files)
		if err != nil {
			return i, err
		}
		i.Changed = append(i.Changed, sealed.differences(now)...)
	}
	if len(i.Changed)+len(i.Variables) > 0 {
		i.Verified, i.Status = false, startuphooks.Compromised
	}
	return i, nil
}

// installedImage is an image that the configuration uses.
type installedImage struct {
	name string
	open func() (images.Image, error)
}

// installedImages returns all images, and those with the packages that are configured.
func installedImages(c *config.Config, home string) []installedImage {
	var all []installedImage
	for _, definition := range images.List() {
		name, language := definition.Name, definition.Language
		all = append(all, installedImage{name, func() (images.Image, error) { return images.Open(home, name) }})
		if language == "" || len(c.Images.Wanted(language)) == 0 {
			continue
		}
		all = append(all, installedImage{name + " with packages", func() (images.Image, error) {
			extra, err := c.ExtraPackages(language)
			if err != nil {
				return images.Image{}, err
			}
			return images.OpenWith(home, name, extra)
		}})
	}
	return all
}

// Err returns why nothing may be started, or nil.
func (i Report) Err() error {
	if i.Verified {
		return nil
	}
	var reasons []string
	advice := "airlock integrity check has details"
	if len(i.Hooks)+len(i.Errors) > 0 {
		reasons = append(append(reasons, i.Message), i.Hooks...)
		advice = "build the images anew: `airlock images build`; " + advice
	}
	if len(i.Changed) > 0 {
		reasons = append(reasons, i.Changed...)
		advice = "if the change is yours, `airlock integrity seal` accepts it; " + advice
	}
	if n := i.Variables; len(n) > 0 {
		reasons = append(reasons, "the environment has "+strings.Join(n, ", ")+
			", by which other code is loaded into programs")
		advice = "start Airlock without these variables: env -u " + strings.Join(n, " -u ") + " airlock …; " + advice
	}
	return &setup.Error{Err: fmt.Errorf("environment integrity verification failed: %s", strings.Join(reasons, "; ")),
		Advice: advice}
}

// MakeSeal writes the seal of the installation to path, by default in the state directory. An image that is built
// later is a difference from the seal. It returns the path.
func MakeSeal(ctx context.Context, c *config.Config, path string) (string, error) {
	directories, err := setup.FindDirectories(c)
	if err != nil {
		return "", err
	}
	built, files := map[string]string{}, map[string]string{}
	for _, installed := range installedImages(c, directories.Home) {
		image, err := installed.open()
		if errors.Is(err, images.ErrNotBuilt) {
			continue
		}
		if err != nil {
			return "", setup.Advise(err)
		}
		built[installed.name] = image.Digest
		err = images.Verify(ctx, image)
		if err == nil {
			files[installed.name], err = fileSystemOf(image)
		}
		if err = errors.Join(err, image.Close()); err != nil {
			return "", err
		}
	}
	seal, err := sealOf(c, built, files)
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(seal, "", "  ")
	if err != nil {
		return "", err
	}
	if path == "" {
		path = filepath.Join(directories.Home, sealFile)
		if err := os.MkdirAll(directories.Home, 0o711); err != nil {
			return "", err
		}
	}
	return path, store.WriteFile(path, append(text, '\n'), 0o644)
}

// fileSystemOf returns the digest of the file that sandboxes of an image run from. It
// makes that file if it does not exist.
func fileSystemOf(image images.Image) (string, error) {
	digest, err := images.FileSystemDigest(image.RootFS)
	if errors.Is(err, fs.ErrNotExist) {
		if err := images.MakeFileSystem(image.RootFS); err != nil {
			return "", err
		}
		return images.FileSystemDigest(image.RootFS)
	}
	return digest, err
}

// sealOf returns the installation as it is now.
func sealOf(c *config.Config, built, files map[string]string) (Seal, error) {
	s := Seal{Made: time.Now().UTC().Truncate(time.Second), Files: map[string]string{}, Images: built,
		FileSystems: files}
	program, err := os.Executable()
	if err == nil {
		s.Program, err = digestOfFile(program)
	}
	if err != nil {
		return s, fmt.Errorf("reading the program itself: %w", err)
	}
	paths := c.Policies
	if c.File != "" {
		paths = append([]string{c.File}, paths...)
	}
	for _, path := range paths {
		if s.Files[path], err = digestOfFile(path); err != nil {
			return s, err
		}
	}
	return s, nil
}

func digestOfFile(path string) (string, error) {
	content, err := store.ReadFile(path)
	if err != nil {
		return "", err
	}
	return canon.Digest(content), nil
}

// readSeal returns the seal in force; nil if nothing is sealed.
func readSeal(i *Report, home string) (*Seal, error) {
	for _, path := range []string{systemSeal, filepath.Join(home, sealFile)} {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && (!info.Mode().IsRegular() || info.Size() > maxSeal) {
			err = fmt.Errorf("%q is not a seal", path)
		}
		var text []byte
		if err == nil {
			text, err = store.ReadFile(path)
		}
		var s Seal
		if err == nil {
			err = strictjson.UnmarshalOpen(text, &s)
		}
		if err != nil { // without a seal nothing can be compared
			return nil, &setup.Error{Err: fmt.Errorf("reading what was installed: %w", err),
				Advice: "airlock integrity seal"}
		}
		i.Seal = path
		return &s, nil
	}
	return nil, nil
}

// differences returns a sentence for each difference between the seal and the installation.
// It ignores sealed files and images that are not in use.
func (s *Seal) differences(now Seal) []string {
	var changed []string
	if s.Program != now.Program {
		changed = append(changed, "the program airlock is not the one that was sealed")
	}
	for _, path := range slices.Sorted(maps.Keys(now.Files)) {
		switch sealed, known := s.Files[path]; {
		case !known:
			changed = append(changed, fmt.Sprintf("%s was not sealed", path))
		case sealed != now.Files[path]:
			changed = append(changed, fmt.Sprintf("%s is not what was sealed", path))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now.Images)) {
		if s.Images[name] != now.Images[name] {
			changed = append(changed, fmt.Sprintf("the image %q is not the one that was sealed", name))
		}
		if sealed := s.FileSystems[name]; sealed != "" && sealed != now.FileSystems[name] {
			changed = append(changed, fmt.Sprintf(
				"the root file system of the image %q is not the one that was sealed", name))
		}
	}
	return changed
}
