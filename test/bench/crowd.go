package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// A crowd is so many runs that are asked for at one time by two callers of `airlock serve`.
const (
	crowdSize = 100
	ofFew     = 10  // runs of one caller; the other one has asked for the rest a moment before
	crowdPart = 100 // one of so many rounds has a crowd
)

// measureCrowd asks for many runs at once, and reports when the last one is answered and how the two callers fare: when
// the pool is at rest, and again when it has grown with the first crowd.
func measureCrowd(ctx context.Context, b *bench) error {
	for _, lang := range languages() {
		var alone sample
		var atRest, grown crowded
		for range max(b.rounds/crowdPart, 1) {
			if err := b.crowds(ctx, lang, &alone, &atRest, &grown); err != nil {
				return err
			}
		}
		b.table.add(newRow("a trivial run alone, over HTTP, "+lang.name, "ms", alone))
		b.table.add(atRest.rows(fmt.Sprintf("each of %d runs asked for at once, %s", crowdSize, lang.name))...)
		b.table.add(grown.rows("each of as many again, after the pool has grown")...)
	}
	return nil
}

// crowded is how long the runs of crowds took, in milliseconds.
type crowded struct{ all, last, lastOfFew sample }

func (c crowded) rows(name string) []row {
	return []row{newRow(name, "ms", c.all), newRow("the last of them", "ms", c.last),
		newRow(fmt.Sprintf("the last of %d that another caller asked for after the others", ofFew), "ms",
			c.lastOfFew).times(c.last, "the last")}
}

// crowds starts a server, and measures a run alone and two crowds.
func (b *bench) crowds(ctx context.Context, lang language, alone *sample, atRest, grown *crowded) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	node, err := b.alone(map[string]any{}, map[string]any{"pool": 2, "queue": crowdSize}, &undo)
	if err != nil {
		return err
	}
	var callers []*face
	tokens := make([]string, 2)
	for i := range tokens {
		if tokens[i], err = node.token(ctx, fmt.Sprint("caller-", i)); err != nil {
			return err
		}
	}
	if err := node.start(ctx, &undo); err != nil {
		return err
	}
	for _, token := range tokens {
		caller, err := node.open(ctx, token, &undo)
		if err != nil {
			return err
		}
		callers = append(callers, caller)
	}
	for _, other := range languages() { // the pool begins
		if err := callers[0].run(ctx, other, other.trivial, nil); err != nil {
			return err
		}
	}
	for _, to := range []*crowded{atRest, grown} {
		if err := settle(ctx, node.command.Process.Pid); err != nil {
			return err
		}
		if to == atRest {
			took, err := callers[0].trivialRun(lang)(ctx)
			if err != nil {
				return err
			}
			*alone = append(*alone, took...)
		}
		if err := to.ask(ctx, lang, callers[0], callers[1]); err != nil {
			return err
		}
	}
	return nil
}

// ask has one caller ask for most of a crowd, and then the other one for the rest.
func (c *crowded) ask(ctx context.Context, lang language, many, few *face) error {
	begun := time.Now()
	asked, ctx := errgroup.WithContext(ctx)
	times := func(caller *face, runs int) sample {
		took := make(sample, runs)
		for n := range took {
			asked.Go(func() error {
				err := caller.run(ctx, lang, lang.trivial, nil)
				took[n] = milliseconds(time.Since(begun))
				return err
			})
		}
		return took
	}
	ofMany := times(many, crowdSize-ofFew)
	rest := times(few, ofFew)
	if err := asked.Wait(); err != nil {
		return err
	}
	c.all = append(append(c.all, ofMany...), rest...)
	c.last = append(c.last, max(ofMany.quantile(1), rest.quantile(1)))
	c.lastOfFew = append(c.lastOfFew, rest.quantile(1))
	return nil
}
