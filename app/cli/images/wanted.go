package images

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/config"
	"github.com/airlock-mcp/airlock/app/contained"
	"github.com/airlock-mcp/airlock/images"
)

// wantedImage is an image to build: one for runs, or that of a contained server.
type wantedImage struct {
	image  string        // "node", "python" or "verify"
	server config.Server // without an ID for an image of runs
}

// name is the name by which the image can be built alone.
func (w wantedImage) name() string { return cmp.Or(w.server.ID, w.image) }

// suffix names the server of an image, for a line of output.
func (w wantedImage) suffix() string {
	if w.server.ID == "" {
		return ""
	}
	return " for the server " + verb.Clean(w.server.ID)
}

// wanted returns the images to build.
func (v *Build) wanted(c *config.Config, home string) ([]wantedImage, error) {
	servers := map[string]wantedImage{}
	var all []wantedImage
	for _, server := range c.Servers {
		if server.Settings.Sandbox == nil {
			continue
		}
		program, err := server.Program()
		if err != nil {
			return nil, err
		}
		servers[server.ID] = wantedImage{program.Language, server}
		all = append(all, servers[server.ID])
	}
	var list []wantedImage
	for _, name := range v.Names {
		w, ofServer := servers[name]
		if _, err := images.Find(name); err == nil || !ofServer {
			w = wantedImage{image: name}
		}
		list = append(list, w)
	}
	if len(v.Names) > 0 {
		return list, nil
	}
	for _, name := range usualImages(home) {
		list = append(list, wantedImage{image: name})
	}
	return append(list, all...), nil
}

// extra returns the packages that the configuration adds to an image. If the lock file has other
// packages, or an update is requested, they are resolved and locked first.
func (v *Build) extra(ctx context.Context, c *config.Config, w wantedImage, s *verb.Streams) (images.Extra, error) {
	packages := c.Images.Wanted(w.image)
	locked := func() (images.Extra, error) { return c.ExtraPackages(w.image) }
	if w.server.ID != "" {
		program, err := w.server.Program()
		if err != nil {
			return images.Extra{}, err
		}
		packages = program.Packages
		locked = func() (images.Extra, error) {
			_, extra, err := contained.Extra(w.server, c.LockFile())
			return extra, err
		}
	}
	if !v.Upgrade || len(packages) == 0 {
		if extra, err := locked(); !errors.Is(err, images.ErrUnlocked) {
			return extra, err
		}
	}
	lock, err := images.ReadPackageLock(c.LockFile())
	if err != nil {
		return images.Extra{}, err
	}
	part := lock
	if w.server.ID != "" {
		part = lock.Servers[w.server.ID]
	}
	part, err = part.Resolve(ctx, w.image, packages, images.ResolveOptions{Progress: s.Err, Index: v.Index,
		Registry: v.Registry, Upgrade: v.Upgrade})
	if err != nil {
		return images.Extra{}, err
	}
	if w.server.ID != "" {
		part = lock.WithServer(w.server.ID, part)
	}
	if err := part.Write(c.LockFile()); err != nil {
		return images.Extra{}, err
	}
	fmt.Fprintf(s.Err, "airlock: the packages are locked in %s\n", c.LockFile())
	return locked()
}
