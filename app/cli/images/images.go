// Package images has the verbs that build and list sandbox images.
package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/airlock-mcp/airlock/app/cli/verb"
	"github.com/airlock-mcp/airlock/app/setup"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/visible"
)

// Verbs are the verbs of airlock images.
type Verbs struct {
	Build Build          `cmd:"" help:"Build the sandbox images, or one of them."`
	List  imagesListVerb `cmd:"" help:"List the images and whether they are built."`
}

// Build is airlock images build.
type Build struct {
	verb.ConfigFlag
	Mirror     string   `placeholder:"URL" help:"Where Debian's packages come from; by default Debian's own place."`
	Index      string   `placeholder:"URL" help:"Where Python packages come from; by default what the settings of pip say."`
	Registry   string   `placeholder:"URL" help:"Where npm packages come from; by default what the settings of npm say."`
	Fresh      bool     `help:"Fetch everything again."`
	Upgrade    bool     `help:"Take the newest versions of the packages that the configuration asks for."`
	UpdateLock string   `placeholder:"FILE" help:"Build nothing; write what Airlock's own images would be made of now to FILE."`
	JSON       bool     `name:"json" help:"Print JSON."`
	Names      []string `arg:"" optional:"" help:"python, node, verify or a contained server; by default python, node, what was built before and all contained servers."`
}

// Run builds images. Images that are up to date are not built again.
func (v *Build) Run(ctx context.Context, s *verb.Streams) error {
	if v.UpdateLock != "" {
		return v.updateLock(ctx, s)
	}
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	c, err := v.LoadPlaces()
	if err != nil {
		return err
	}
	wanted, err := v.wanted(c, home)
	if err != nil {
		return err
	}
	made := []builtImage{}
	names := make([]string, len(wanted))
	for i, w := range wanted {
		names[i] = w.name()
	}
	next := 0
	failed := buildEach(ctx, names, func(string) error {
		w := wanted[next]
		next++
		extra, err := v.extra(ctx, c, w, s)
		if err != nil {
			return err
		}
		built, err := images.Build(ctx, images.BuildOptions{
			Home: home, Name: w.image, Progress: s.Err, Mirror: v.Mirror, Index: v.Index, Registry: v.Registry,
			Fresh: v.Fresh, Extra: extra,
		})
		if err != nil {
			return err
		}
		for _, warning := range built.Warnings {
			fmt.Fprintf(s.Err, "airlock: %s\n", warning)
		}
		made = append(made, builtImage{built.Name, w.server.ID, built.Digest, slices.Concat([]string{}, built.Warnings),
			extra.Wanted, built.Size})
		if !v.JSON {
			fmt.Fprintf(s.Out, "%s@%s%s\n", built.Name, built.Digest, w.suffix())
		}
		return nil
	})
	if slices.ContainsFunc(made, func(b builtImage) bool { return b.Server != "" }) {
		fmt.Fprintln(s.Err, "airlock: a contained server keeps its image until `airlock servers restart NAME`")
	}
	if v.JSON {
		return errors.Join(failed, verb.PrintLine(s.Out, map[string]any{"images": made}))
	}
	return failed
}

// buildEach calls build for all images, even if some of them fail. The error has the failures and a
// hint.
func buildEach(ctx context.Context, names []string, build func(name string) error) error {
	var failed []string
	var all error
	for _, name := range names {
		if err := build(name); err != nil {
			failed, all = append(failed, visible.Word(name)), errors.Join(all, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	all = setup.Advise(all)
	var advised interface{ Hint() string }
	if all == nil || errors.As(all, &advised) {
		return all
	}
	hint := "`airlock images build " + strings.Join(failed, " ") + "` tries again"
	if len(failed) < len(names) {
		hint += "; the other images are built"
	}
	return verb.WithHint(all, hint, verb.ExitFailed)
}

// usualImages returns the images that run code, and those that were built before, because a
// newer Airlock has to update them.
func usualImages(home string) []string {
	built := images.Records(home)
	var names []string
	for _, definition := range images.List() {
		wasBuilt := slices.ContainsFunc(built, func(r images.Record) bool { return r.Name == definition.Name })
		if definition.Language != "" || wasBuilt {
			names = append(names, definition.Name)
		}
	}
	return names
}

// builtImage is one image in the output of --json.
type builtImage struct {
	Name     string   `json:"name"`
	Server   string   `json:"server,omitempty"` // the contained server that the image is for
	Digest   string   `json:"digest"`
	Warnings []string `json:"warnings"`
	Packages []string `json:"packages,omitempty"` // that the configuration asks for
	Bytes    int64    `json:"bytes"`              // of all layers
}

func (v *Build) updateLock(ctx context.Context, s *verb.Streams) error {
	lock, err := images.UpdateLock(ctx, v.Mirror, v.Index, s.Err)
	if err != nil {
		return setup.Advise(err)
	}
	if err := os.WriteFile(v.UpdateLock, lock, 0o644); err != nil {
		return fmt.Errorf("writing the lock: %w", err)
	}
	return nil
}

type imagesListVerb struct {
	verb.ConfigFlag
	JSON bool `name:"json" help:"Print JSON."`
}

// listed is one image in the output of --json.
type listed struct {
	Name     string   `json:"name"`
	Summary  string   `json:"summary"`
	Packages []string `json:"packages,omitempty"` // that the configuration asks for
	Digest   string   `json:"digest,omitempty"`
	Bytes    int64    `json:"bytes,omitempty"` // of all layers
	Problem  string   `json:"problem,omitempty"`
}

// Run lists images.
func (v *imagesListVerb) Run(s *verb.Streams) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	c, err := v.LoadPlaces()
	if err != nil {
		return err
	}
	list := []listed{}
	for _, definition := range images.List() {
		item := listed{Name: definition.Name, Summary: definition.Summary,
			Packages: c.Images.Wanted(definition.Language)}
		if image, err := verb.OpenConfigured(c, home, definition); err != nil {
			item.Problem = err.Error()
		} else {
			item.Digest, item.Bytes = image.Digest, image.Record.Size
			if err := image.Close(); err != nil {
				return err
			}
		}
		list = append(list, item)
	}
	if v.JSON {
		return verb.PrintLine(s.Out, map[string]any{"images": list})
	}
	var t verb.Table
	for _, item := range list {
		state, size := verb.Text(item.Digest, verb.Green), verb.Text(verb.ShowBytes(item.Bytes), verb.Plain)
		if item.Problem != "" {
			state, size = verb.Text(item.Problem, verb.Red), verb.Text("", verb.Plain)
		}
		summary := item.Summary
		if len(item.Packages) > 0 {
			summary += ", with " + strings.Join(item.Packages, ", ")
		}
		t.Add(verb.Text(item.Name, verb.Bold), state, size, verb.Text(summary, verb.Plain))
	}
	return t.Write(s.Out)
}
