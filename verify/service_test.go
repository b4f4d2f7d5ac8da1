package verify_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"context"
	"errors"

	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runnertest"
	"github.com/airlock-mcp/airlock/verify"
)

// opened returns a service over a driver whose sandboxes are goroutines.
func opened(t *testing.T, driver *runnertest.Fake, opts runner.Options, o verify.Options) *verify.Service {
	t.Helper()
	opts.Logger, opts.StateDir, opts.Pool = slog.New(slog.NewTextHandler(t.Output(), nil)), store.Run(t.TempDir()), -1
	sandboxes, err := runner.New(driver, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandboxes.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if now, _ := driver.Alive(); now != 0 {
			t.Errorf("%d sandboxes are left", now)
		}
	})
	o.Logger = opts.Logger
	service, err := verify.New(sandboxes, runner.Image{Name: "verify"}, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := service.Close(); err != nil {
			t.Error(err)
		}
	})
	return service
}

// guest answers verify/start and sends the frames that frames returns.
func guest(frames func(request string) []string) runnertest.Guest {
	return func(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
		if !g.Ready() {
			return runner.Exit{Code: 1}
		}
		conn, err := g.Dial()
		if err != nil {
			return runner.Exit{Code: 2}
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		asked, err := exchange(conn, `{"jsonrpc":"2.0","id":1,"method":"verify/start","params":{}}`)
		if err != nil {
			return runner.Exit{Code: 3}
		}
		var started struct {
			Result struct {
				Request string
				Seconds float64
			}
		}
		if err := json.Unmarshal(asked, &started); err != nil {
			return runner.Exit{Code: 4}
		}
		for _, frame := range frames(started.Result.Request) {
			if _, err := exchange(conn, frame); err != nil {
				return runner.Exit{Code: 5}
			}
		}
		return runner.Exit{}
	}
}

func exchange(conn net.Conn, frame string) ([]byte, error) {
	if _, err := io.WriteString(conn, frame+"\n"); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(conn)
	var answer json.RawMessage
	err := decoder.Decode(&answer)
	return answer, err
}

// finish is the frame that delivers a verdict.
func finish(verdict string) string {
	text, _ := json.Marshal(map[string]string{"verdict": verdict}) // always has a form
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"verify/finish","params":%s}`, text)
}

func math(claim string) verify.Request {
	return verify.Request{Engine: "math", Arguments: json.RawMessage(fmt.Sprintf(`{"expression":%q}`, claim))}
}

func TestTheGuestGetsTheRequestAndItsVerdictComesBack(t *testing.T) {
	var got string
	driver := &runnertest.Fake{Guest: guest(func(request string) []string {
		got = request
		return []string{finish(
			`{"status":"VERIFIED","engine":"math","message":"the claim holds","evidence":{"method":"m"},"extra":[1]}`)}
	})}
	verdict, err := opened(t, driver, runner.Options{}, verify.Options{}).Verify(t.Context(), math("1 < 2"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"engine":"math","arguments":{"expression":"1 < 2"}}`; got != want {
		t.Errorf("the guest got %s, want %s", got, want)
	}
	want := `{"engine":"math","evidence":{"method":"m"},"extra":[1],"is_valid":true,"message":"the claim holds",` +
		`"status":"VERIFIED","verified":true}`
	if verdict.Status != verify.Verified || verdict.Reason != "the claim holds" || verdict.Engine != "math" ||
		string(verdict.Body) != want {
		t.Errorf("got %+v with %s, want %s", verdict, verdict.Body, want)
	}
}

// An invalid verdict from the sandbox is INCONCLUSIVE.
func TestAGuestCanLieOnlyAboutItsVerdict(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 300) + "1" + strings.Repeat("}", 300)
	for name, test := range map[string]struct {
		frame string
		want  verify.Status
		body  string // part of it
	}{
		"an unknown status": {finish(`{"status":"PROVEN","message":"x"}`), verify.Inconclusive,
			"not a verdict"},
		"no status": {finish(`{"message":"x","verified":true}`), verify.Inconclusive, "not a verdict"},
		"another type of status": {finish(`{"status":["VERIFIED"],"message":"x"}`), verify.Inconclusive,
			"not a verdict"},
		"two statuses": {finish(`{"status":"ERROR","status":"VERIFIED","message":"x"}`),
			verify.Inconclusive, "not a verdict"},
		"a name in other case": {finish(`{"status":"ERROR","Status":"VERIFIED","message":"x"}`), verify.Error,
			`"status":"ERROR"`},
		"verified, but refuted": {finish(`{"status":"ERROR","verified":true,"is_valid":true,"message":"x"}`),
			verify.Error, `"verified":false`},
		"no message": {finish(`{"status":"VERIFIED"}`), verify.Inconclusive, "not a verdict"},
		"no object":  {finish(`["VERIFIED"]`), verify.Inconclusive, "not a verdict"},
		"null":       {finish(`null`), verify.Inconclusive, "not a verdict"},
		"text behind it": {finish(`{"status":"VERIFIED","message":"x"} {}`), verify.Inconclusive,
			"not a verdict"},
		"too deep": {finish(`{"status":"VERIFIED","message":"x","evidence":` + deep + `}`),
			verify.Inconclusive, "not a verdict"},
		"too large": {finish(`{"status":"VERIFIED","message":"x","a":"` +
			strings.Repeat("y", 5<<20) + `"}`), verify.Inconclusive, "larger than"},
		"half a character": {finish(`{"status":"VERIFIED","message":"\ud800"}`), verify.Inconclusive,
			"not a verdict"},
		"evidence of another type": {finish(`{"status":"VERIFIED","message":"x","evidence":"none"}`),
			verify.Verified, `"evidence":{}`},
		"a huge message": {finish(`{"status":"BLOCKED","message":"` + strings.Repeat("z", 1<<20) + `"}`),
			verify.Blocked, `"status":"BLOCKED"`},
		"another engine's huge name": {finish(`{"status":"ERROR","engine":"` + strings.Repeat("e", 1<<20) +
			`","message":"x"}`), verify.Error, `"engine":"math"`},
		"another method": {`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{}}`,
			verify.Inconclusive, "not a verdict"},
		"a second start": {`{"jsonrpc":"2.0","id":2,"method":"verify/start","params":{}}`,
			verify.Inconclusive, "not a verdict"},
		"no JSON": {"VERIFIED", verify.Inconclusive, "not a verdict"},
		"nothing": {"", verify.Inconclusive, "not a verdict"},
		"a verdict that is no text": {`{"jsonrpc":"2.0","id":2,"method":"verify/finish",` +
			`"params":{"verdict":{"status":"VERIFIED"}}}`, verify.Inconclusive, "not a verdict"},
		"an end without a verdict": {finish(``), verify.Inconclusive, "not a verdict"},
		"a verdict of another protocol": {`{"jsonrpc":"2.0","id":2,"method":"run/finish","params":{"ok":true}}`,
			verify.Inconclusive, "not a verdict"},
	} {
		t.Run(name, func(t *testing.T) {
			driver := &runnertest.Fake{Guest: guest(func(string) []string { return []string{test.frame} })}
			verdict, err := opened(t, driver, runner.Options{}, verify.Options{}).Verify(t.Context(), math("1=1"))
			if err != nil {
				t.Fatal(err)
			}
			if verdict.Status != test.want || !strings.Contains(string(verdict.Body), test.body) ||
				!json.Valid(verdict.Body) || len(verdict.Reason) > 2<<10 {
				t.Errorf("got %s %.300s, want %s with %s", verdict.Status, verdict.Body, test.want, test.body)
			}
		})
	}
}

func TestTheFirstVerdictCounts(t *testing.T) {
	driver := &runnertest.Fake{Guest: guest(func(string) []string {
		return []string{finish(`{"status":"ERROR","message":"refuted"}`),
			finish(`{"status":"VERIFIED","message":"holds"}`)}
	})}
	verdict, err := opened(t, driver, runner.Options{}, verify.Options{}).Verify(t.Context(), math("1=2"))
	if err != nil || verdict.Status != verify.Error {
		t.Errorf("got %+v, %v, want the first, ERROR", verdict, err)
	}
}

func TestWhatEndsAnEngineIsNoProof(t *testing.T) {
	ended := func(exit runner.Exit) runnertest.Guest {
		return func(_ context.Context, g *runnertest.GuestIO) runner.Exit {
			g.Ready()
			return exit
		}
	}
	for name, test := range map[string]struct {
		guest runnertest.Guest
		want  string
	}{
		"its memory limit": {ended(runner.Exit{Signal: 9, Reason: runner.ReasonMemory}),
			"the engine needed more memory than it may use"},
		"its process limit": {ended(runner.Exit{Code: 1, Reason: runner.ReasonProcesses}),
			"the engine needed more threads than it may use"},
		"its disk limit": {ended(runner.Exit{Code: 1, Reason: runner.ReasonDisk}),
			"the engine needed more disk than it may use"},
		"a crash":           {ended(runner.Exit{Signal: 11}), "the engine ended without a verdict"},
		"a quiet end":       {ended(runner.Exit{}), "the engine ended without a verdict"},
		"a flood of output": {flood, "the engine wrote more output than it may"},
		"a time that is up": {hang, "not decided within 300ms"},
	} {
		t.Run(name, func(t *testing.T) {
			var opts verify.Options
			if name == "a time that is up" {
				opts.Timeout = 300 * time.Millisecond
			}
			service := opened(t, &runnertest.Fake{Guest: test.guest}, runner.Options{}, opts)
			verdict, err := service.Verify(t.Context(), math("1=1"))
			if err != nil || verdict.Status != verify.Inconclusive || verdict.Reason != test.want {
				t.Errorf("got %+v, %v, want INCONCLUSIVE: %s", verdict, err, test.want)
			}
		})
	}
}

func flood(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
	g.Ready()
	for ctx.Err() == nil {
		if _, err := g.Stdout.Write(make([]byte, 1<<16)); err != nil {
			break
		}
	}
	return runner.Exit{Signal: 9}
}

func hang(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
	g.Ready()
	<-ctx.Done()
	return runner.Exit{Signal: 9}
}

func TestRequestsThatNoEngineNeedSee(t *testing.T) {
	service := opened(t, &runnertest.Fake{StartErr: errors.New("no sandbox is to be started")}, runner.Options{},
		verify.Options{})
	for name, test := range map[string]struct {
		request verify.Request
		want    verify.Status
	}{
		"no engine":           {verify.Request{}, verify.Unknown},
		"an engine's path":    {verify.Request{Engine: "../math"}, verify.Unknown},
		"a huge engine":       {verify.Request{Engine: strings.Repeat("a", 100)}, verify.Unknown},
		"a list of arguments": {verify.Request{Engine: "math", Arguments: json.RawMessage(`[1]`)}, verify.Unknown},
		"no JSON":             {verify.Request{Engine: "math", Arguments: json.RawMessage(`{"a":1`)}, verify.Unknown},
		"two values": {verify.Request{Engine: "math", Arguments: json.RawMessage(`{},"engine":"code"`)},
			verify.Unknown},
		"spaces":   {verify.Request{Engine: "math", Arguments: json.RawMessage("  \n")}, verify.Unknown},
		"no UTF-8": {verify.Request{Engine: "math", Arguments: json.RawMessage("{\"a\":\"\xff\"}")}, verify.Unknown},
		"too deep": {verify.Request{Engine: "math",
			Arguments: json.RawMessage(`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`)},
			verify.Blocked},
		"too large": {verify.Request{Engine: "math",
			Arguments: json.RawMessage(`{"a":"` + strings.Repeat("x", verify.MaxArguments) + `"}`)}, verify.Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			verdict, err := service.Verify(t.Context(), test.request)
			if err != nil || verdict.Status != test.want || verdict.Reason == "" || !json.Valid(verdict.Body) {
				t.Errorf("got %+v, %v, want %s with a reason", verdict, err, test.want)
			}
		})
	}
}

func TestErrorsSayThatThereIsNoVerdict(t *testing.T) {
	t.Run("a full queue is ErrBusy", func(t *testing.T) {
		entered := make(chan struct{})
		service := opened(t, &runnertest.Fake{Guest: func(ctx context.Context, g *runnertest.GuestIO) runner.Exit {
			close(entered)
			return hang(ctx, g)
		}}, runner.Options{MaxSandboxes: 1, MaxWaiting: -1}, verify.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error, 1)
		go func() {
			_, err := service.Verify(ctx, math("1=1"))
			first <- err
		}()
		<-entered
		if _, err := service.Verify(ctx, math("1=1")); !errors.Is(err, verify.ErrBusy) {
			t.Errorf("got %v, want %v", err, verify.ErrBusy)
		}
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled request: got %v, want %v", err, context.Canceled)
		}
	})
	t.Run("a wait that lasts too long is ErrBusy", func(t *testing.T) {
		service := opened(t, &runnertest.Fake{Guest: hang}, runner.Options{MaxSandboxes: 1},
			verify.Options{QueueTimeout: 50 * time.Millisecond})
		errs := make(chan error, 2)
		ctx, cancel := context.WithCancel(t.Context())
		for range 2 {
			go func() {
				_, err := service.Verify(ctx, math("1=1"))
				errs <- err
			}()
		}
		if err := <-errs; !errors.Is(err, verify.ErrBusy) {
			t.Errorf("got %v, want %v", err, verify.ErrBusy)
		}
		cancel()
		<-errs
	})
	t.Run("Close ends what is under way", func(t *testing.T) {
		service := opened(t, &runnertest.Fake{Guest: hang}, runner.Options{}, verify.Options{})
		under := make(chan error, 1)
		go func() {
			_, err := service.Verify(t.Context(), math("1=1"))
			under <- err
		}()
		for range 2 {
			if err := service.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-under; !errors.Is(err, verify.ErrClosed) {
			t.Errorf("got %v, want %v", err, verify.ErrClosed)
		}
	})
	t.Run("a sandbox that does not start", func(t *testing.T) {
		broken := errors.New("no kernel")
		service := opened(t, &runnertest.Fake{StartErr: broken}, runner.Options{}, verify.Options{})
		if _, err := service.Verify(t.Context(), math("1=1")); !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
	})
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	for name, opts := range map[string]*verify.Options{
		"no options":       nil,
		"no logger":        {},
		"a negative limit": {Logger: logger, Timeout: -1},
		"too little space": {Logger: logger, Memory: 1},
	} {
		if _, err := verify.New(&runner.Runner{}, runner.Image{}, opts); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// Requests are counted for the caller, so an error reports whether an engine was asked.
func TestErrorsSayWhetherAnEngineWasAsked(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := opened(t, &runnertest.Fake{Guest: guest(func(string) []string { cancel(); return nil })}, runner.Options{},
		verify.Options{})
	if _, err := asked.Verify(ctx, math("1=1")); !errors.Is(err, context.Canceled) ||
		!errors.Is(err, verify.ErrInterrupted) {
		t.Errorf("cancelled while the engine works: got %v, want %v and %v", err, context.Canceled,
			verify.ErrInterrupted)
	}
	if _, err := asked.Verify(ctx, math("1=1")); !errors.Is(err, context.Canceled) ||
		errors.Is(err, verify.ErrInterrupted) {
		t.Errorf("cancelled before: got %v, want %v alone", err, context.Canceled)
	}
}
