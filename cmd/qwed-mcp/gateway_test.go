package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const done = "\n\nExecution completed successfully."

// The programs of the document, and what they come to.;
// T1, T14, T15.
func TestPrograms(t *testing.T) {
	h := newInstall(t).host(trusted, "OPENAI_API_KEY=sk-secret-of-the-host")
	for _, test := range []struct{ name, code, want string }{
		{"both streams", "import sys\nprint('out')\nprint('err', file=sys.stderr)",
			"STDOUT:\nout\n\nSTDERR:\nerr" + done},
		{"nothing printed", "x = 1", "Execution completed successfully."},
		{"a result is no answer", "result = {'a': 1}\nprint('{\"b\": 2}')", "STDOUT:\n{\"b\": 2}" + done},
		{"exit status", "import sys\nsys.exit(3)", "Execution failed with return code 3"},
		{"an exit with a text", "import sys\nsys.exit('no')", "STDERR:\nno\n\nExecution failed with return code 1"},
		{"the packages", "import qwed_new, qwed_legal, qwed_finance, qwed_ucp, qwed_sdk, qwed_mcp\nprint('there')",
			"STDOUT:\nthere" + done},
		{"as a script", "print(__name__)\nimport sys\nprint(repr(sys.stdin.read()))", "STDOUT:\n__main__\n''" + done},
		{"the environment", "import os\nprint(sorted(set(os.environ) - {'LC_CTYPE'}))",
			"STDOUT:\n['PATH', 'PYTHONPATH']" + done},
		{"exactly the limit", "print('x' * 1048575)", "STDOUT:\n" + strings.Repeat("x", 1048575) + done},
		{"one byte more", "print('x' * 1048576)\nprint('never')", "STDOUT:\n" + strings.Repeat("x", 1048576) +
			"\n\n[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]\n\nExecution failed with " +
			"return code -9"},
		{"a flood", "while True:\n    print('y' * 65535)",
			"STDOUT:\n" + strings.Repeat(strings.Repeat("y", 65535)+"\n", 16) +
				"\n\n[WARNING: OUTPUT TRUNCATED DUE TO 1MB SIZE CAP. PROCESS TERMINATED.]\n\n" +
				"Execution failed with return code -9"},
		{"the derivative", "from sympy import symbols, diff\nx = symbols('x')\nresult = diff(x**3, " +
			"x)\nprint(f'derivative of x^3 = {result}')\nassert str(result) == '3*x**2', 'Mismatch!'\n" +
			"print('VERIFIED')",
			"STDOUT:\nderivative of x^3 = 3*x**2\nVERIFIED" + done},
		{"CodeGuard", "from qwed_new.guards.code_guard import CodeGuard\n\nguard = CodeGuard()\nresult = " +
			"guard.verify_safety(\"import os; os.system('rm -rf /')\")\nprint(f'Verified: " +
			"{result[\"verified\"]}')\nif result.get('violations'):\n    for v in result['violations']:\n        " +
			"print(f'  - {v}')",
			"STDOUT:\nVerified: False\n  - Dangerous pattern: os.system" + done},
		{"DeadlineGuard", "from qwed_legal import DeadlineGuard\n\nguard = DeadlineGuard(country='US')\nresult = " +
			"guard.verify('2026-01-15', '30 business days', '2026-02-14')\nprint(f'Verified: " +
			"{result.verified}')\nprint(f'Computed deadline: {result.computed_deadline}')",
			"STDOUT:\nVerified: False\nComputed deadline: 2026-03-02" + done},
		{"ProvenanceGuard", "import hashlib\nfrom qwed_legal import ProvenanceGuard\n\ncontent = 'This AI-generated " +
			"memo reviews the indemnification terms.'\ncontent_hash = " +
			"hashlib.sha256(content.encode()).hexdigest()\n\nguard = " +
			"ProvenanceGuard(require_disclosure=True)\nresult = guard.verify_provenance(content, {\n    " +
			"'content_hash': content_hash,\n    'model_id': 'claude-4.5-sonnet',\n    'generation_timestamp': " +
			"'2026-03-24T12:00:00+00:00',\n})\nprint(f'Verified: {result[\"verified\"]}')",
			"STDOUT:\nVerified: True" + done},
	} {
		if got := h.run(test.code); got != test.want {
			t.Errorf("%s: got %.400q, want %.400q", test.name, got, test.want)
		}
	}
	for name, test := range map[string]struct {
		code string
		want []string
	}{
		"an exception": {"print('before')\n1/0",
			[]string{"STDOUT:\nbefore\n\nSTDERR:\nTraceback (most recent call last):",
				"ZeroDivisionError: division by zero\n\nExecution failed with return code 1"}},
		"a missing package": {"import no_such_package",
			[]string{"STDERR:\n", "ModuleNotFoundError: No module named 'no_such_package'", "return code 1"}},
		"a syntax error": {"def f(:", []string{"STDERR:\n", "SyntaxError", "return code 1"}},
		"a Markdown fence is no Python": {"```python\nprint(1)\n```",
			[]string{"STDERR:\n", "SyntaxError", "return code 1"}},
		"the financial example, whose claim is wrong": {"from decimal import Decimal, ROUND_HALF_UP\n\nP = " +
			"Decimal('10000')\nr = Decimal('0.075')\nn = Decimal('4')\nt = Decimal('5')\n\nA = P * (1 + r/n) ** " +
			"(n*t)\nA = A.quantize(Decimal('0.01'), rounding=ROUND_HALF_UP)\nprint(f'Future value: ${A}')\nassert A " +
			"== Decimal('14490.97'), f'Expected 14490.97, got {A}'",
			[]string{"STDOUT:\nFuture value: $14499.48\n\nSTDERR:\n", "AssertionError: Expected 14490.97, got 14499.48",
				"return code 1"}},
		"SQLGuard": {"from qwed_new.guards.sql_guard import SQLGuard\n\nguard = SQLGuard()\nresult = " +
			"guard.verify_query(\"SELECT * FROM users WHERE id = '1' OR '1'='1'\")\nprint(f'Verified: " +
			"{result[\"verified\"]}')\nprint(f'Message: {result.get(\"message\", \"\")}')",
			[]string{"STDOUT:\nVerified: False\nMessage: ", "Execution completed successfully."}},
		"more memory than there is": {"x = [bytearray(1 << 20) for _ in range(4096)]",
			[]string{"memory", "Execution failed with return code "}},
	} {
		got := h.run(test.code)
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %.600q, want %q in it", name, got, want)
			}
		}
	}
	if log := h.log(); strings.Contains(log, "sk-secret") {
		t.Error("the host's secret is in the audit log")
	}
}

// the face as a host sees it.
func TestTheFace(t *testing.T) {
	h := newInstall(t).host(trusted)
	list, err := h.session.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 2 || list.Tools[0].Name+" "+
		list.Tools[1].Name != "execute_python_code verification_status" {
		t.Fatalf("got %+v and %v", list, err)
	}
	h.run("import qwed_new\nqwed_new.left_behind = 1") // a fresh process each time
	if got := h.run("import qwed_new\nprint(hasattr(qwed_new, 'left_behind'))"); got != "STDOUT:\nFalse"+done {
		t.Errorf("got %q, want nothing of the call before", got)
	}
	for tool, code := range map[string]string{"execute_python_code": "QWED-MCP-RISK-005",
		"verify_math": "QWED-MCP-RISK-001"} {
		res, text := h.call(tool, map[string]any{"code": "print('side effect')\neval(input())"})
		decision, _ := res.StructuredContent.(map[string]any)
		id, _ := decision["verification_id"].(string)
		if !res.IsError || decision["error_code"] != code || !strings.HasSuffix(text, "(verification_id="+id+")") ||
			len(id) != 64 {
			t.Errorf("%s: got %q and %v, want %s", tool, text, decision, code)
		}
		if log := h.log(); strings.Count(log, id) != 1 || strings.Contains(text, "side effect") {
			t.Errorf("%s: got %d records of the decision, want 1", tool, strings.Count(log, id))
		}
	}
	// Two concurrent calls: the second program starts when the first has ended.
	const stamp = "import time\nprint(time.time())\ntime.sleep(0.3)\nprint(time.time())"
	var spans [2][2]float64
	var calls sync.WaitGroup
	for n := range spans {
		calls.Go(func() {
			lines := strings.Fields(strings.TrimPrefix(h.run(stamp), "STDOUT:\n"))
			for k := range 2 {
				spans[n][k], _ = strconv.ParseFloat(lines[k], 64)
			}
		})
	}
	calls.Wait()
	if a, b := spans[0], spans[1]; a[0] == 0 || b[0] == 0 || a[0] < b[1] && b[0] < a[1] {
		t.Errorf("got programs at %v and %v, want one after the other", a, b)
	}
}

// a program that a request waits for has 30 seconds.
func TestAProgramHasThirtySeconds(t *testing.T) {
	h := newInstall(t).host(trusted)
	res, text := h.call(
		"execute_python_code", map[string]any{"code": "import time\nprint('so far')\ntime.sleep(60)\nprint('never')"})
	if text != "Execution timed out after 30.0 seconds." || !res.IsError ||
		res.Content[1].(*mcp.TextContent).Text != "STDOUT:\nso far" {
		t.Errorf("got %q and %v", text, res.Content)
	}
	if log := h.log(); !strings.Contains(log, `"limit":"script.timeout"`) {
		t.Error("the log does not say which limit ended the run")
	}
}

// jobs, as a host sees them.
func TestJobs(t *testing.T) {
	h := newInstall(t).host(trusted, "QWED_MCP_BACKGROUND_TIMEOUT=60")
	job := h.dispatch("from qwed_legal import LegalGuard\n\nguard = LegalGuard()\n# ... long-running multi-guard " +
		"verification\nprint('All checks passed')")
	for range 2 {
		if got := h.await(job,
			""); got != "Status: success\n\nResult:\nSTDOUT:\nAll checks passed\n\nExecution completed successfully." {
			t.Errorf("got %q", got)
		}
	}
	if got := h.await(h.dispatch("1/0"), ""); !strings.HasPrefix(
		got, "Status: failed\n\nResult:\nSTDERR:\nTraceback") ||
		!strings.HasSuffix(got, "\n\nExecution failed with return code 1") {
		t.Errorf("got %q", got)
	}
	var jobs []string
	for range 6 {
		jobs = append(jobs, h.dispatch("import time\ntime.sleep(600)"))
	}
	for _, job := range jobs[:5] {
		if got := h.await(job, "Status: running..."); got != "Status: running..." {
			t.Fatalf("got %q, want five jobs running", got)
		}
	}
	if got := h.status(jobs[5]); got != "Status: queued..." {
		t.Errorf("got %q, want the sixth job queued", got)
	}
	const timedOut = "Status: timed_out\n\nResult:\nBackground verification timed out after 60 seconds. Process " +
		"terminated to prevent resource exhaustion."
	if got := h.await(jobs[0], ""); got != timedOut {
		t.Errorf("got %q, want %q", got, timedOut)
	}
	if got := h.await(jobs[5], "Status: running..."); got != "Status: running..." {
		t.Errorf("got %q, want the sixth job to run in its turn", got)
	}
	if got := h.status("3f8a1b2c-4d5e-4f7a-8b9c-0d1e2f3a4b5c"); got != "Error: Job ID "+
		"'3f8a1b2c-4d5e-4f7a-8b9c-0d1e2f3a4b5c' not found or expired." {
		t.Errorf("got %q", got)
	}
}

// the next server reports the jobs of a killed server as lost, with their last state, which is the one that
// was shown (issue 26).
func TestAKilledServerLosesItsJobs(t *testing.T) {
	i := newInstall(t)
	h := i.host(trusted)
	job := h.dispatch("import time\ntime.sleep(60)")
	if got := h.await(job, "Status: running..."); got != "Status: running..." {
		t.Fatalf("got %q", got)
	}
	if err := h.process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.session.Close() // it is gone
	again := i.host(trusted)
	res, text := again.call("verification_status", map[string]any{"job_id": job})
	if text != "Error: Job ID '"+job+"' not found or expired." || len(res.Content) != 2 ||
		!strings.Contains(res.Content[1].(*mcp.TextContent).Text, "has ended while the job was running") {
		t.Errorf("got %q and %d contents, want the reason in a second one", text, len(res.Content))
	}
}

// without the administrator's switch nothing runs, and unsafe code is still unsafe code.
func TestWithoutTheSwitchNothingRuns(t *testing.T) {
	h := newInstall(t).host("QWED_MCP_TRUSTED_CODE_EXECUTION=1")
	for code, want := range map[string]string{"print(1)": "QWED-MCP-RISK-006", "eval('1')": "QWED-MCP-RISK-005"} {
		res, text := h.call("execute_python_code", map[string]any{"code": code})
		if got := res.StructuredContent.(map[string]any)["error_code"]; got != want {
			t.Errorf("%s: got %v (%s), want %s", code, got, text, want)
		}
	}
	if strings.Contains(h.log(), `"kind":"run_start"`) {
		t.Error("a program has run")
	}
}

// a manifest that is not trusted, or none, ends the server before anything is served.
func TestTheSkillManifestIsCheckedAtStart(t *testing.T) {
	i := newInstall(t)
	const good = `{"name": "my-skill", "version": "1.0.0", "source_url": "https://github.com/org/skill", "registry": "github.com",
		"digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "download_count": 150}`
	path := filepath.Join(t.TempDir(), "manifest.json")
	for manifest, want := range map[string]string{
		strings.Replace(good, `"registry": "github.com"`, `"registry": "clawdhub.com"`,
			1): "Untrusted registry: clawdhub.com",
		`[]`: "must be a JSON object", `{`: "not JSON", `{"name": "a", "name": "b"}`: "not JSON", "": "not JSON",
		`"` + strings.Repeat("x", 2<<20) + `"`: "more than 1048576 bytes",
	} {
		if err := os.WriteFile(path, []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
		if said := i.refused(trusted, "QWED_SKILL_MANIFEST="+path); !strings.Contains(said, want) {
			t.Errorf("%.60s: got %q, want %q", manifest, said, want)
		}
	}
	if said := i.refused(trusted, "QWED_SKILL_MANIFEST="+path+".absent"); !strings.Contains(said, "no such file") {
		t.Errorf("got %q for a file that is not there", said)
	}
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := i.host(trusted, "QWED_SKILL_MANIFEST="+path).run("print(1)"); got != "STDOUT:\n1"+done {
		t.Errorf("got %q with a manifest that is trusted", got)
	}
}

// The manifest of a run of the gateway: model and host as announced, engine, tool, image.
func TestTheBillOfARun(t *testing.T) {
	i := newInstall(t)
	h := i.host(trusted)
	res, _ := h.call("execute_python_code", map[string]any{"code": "print(1)"})
	run := fmt.Sprint(res.Meta["io.github.airlock-mcp/run_id"])
	if err := h.session.Close(); err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Components map[string][]struct{ Name string }
		Run        struct {
			Host     string
			Images   []string
			Versions map[string]string `json:"engine_versions"`
		}
	}
	if err := json.Unmarshal([]byte(i.airlock("bom", run)), &manifest); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(
		manifest.Components); got != "map[mcp_tools:[{execute_python_code}] models:[{test-model}] "+
		"verification_engines:[{qwed_new.engines.code}]]" {
		t.Errorf("got %s", got)
	}
	if manifest.Run.Host != "test-host 1.2" || len(manifest.Run.Images) != 1 ||
		!strings.HasPrefix(manifest.Run.Images[0], "verify@sha256:") {
		t.Errorf("got %+v", manifest.Run)
	}
	document := i.airlock("bom", run, "--format", "cyclonedx")
	for _, want := range []string{`"specVersion": "1.6"`, `"machine-learning-model"`, `"sympy"`, `"z3-solver"`, run} {
		if !strings.Contains(document, want) {
			t.Errorf("got %.2000s, want %s in it", document, want)
		}
	}
	if tree := i.airlock("audit", "show", run); !strings.Contains(tree, "test-model") ||
		!strings.Contains(tree, "verification ") {
		t.Errorf("got %s, want the model and the decision", tree)
	}
	if shown := i.airlock("runs", "show", run, "--code"); shown != "print(1)\n" {
		t.Errorf("got %q, want the program", shown)
	}
}

// Issue 26: scripts start in copies of one sandbox with loaded packages, and draw different random numbers.
func TestScriptsDoNotShareRandomNumbers(t *testing.T) {
	h := newInstall(t).host("QWED_MCP_TRUSTED_CODE_EXECUTION=true")
	seen, numbers := map[string]bool{}, regexp.MustCompile(`0\.\d+`)
	for range 4 {
		text := h.run("import random\nimport sympy\nfrom sympy.core.random import rng\nprint(random.random(), " +
			"rng.random())")
		for _, number := range numbers.FindAllString(text, -1) {
			if seen[number] {
				t.Errorf("%s was drawn twice", number)
			}
			seen[number] = true
		}
	}
	if len(seen) != 8 {
		t.Errorf("got %v, want 8 numbers", seen)
	}
}
