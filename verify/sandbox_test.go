package verify_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/images"
	"github.com/airlock-mcp/airlock/internal/store"
	"github.com/airlock-mcp/airlock/internal/testenv"
	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/runsc"
	"github.com/airlock-mcp/airlock/verify"
)

// timeout is longer than an engine needs for any claim, even on a slow and busy machine.
// Only a failure takes so long.
const timeout = 2 * time.Minute

// real returns a service with real engines in real sandboxes.
func real(t *testing.T, o verify.Options) *verify.Service {
	t.Helper()
	env := testenv.Sandbox(t)
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	driver, err := runsc.New(&runsc.Options{Path: env.Runsc, Logger: logger, Unenforced: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(driver.Close)
	image, err := images.Open(env.Home, images.Verifier)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { image.Close() })
	sandboxes, err := runner.New(driver, &runner.Options{
		Logger: logger, StateDir: store.Run(t.TempDir()), Pool: 1, PoolMemory: 1 << 30, MaxSandboxes: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := sandboxes.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	o.Logger = logger
	service, err := verify.New(sandboxes, runner.Image{
		Name: image.Name, Digest: image.Digest, RootFS: image.RootFS, Layout: image.Layout, Args: image.Args,
		Env: image.Env,
	}, &o)
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

// arguments makes a request of an engine.
func asked(engine string, arguments map[string]any) verify.Request {
	text, err := json.Marshal(arguments)
	if err != nil {
		panic(err) // texts and numbers
	}
	return verify.Request{Engine: engine, Arguments: text}
}

// Every engine of the list decides in a sandbox, and what is hostile or never
// ends is over within its time, is not VERIFIED, and hurts no other request.
func TestEnginesInSandboxes(t *testing.T) {
	// Claims that are decided get enough time on any machine; others need not.
	patient := real(t, verify.Options{Timeout: timeout, QueueTimeout: timeout})
	brief := real(t, verify.Options{Timeout: 6 * time.Second, QueueTimeout: timeout})
	patient.Warm()
	decided := map[verify.Status]bool{verify.Error: true, verify.Inconclusive: true, verify.Blocked: true,
		verify.Unknown: true}
	for _, test := range []struct {
		name    string
		request verify.Request
		want    verify.Status // "" for any that is not a proof
	}{
		{"a true claim", asked("math", map[string]any{"expression": "2+2=4"}), verify.Verified},
		{"a false claim", asked("math", map[string]any{"expression": "2+2=5"}), verify.Error},
		{"a derivative", asked("math_expression", map[string]any{"expression": "x^2", "claimed_result": "2x",
			"operation": "derivative"}), verify.Verified},
		{"a logic program", asked("logic", map[string]any{"query": "(AND (GT x 5) (LT y 10))"}), verify.Verified},
		{"a query", asked("sql", map[string]any{"query": "SELECT a FROM t", "schema_ddl": "CREATE TABLE t (a INT)"}),
			verify.Verified},
		{"a determinant", asked("math", map[string]any{"expression": "det([[1,2],[3,4]]) = -2"}), verify.Verified},
		{"an argument in English", asked("logic_statement", map[string]any{
			"premises": []string{"Max is loved by Sam"}, "conclusion": "Sam loves Max"}), verify.Verified},
		{"a condition that MySQL converts", asked("sql", map[string]any{"query": "SELECT a FROM t WHERE 'b' = 0",
			"schema_ddl": "CREATE TABLE t (a INT)", "dialect": "mysql"}), verify.Blocked},
		{"code", asked("code", map[string]any{"code": "print(1)", "language": "python"}), verify.Verified},
		{"dangerous code", asked("code", map[string]any{"code": "f = eval; f('1')", "language": "python"}),
			verify.Blocked},
		{"a fact", asked("fact", map[string]any{"claim": "Paris has 2 million inhabitants.",
			"context": "Paris has 2 million inhabitants."}), verify.Verified},
		{"no engine", asked("mathematics", map[string]any{}), verify.Unknown},
		{"no such argument", asked("math", map[string]any{"claim": "1=1"}), verify.Unknown},
		{"a tower of powers", asked("math", map[string]any{"expression": "9**9**9**9 = 1"}), ""},
		{"an integral that never ends", asked("math",
			map[string]any{"expression": "integral(exp(-x^7)*sin(x^5+x)/(1+x^11+cos(x)), x) = 0"}), ""},
		{"code in an expression", asked("math", map[string]any{"expression": "__import__('os').system('id') = 0"}), ""},
		{"an equation in integers", asked("logic",
			map[string]any{"query": "(AND (EQ (PLUS (MULT x x x) (MULT y y y) (MULT z z z)) 114) (GT x 1000))"}), ""},
		{"10,000 parentheses",
			asked("sql", map[string]any{"query": "SELECT " + strings.Repeat("(", 10_000) + "1" +
				strings.Repeat(")", 10_000), "schema_ddl": "CREATE TABLE t (a INT)"}), ""},
		{"1 MB of SQL", asked("sql", map[string]any{"query": "SELECT " + strings.Repeat("a,", 500_000) + "a FROM t",
			"schema_ddl": "CREATE TABLE t (a INT)"}), ""},
		{"a picture that unpacks to 10 GB", asked(
			"image", map[string]any{"image_base64": bomb(100_000, 100_000), "claim": "the width is 1"}),
			verify.Blocked},
		{"a picture that is none", asked("image", map[string]any{"image_base64": "!!", "claim": "the width is 1"}),
			verify.Inconclusive},
		{"another script", asked("fact", map[string]any{"claim": "地球は平らです", "context": "地球は丸いです"}), ""},
		{"a true claim after all that", asked("math", map[string]any{"expression": "2+2=4"}), verify.Verified},
	} {
		t.Run(test.name, func(t *testing.T) {
			service := patient
			if test.want == "" {
				service = brief
			}
			verdict, err := service.Verify(t.Context(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %s", verdict.Status, verdict.Reason)
			if test.want != "" && verdict.Status != test.want || test.want == "" && !decided[verdict.Status] {
				t.Errorf("got %s: %s, want %s", verdict.Status, verdict.Body, test.want)
			}
			// Issue 26: the message about bad base64 contains what to write.
			if test.name == "a picture that is none" && !strings.Contains(verdict.Reason, "not base64") {
				t.Errorf("got %q, want it to name base64", verdict.Reason)
			}
		})
	}
}

// bomb returns a PNG of zeros with the given size in its header, in base64.
func bomb(width, height uint32) string {
	var out bytes.Buffer
	out.WriteString("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, data []byte) {
		binary.Write(&out, binary.BigEndian, uint32(len(data)))
		body := append([]byte(kind), data...)
		out.Write(body)
		binary.Write(&out, binary.BigEndian, crc32.ChecksumIEEE(body))
	}
	header := binary.BigEndian.AppendUint32(nil, width)
	header = binary.BigEndian.AppendUint32(header, height)
	chunk("IHDR", append(header, 8, 2, 0, 0, 0))
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	w.Write(make([]byte, 4<<20))
	w.Close()
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return base64.StdEncoding.EncodeToString(out.Bytes())
}

// The engine reports the end of its time limit; a request can set a shorter one.
func TestARequestsOwnTimeLimit(t *testing.T) {
	service := real(t, verify.Options{QueueTimeout: timeout})
	r := asked("logic", map[string]any{"query": "(AND (EQ (PLUS (MULT x x x) (MULT y y y) (MULT z z z)) 114) (GT x " +
		"1000))"})
	r.Timeout = 3 * time.Second
	verdict, err := service.Verify(t.Context(), r)
	if err != nil || verdict.Status != verify.Inconclusive {
		t.Errorf("got %+v, %v, want INCONCLUSIVE", verdict, err)
	}
}

// Each of several concurrent requests has a separate sandbox.
func TestRequestsAtOnce(t *testing.T) {
	service := real(t, verify.Options{Timeout: timeout, QueueTimeout: timeout})
	service.Warm()
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			claim, want := "2+2=4", verify.Verified
			if i%2 == 1 {
				claim, want = "2+2=5", verify.Error
			}
			verdict, err := service.Verify(t.Context(), asked("math", map[string]any{"expression": claim}))
			if err != nil || verdict.Status != want {
				t.Errorf("%s: got %+v, %v, want %s", claim, verdict, err, want)
			}
		})
	}
	wait.Wait()
}
