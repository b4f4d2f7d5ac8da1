package config

import (
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/airlock-mcp/airlock/images"
)

// Images configures the packages that are installed in addition to those of every image.
type Images struct {
	Python Packages
	Node   Packages
	Lock   string // absolute path of the file that names the packages' files; empty means beside the configuration
}

// Packages are the requested packages of one image.
type Packages struct {
	Packages []string // each a name with optional versions; sorted, without duplicates
}

// Wanted returns the requested packages of the image for the language.
func (i Images) Wanted(language string) []string {
	return map[string][]string{"python": i.Python.Packages, "node": i.Node.Packages}[language]
}

// LockFile returns the path of the lock file, or "" if nothing is configured.
func (c *Config) LockFile() string {
	if c.Images.Lock != "" || c.File == "" {
		return c.Images.Lock
	}
	return strings.TrimSuffix(c.File, filepath.Ext(c.File)) + ".lock"
}

func (d *decoder) imagesFields(i *Images) []field {
	language := func(name string, to *Packages) func(n *yaml.Node, path string) error {
		return func(n *yaml.Node, path string) error { return d.object(n, path, d.packagesFields(name, to)) }
	}
	return []field{
		{key: "python", read: language("python", &i.Python)},
		{key: "node", read: language("node", &i.Node)},
		{key: "lock", read: d.path(&i.Lock)},
	}
}

func (d *decoder) packagesFields(language string, to *Packages) []field {
	return []field{{key: "packages", read: func(n *yaml.Node, path string) error {
		to.Packages = nil
		err := d.items(n, path, func(n *yaml.Node, path string) error {
			requirement, err := d.text(n, path)
			if err != nil {
				return err
			}
			if err := images.CheckRequirement(language, requirement); err != nil {
				return d.fail(n, "write names of packages; addresses, paths and options are not taken", "%s: %v", path,
					err)
			}
			to.Packages = append(to.Packages, requirement)
			return nil
		})
		slices.Sort(to.Packages)
		to.Packages = slices.Compact(to.Packages)
		if err == nil && len(to.Packages) > images.MaxWanted {
			err = d.fail(n, "packages that others need come along by themselves", "%s has %d packages, more than %d",
				path, len(to.Packages), images.MaxWanted)
		}
		return err
	}}}
}

// ExtraPackages returns the packages that the configuration adds to the image of a language, as the lock
// file names them. If they are not locked, the error is images.ErrUnlocked.
func (c *Config) ExtraPackages(language string) (images.Extra, error) {
	wanted := c.Images.Wanted(language)
	if len(wanted) == 0 {
		return images.Extra{}, nil
	}
	lock, err := images.ReadPackageLock(c.LockFile())
	if err != nil {
		return images.Extra{}, err
	}
	return lock.Extra(language, wanted)
}
