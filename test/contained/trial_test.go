package contained

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/app/cli"
	"github.com/airlock-mcp/airlock/app/contained"
)

// permitAll is the rule of a trial.
const permitAll = `
@id("trial") permit (principal == ContainedServer::"probe", action == Action::"connect", resource);
`

// Issue 30: on trial, a server reaches every host and reads the files of the trial; its acts are recorded, and it
// changes nothing that its configuration does not let it change.
func TestTrial(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "hello "+r.Host)
	}))
	defer site.Close()
	files := directory(t, owner)
	notes, note := filepath.Join(files, "notes"), filepath.Join(files, "notes", "note")
	if err := os.MkdirAll(notes, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, note, "a note")
	write(t, filepath.Join(files, "unread"), "not read")
	for _, path := range []string{notes, note} {
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	l := openOnTrial(t, "true", permitAll, site.Listener.Addr().String(),
		&contained.Trial{Server: "probe", Files: []string{files}})
	got := l.call(fmt.Sprintf(`
import os, urllib.request
print(urllib.request.urlopen("http://unlisted.example.com/", timeout=60).read().decode())
print(open(%[1]q + "/notes/note").read(), os.path.exists(%[1]q + "/unread"))
for act in [lambda: open(%[1]q + "/notes/made", "w"), lambda: open(%[1]q + "/notes/note", "a")]:
    try: act(); print("changed")
    except OSError as e: print("refused")
`, files))
	if want := "hello unlisted.example.com\na note True\nrefused\nrefused"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	state := l.state()
	if len(state.Reached) != 1 || state.Reached[0].Host != "unlisted.example.com:80" {
		t.Errorf("got %+v, want the host", state.Reached)
	}
	for _, want := range []contained.Touched{
		{Path: note, Write: true}, {Path: filepath.Join(notes, "made"), Write: true},
	} {
		if !slices.Contains(state.Files, want) {
			t.Errorf("got %+v, without %+v", state.Files, want)
		}
	}
	if slices.ContainsFunc(state.Files, func(f contained.Touched) bool { return filepath.Base(f.Path) == "unread" }) {
		t.Errorf("got %+v, with a file that was not opened", state.Files)
	}
	if records := l.records(); len(records) == 0 {
		t.Error("the connection has no record")
	}
}

// Issue 30: `servers learn` asks first, runs the calls of its input, ends with it, and proposes the directories of the
// files that the server opened. It changes nothing.
func TestLearn(t *testing.T) {
	files := directory(t, owner)
	for _, name := range []string{"read", "written"} {
		path := filepath.Join(files, name)
		if err := errors.Join(os.Mkdir(path, 0o755), os.Chown(path, owner, owner)); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(path, "note"), "a note")
	}
	file := configure(t, "true", "")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	arguments, err := json.Marshal(map[string]string{"code": fmt.Sprintf(`
print(open(%[1]q + "/read/note").read())
try: open(%[1]q + "/written/new", "w")
except OSError: print("refused")
`, files)})
	if err != nil {
		t.Fatal(err)
	}
	learn := func(args ...string) (code int, said, proposed string) {
		var out, errs bytes.Buffer
		code = cli.Main(t.Context(), append([]string{"servers", "learn", "probe", "--config", file, "--files", files},
			args...), strings.NewReader("run "+string(arguments)+"\n"), &out, &errs)
		return code, errs.String(), out.String()
	}
	if code, said, proposed := learn(); code != 2 || proposed != "" ||
		!strings.Contains(said, "nobody can be asked whether to start the trial") {
		t.Errorf("without a person: got %d, %s%s", code, said, proposed)
	}
	code, said, proposed := learn("--yes")
	for _, want := range []string{"it may connect to every host on the internet, and read " + files, "a note",
		"refused"} {
		if code != 0 || !strings.Contains(said, want) {
			t.Errorf("got %d, no %q: %s", code, want, said)
		}
	}
	for _, want := range []string{filepath.Join(files, "read"), filepath.Join(files, "written"), "writable: true"} {
		if !strings.Contains(proposed, want) {
			t.Errorf("the proposal has no %q: %s", want, proposed)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the configuration has changed: %s, %v", after, err)
	}
	if _, err := os.Stat(filepath.Join(files, "written", "new")); err == nil {
		t.Error("the server has changed a file")
	}
}
