package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// verbRounds is how often each way is taken: each starts a process.
const verbRounds = 50

// measureStart takes `airlock run` of a program that does nothing, from the start of the
// process to its end, alone and with a daemon, in turn with `runsc run` of the same image.
// Beside it stands `airlock version`, which does nothing else than start.
func measureStart(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	var ways []way
	for _, lang := range languages() {
		bundle, err := b.openBundle(lang, &undo)
		if err != nil {
			return err
		}
		ways = append(ways, way{name: "runsc " + lang.id, take: bundle.run})
	}
	alone, err := b.newHome("alone", &undo)
	if err != nil {
		return err
	}
	served, err := b.newHome("served", &undo)
	if err != nil {
		return err
	}
	if err := served.verb(ctx, "serve", "--detach", "--listen", "127.0.0.1:0"); err != nil {
		return err
	}
	undo.Add(func() error { return served.verb(context.WithoutCancel(ctx), "stop") })
	for _, lang := range languages() {
		for _, h := range []*home{alone, served} {
			ways = append(ways, way{name: h.name + " " + lang.id, take: func(ctx context.Context) (sample, error) {
				return timed(func() error { return h.verb(ctx, "run", h.programs[lang.id]) })
			}})
		}
	}
	ways = append(ways, way{name: "version", take: func(ctx context.Context) (sample, error) {
		return timed(func() error { return alone.verb(ctx, "version") })
	}})
	taken, err := inTurn(ctx, min(b.rounds, verbRounds), roundPause, ways...)
	if err != nil {
		return err
	}
	b.table.add(newRow("`airlock version`, from start to end of the process", "ms", taken["version"]))
	for _, lang := range languages() {
		runsc := taken["runsc "+lang.id]
		b.table.add(newRow(ofRunsc(lang)+", the same image", "ms", runsc),
			newRow("`airlock run` of a trivial "+lang.name+" program, alone", "ms", taken["alone "+lang.id]).aims(
				"≤ 150").times(runsc, "`runsc run`"),
			newRow("the same with a daemon", "ms", taken["served "+lang.id]).aims("≤ 15").times(
				runsc, "`runsc run`").times(taken["version"], "`airlock version`"))
	}
	return nil
}

// home is a state directory with a configuration and a trivial program in each language.
type home struct {
	name, program, directory string
	programs                 map[string]string // by language
}

func (b *bench) newHome(name string, undo *cleanup.Stack) (*home, error) {
	directory, err := stateDirectory(b.home, name+"-", undo)
	if err != nil {
		return nil, err
	}
	h := &home{name, b.bin("airlock"), directory, map[string]string{}}
	errs := []error{
		os.WriteFile(filepath.Join(directory, "airlock.yaml"), []byte("{}\n"), 0o600),
	}
	for _, lang := range languages() {
		h.programs[lang.id] = filepath.Join(directory,
			"trivial."+map[string]string{"python": "py", "node": "js"}[lang.id])
		errs = append(errs, os.WriteFile(h.programs[lang.id], []byte(lang.trivial), 0o600))
	}
	return h, errors.Join(errs...)
}

// verb runs airlock, which has to exit with 0.
func (h *home) verb(ctx context.Context, args ...string) error {
	if args[0] != "version" {
		args = append(args, "--config", filepath.Join(h.directory, "airlock.yaml"))
	}
	cmd := exec.CommandContext(ctx, h.program, args...)
	cmd.Env = append(os.Environ(), "AIRLOCK_HOME="+h.directory)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("airlock %s: %w\n%s", strings.Join(args, " "), err, &said)
	}
	return nil
}
