package kernel_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/kernel"
	"github.com/airlock-mcp/airlock/verify"
	"github.com/airlock-mcp/airlock/verify/verifytest"
)

// K-006 to K-009, T9, T42: the real engine judges.
func TestCodeIsJudgedByTheEngine(t *testing.T) {
	engines := verifytest.Start(t)
	w := newWorld(t, func(o *kernel.Options) { o.Verifier = engines })
	judge := func(code, language string) kernel.Safety {
		t.Helper()
		got, err := w.Judge(t.Context(), local, code, language)
		if err != nil {
			t.Fatalf("%s: %v", code, err)
		}
		return got
	}
	safe := judge("x = 1 # größe", "python")
	if raw, _ := json.Marshal(safe); safe.RulesChecked < 20 ||
		string(raw)[:len(`{"safe":true,"violations":[],"warnings":[],"language":"python","code_length":13,`+
			`"rules_checked":`)] !=
			`{"safe":true,"violations":[],"warnings":[],"language":"python","code_length":13,"rules_checked":` {
		t.Errorf("%s", raw)
	}
	got := judge("DROP TABLE users;", "sql")
	want := kernel.Violation{Rule: "drop_table", Severity: "critical",
		Message:     "Destructive SQL: DROP operation detected",
		Alternative: "Consider using soft delete or archiving instead of DROP", Line: 1}
	if got.Safe || len(got.Violations) != 1 || got.Violations[0] != want || got.BlockedReason != want.Message ||
		got.Alternative != want.Alternative {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct{ code, language string }{
		{"import os\nos.system('ls')", "python"}, {"eval(x)", "javascript"}, {"rm -rf /", "bash"},
		{"eval('1')", "typescript"}, {"rm x", "sh"},
	} {
		if got := judge(c.code, c.language); got.Safe || got.BlockedReason == "" || got.Alternative == "" ||
			got.Violations[0].Rule == "" {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	for _, c := range []struct{ code, language string }{
		{"# eval(x)\ns = 'os.system(1)'", "python"}, {"// eval(x)\nconst s = 'eval(1)'", "javascript"},
		{"SELECT 'DROP TABLE users' AS a", "sql"},
	} {
		if got := judge(c.code, c.language); !got.Safe || len(got.Violations) != 0 {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	for _, language := range []string{"brainfuck", "ruby", ""} {
		if got := judge("x", language); got.Safe || got.Violations[0].Rule != "unsupported_language" ||
			!strings.Contains(got.BlockedReason, "not supported") {
			t.Errorf("%q: %+v", language, got)
		}
	}
}

// verdict is a verifier with a fixed answer.
type verdict struct {
	verify.Verdict
	err error
}

func (v verdict) Verify(context.Context, verify.Request) (verify.Verdict, error) {
	return v.Verdict, v.err
}

func TestNoVerdictIsNotSafe(t *testing.T) {
	for name, v := range map[string]verdict{
		"inconclusive": {Verdict: verify.Verdict{Status: verify.Inconclusive, Reason: "not analysed",
			Body: json.RawMessage(`{}`)}},
		"unknown":   {Verdict: verify.Verdict{Status: verify.Unknown, Body: json.RawMessage(`{}`)}},
		"no status": {Verdict: verify.Verdict{Body: json.RawMessage(`{"verified":true}`)}},
		"contradicts": {Verdict: verify.Verdict{Status: verify.Verified,
			Body: json.RawMessage(`{"vulnerabilities":[{"rule":"x"}]}`)}},
		"no body": {Verdict: verify.Verdict{Status: verify.Verified}},
		"failed":  {err: errors.New("the queue is full")},
	} {
		w := newWorld(t, func(o *kernel.Options) { o.Verifier = v })
		if got, err := w.Judge(t.Context(), local, "x", "python"); got.Safe || err == nil && got.BlockedReason == "" &&
			got.Alternative == "" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	w := newWorld(t)
	if _, err := w.Judge(t.Context(), local, "x", "python"); !errors.Is(err, kernel.ErrNoVerifier) {
		t.Error(err)
	}
	w = newWorld(t, func(o *kernel.Options) { o.Verifier = verdict{} })
	if _, err := w.Judge(t.Context(), local, strings.Repeat("x", kernel.MaxCode+1), "python"); refusal(t, err) == "" {
		t.Error("judged")
	}
}
