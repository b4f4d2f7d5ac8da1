package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/airlock-mcp/airlock/app/system"
	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
)

type imagesVerbs struct {
	Build imagesBuildVerb `cmd:"" help:"Build the sandbox images, or one of them."`
	List  imagesListVerb  `cmd:"" help:"List the images and whether they are built."`
}

type imagesBuildVerb struct {
	Mirror     string   `placeholder:"URL" help:"Where Debian's packages come from; by default Debian's own place."`
	Fresh      bool     `help:"Fetch everything again."`
	UpdateLock string   `placeholder:"FILE" help:"Build nothing; write what images would be made of now to FILE."`
	JSON       bool     `name:"json" help:"Print JSON."`
	Names      []string `arg:"" optional:"" help:"python or node; all by default."`
}

// Run builds images. What is up to date already is left as it is.
func (v *imagesBuildVerb) Run(ctx context.Context, s *streams) error {
	if v.UpdateLock != "" {
		return v.updateLock(ctx, s)
	}
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	names := v.Names
	if len(names) == 0 {
		for _, definition := range images.List() {
			names = append(names, definition.Name)
		}
	}
	made := []builtImage{}
	for _, name := range names {
		built, err := images.Build(ctx, images.BuildOptions{Home: home, Name: name, Progress: s.err, Mirror: v.Mirror, Fresh: v.Fresh})
		if err != nil {
			return system.Advise(err)
		}
		for _, warning := range built.Warnings {
			fmt.Fprintf(s.err, "airlock: %s\n", warning)
		}
		made = append(made, builtImage{built.Name, built.Digest, slices.Concat([]string{}, built.Warnings)})
		if !v.JSON {
			fmt.Fprintf(s.out, "%s@%s\n", built.Name, built.Digest)
		}
	}
	if v.JSON {
		return printLine(s.out, map[string]any{"images": made})
	}
	return nil
}

// builtImage is what --json prints for one image.
type builtImage struct {
	Name     string   `json:"name"`
	Digest   string   `json:"digest"`
	Warnings []string `json:"warnings"`
}

func (v *imagesBuildVerb) updateLock(ctx context.Context, s *streams) error {
	lock, err := images.UpdateLock(ctx, v.Mirror, s.err)
	if err != nil {
		return system.Advise(err)
	}
	if err := os.WriteFile(v.UpdateLock, lock, 0o644); err != nil {
		return fmt.Errorf("writing the lock: %w", err)
	}
	return nil
}

type imagesListVerb struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// listed is what --json prints for one image.
type listed struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Digest  string `json:"digest,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Run lists images.
func (v *imagesListVerb) Run(s *streams) error {
	home, err := store.Home(os.Getenv)
	if err != nil {
		return err
	}
	list := []listed{}
	for _, definition := range images.List() {
		item := listed{Name: definition.Name, Summary: definition.Summary}
		if image, err := images.Open(home, definition.Name); err != nil {
			item.Problem = err.Error()
		} else {
			item.Digest = image.Digest
			if err := image.Close(); err != nil {
				return err
			}
		}
		list = append(list, item)
	}
	if v.JSON {
		return printLine(s.out, map[string]any{"images": list})
	}
	var t table
	for _, item := range list {
		state := cell{item.Digest, green}
		if item.Problem != "" {
			state = cell{item.Problem, red}
		}
		t.add(cell{item.Name, bold}, state, cell{item.Summary, plain})
	}
	return t.write(s.out)
}
