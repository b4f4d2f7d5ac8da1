package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/internal/canon"
)

const secretValue = "the-value-that-nobody-may-read"

// withArguments writes a run of calls whose arguments are kept.
func withArguments(t *testing.T, dir, keys string, o audit.ArgumentsOptions, calls int, now func() time.Time) {
	t.Helper()
	l := open(t, dir, &audit.Options{Keys: keys, KeepArguments: &o, Now: now})
	for i := range calls {
		r := intent(fmt.Sprint("call_", i))
		r.Values = json.RawMessage(fmt.Sprintf(`{"path":"%s-%d"}`, secretValue, i))
		r.ArgumentsHash = l.Hash(r.Values)
		end := outcome(r.CallID)
		end.ArgumentsHash = r.ArgumentsHash
		if err := errors.Join(l.Append(t.Context(), r), l.Note(t.Context(), end)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func shown(t *testing.T, dir, keys string) (tree *audit.RunTree, kept, misfits int) {
	t.Helper()
	tree, err := audit.ShowFrom(dir, 1, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	if misfits, err = audit.ShowArguments(dir, keys, tree); err != nil {
		t.Fatal(err)
	}
	for i, c := range tree.Calls {
		if len(c.Arguments) == 0 {
			continue
		}
		kept++
		if want := fmt.Sprintf(`{"path":"%s-%d"}`, secretValue, i); string(c.Arguments) != want {
			t.Errorf("got %s, want %s", c.Arguments, want)
		}
	}
	return tree, kept, misfits
}

func TestArgumentsAreForWhoHoldsTheKey(t *testing.T) {
	root := t.TempDir()
	dir, keys := filepath.Join(root, "audit"), filepath.Join(root, "keys")
	week := audit.ArgumentsOptions{Keep: 7 * 24 * time.Hour, Size: 1 << 20}
	withArguments(t, dir, keys, week, 5, nil)
	tree, kept, misfits := shown(t, dir, keys)
	if kept != 5 || misfits != 0 {
		t.Errorf("got %d kept, %d that do not fit, want 5 and 0", kept, misfits)
	}
	var text bytes.Buffer
	if err := audit.WriteTree(&text, tree); err != nil || !strings.Contains(text.String(), secretValue+"-3") {
		t.Errorf("got %s, %v, want the arguments", text.String(), err)
	}
	// Without the key nothing of it is anywhere.
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() && bytes.Contains(readFile(t, path), []byte(secretValue)) {
			t.Errorf("%s has a value in the clear", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	remove(t, filepath.Join(keys, "audit-arguments.key"))
	if _, err := audit.ShowArguments(dir, keys, tree); !errors.Is(err, audit.ErrNoArgumentsKey) {
		t.Errorf("without the key: got %v, want ErrNoArgumentsKey", err)
	}
	withArguments(t, dir, keys, week, 1, nil) // writing needs the public half only
	verifyWith(t, dir, keys)
}

func verifyWith(t *testing.T, dir, keys string) {
	t.Helper()
	report, err := audit.Verify(dir, &audit.VerifyOptions{Keys: keys})
	if err != nil || !report.OK() {
		t.Errorf("got %+v, %v, want it to be sound", report, err)
	}
}

func TestArgumentsThatWereChangedAreNotShown(t *testing.T) {
	root := t.TempDir()
	dir, keys := filepath.Join(root, "audit"), filepath.Join(root, "keys")
	withArguments(t, dir, keys, audit.ArgumentsOptions{Keep: time.Hour, Size: 1 << 20}, 3, nil)
	paths, err := filepath.Glob(filepath.Join(dir, "arguments", "*"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("got %q, %v, want one file", paths, err)
	}
	whole := readFile(t, paths[0])
	for at := 0; at < len(whole); at += 13 {
		changed := bytes.Clone(whole)
		changed[at] ^= 1
		write(t, paths[0], string(changed))
		if _, kept, _ := shown(t, dir, keys); kept > 3 {
			t.Errorf("byte %d: got %d", at, kept)
		}
		write(t, paths[0], string(whole[:at]))
		shown(t, dir, keys)
	}
}

func TestArgumentsExpireAndAreBounded(t *testing.T) {
	root := t.TempDir()
	dir, keys := filepath.Join(root, "audit"), filepath.Join(root, "keys")
	const most = 16 << 10
	withArguments(t, dir, keys, audit.ArgumentsOptions{Keep: time.Hour, Size: most}, 400, nil)
	total := int64(0)
	paths, err := filepath.Glob(filepath.Join(dir, "arguments", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		total += int64(len(readFile(t, path)))
	}
	if _, kept, _ := shown(t, dir, keys); total > most || kept == 0 || kept == 400 {
		t.Errorf("got %d bytes in %d files and %d calls, want some, in at most %d", total, len(paths), kept, most)
	}
	later := func() time.Time { return time.Now().Add(2 * time.Hour) }
	withArguments(t, dir, keys, audit.ArgumentsOptions{Keep: time.Hour, Size: most}, 0, later)
	if _, kept, _ := shown(t, dir, keys); kept != 0 {
		t.Errorf("after they have expired: got %d", kept)
	}
}

// Issue 27: arguments with <, >, & or U+2028 were kept with escapes that they did not have, so that they did not
// fit their hash and were reported as damaged. Every character of Unicode is kept as it was, in values and in names,
// in whichever form the caller wrote it.
func TestArgumentsKeepEveryCharacter(t *testing.T) {
	const perCall = 4096
	var want []json.RawMessage
	for first := rune(0); first <= utf8.MaxRune; first += perCall {
		var text []rune
		for c := first; c < first+perCall; c++ {
			if utf8.ValidRune(c) {
				text = append(text, c)
			}
		}
		asIs, err := canon.Verbatim(map[string]any{"n": string(text), "<&" + string(text): 1})
		if err != nil {
			t.Fatal(err)
		}
		escaped, err := json.Marshal(string(text))
		if err != nil {
			t.Fatal(err)
		}
		ascii := strings.Builder{}
		for _, unit := range utf16.Encode(text) {
			fmt.Fprintf(&ascii, `\u%04x`, unit)
		}
		want = append(want, asIs, json.RawMessage(fmt.Sprintf(`{"a":%s,"b":1.50}`, escaped)),
			json.RawMessage(`{"a":"`+ascii.String()+`"}`))
	}
	root := t.TempDir()
	dir, keys := filepath.Join(root, "audit"), filepath.Join(root, "keys")
	l := open(t, dir, &audit.Options{Keys: keys, KeepArguments: &audit.ArgumentsOptions{Keep: time.Hour,
		Size: 1 << 30}})
	for i, values := range want {
		r := intent(fmt.Sprint("call_", i))
		r.Values, r.ArgumentsHash = values, l.Hash(values)
		end := outcome(r.CallID)
		end.ArgumentsHash = r.ArgumentsHash
		if err := errors.Join(l.Append(t.Context(), r), l.Note(t.Context(), end)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	tree, err := audit.ShowFrom(dir, 1, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	if misfits, err := audit.ShowArguments(dir, keys, tree); err != nil || misfits != 0 {
		t.Fatalf("got %d arguments that do not fit, %v, want none", misfits, err)
	}
	for i, c := range tree.Calls {
		if !bytes.Equal(c.Arguments, want[i]) {
			t.Errorf("call %d: got %.80q, want %.80q", i, c.Arguments, want[i])
		}
	}
}

// Arguments that an earlier version kept with the escapes of json.Marshal still fit their hash.
func TestArgumentsOfEarlierVersions(t *testing.T) {
	const was = `{"query":"a < b && c > d` + "\u2028" + `"}`
	root := t.TempDir()
	dir, keys := filepath.Join(root, "audit"), filepath.Join(root, "keys")
	l := open(t, dir, &audit.Options{Keys: keys, KeepArguments: &audit.ArgumentsOptions{Keep: time.Hour,
		Size: 1 << 20}})
	r := intent("call_0")
	r.Values, r.ArgumentsHash = json.RawMessage(`{"query":"a \u003c b \u0026\u0026 c \u003e d\u2028"}`),
		l.Hash([]byte(was))
	if err := errors.Join(l.Append(t.Context(), r), l.Close()); err != nil {
		t.Fatal(err)
	}
	tree, err := audit.ShowFrom(dir, 1, "run_1")
	if err != nil {
		t.Fatal(err)
	}
	if misfits, err := audit.ShowArguments(dir, keys, tree); err != nil || misfits != 0 ||
		string(tree.Calls[0].Arguments) != was {
		t.Errorf("got %s, %d that do not fit, %v, want %s", tree.Calls[0].Arguments, misfits, err, was)
	}
}
