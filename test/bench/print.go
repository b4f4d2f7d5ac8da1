package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/cleanup"
)

// printed are programs that print ten thousand lines as models write them, and
// return how long they took, in milliseconds.
var printed = map[string]string{
	"python": "import time\nbegan = time.perf_counter()\nfor i in range(10000):\n    print(\"line\", i)\n" +
		"result = (time.perf_counter() - began) * 1000\n",
	"node": "const began = performance.now();\nfor (let i = 0; i < 10000; i++) console.log(\"line\", i);\n" +
		"globalThis.result = performance.now() - began;\n",
}

// measurePrinting takes runs from the pool that print a lot, in turn with runs
// that do nothing.
func measurePrinting(ctx context.Context, b *bench) (err error) {
	var undo cleanup.Stack
	defer func() { err = errors.Join(err, undo.Run()) }()
	airlock, err := b.openFace(ctx, pooled(2), &undo)
	if err != nil {
		return err
	}
	loops := map[string]sample{}
	var ways []way
	for _, lang := range languages() {
		ways = append(ways, way{name: "nothing " + lang.id, take: airlock.trivialRun(lang)},
			way{name: lang.id, take: func(ctx context.Context) (sample, error) {
				var loop float64
				took, err := timed(func() error { return airlock.run(ctx, lang, printed[lang.id], &loop) })
				loops[lang.id] = append(loops[lang.id], loop)
				return took, err
			}})
	}
	taken, err := inTurn(ctx, b.rounds, roundPause, ways...)
	if err != nil {
		return err
	}
	for _, lang := range languages() {
		b.table.add(newRow(fmt.Sprintf("10,000 printed lines, %s, from the pool", lang.name), "ms", taken[lang.id]).
			aims("≤ +30").adds(taken["nothing "+lang.id], "a program that does nothing"),
			newRow("the loop that prints them, inside", "ms", loops[lang.id][warmUps:]))
	}
	return nil
}
