// Command load sends requests at a fixed rate to a running `airlock serve` that also has a
// number of idle connections. It reports how many answers were right, how many asked to
// retry, how long they took, and the daemon's resource usage. An answer is right if it
// belongs to the request and its caller.
//
//	airlock serve --detach
//	for n in 1 2 3 4; do airlock tokens create load-$n; done | go run ./test/load -url http://127.0.0.1:7823
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() { os.Exit(run()) }

func run() int {
	url := flag.String("url", "http://127.0.0.1:7823", "the URL of the daemon")
	rate := flag.Int("rate", 1000, "requests a second")
	duration := flag.Duration("for", 10*time.Second, "how long they are sent")
	idle := flag.Int("idle", 0, "connections that do nothing, half of which have asked once")
	pid := flag.Int("pid", 0, "the daemon's process, of which memory and processor time are told")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := load(ctx, *url, *rate, *duration, *idle, *pid); err != nil {
		fmt.Fprintf(os.Stderr, "load: %v\nhint: go doc ./test/load\n", err)
		return 1
	}
	return 0
}

func load(ctx context.Context, url string, rate int, duration time.Duration, idle, pid int) error {
	var callers []*caller
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		made, err := newCaller(ctx, url, strings.TrimSpace(lines.Text()), len(callers))
		if err != nil {
			return err
		}
		callers = append(callers, made)
	}
	if len(callers) == 0 {
		return fmt.Errorf("stdin has no tokens, one in a line")
	}
	before, err := useOf(pid)
	if err != nil {
		return err
	}
	waiting, err := open(url, idle)
	if err != nil {
		return err
	}
	defer waiting.close()
	beside, err := useOf(pid)
	if err != nil {
		return err
	}
	if n := len(waiting.conns); n > 0 && pid != 0 {
		fmt.Printf("%d idle connections: %.1f kB of memory each\n", n,
			float64(beside.memory-before.memory)/float64(n)/1000)
	}
	got := send(ctx, callers, rate, duration)
	after, err := useOf(pid)
	if err != nil {
		return err
	}
	fmt.Println(got)
	if pid != 0 {
		fmt.Printf("processor time of the daemon: %.2f ms a request; memory %.0f MB, then %.0f MB\n",
			float64((after.processor-beside.processor).Microseconds())/1000/float64(max(1, got.sent())),
			float64(beside.memory)/1e6, float64(after.memory)/1e6)
	}
	if got.wrong+got.lost > 0 {
		return fmt.Errorf("%d answers are wrong and %d are lost: %s", got.wrong, got.lost,
			strings.Join(got.problems, "; "))
	}
	return nil
}
