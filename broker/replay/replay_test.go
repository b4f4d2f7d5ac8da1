package replay_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/airlock-mcp/airlock/broker/replay"
)

func open(t *testing.T, dir string, opts *replay.Options) *replay.Store {
	t.Helper()
	s, err := replay.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func head() replay.Head {
	return replay.Head{RunID: "run_1", Language: "python", Code: "print('a secret of the code')", CodeHash: "sha256:c",
		Image: "python@sha256:i", Snapshot: "sha256:s"}
}

func exchange(n int, name, arguments string) replay.Exchange {
	return replay.Exchange{Number: n, ServerID: "files", Name: name, Arguments: json.RawMessage(arguments),
		Answer: json.RawMessage(fmt.Sprintf(`{"ok":true,"raw":%d}`, n))}
}

// record writes a recording of four calls.
func record(t *testing.T, s *replay.Store) {
	t.Helper()
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []replay.Exchange{ // in the order of their answers
		exchange(2, "read", `{"path":"/b"}`), exchange(1, "read", `{"path":"/a","n":9007199254740993}`),
		exchange(3, "poll", `{}`), exchange(4, "poll", `{}`),
	} {
		if err := r.Answered(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(replay.Output{OutputDigest: "sha256:out", Envelope: json.RawMessage(`{"run_id":"run_1"}`),
		Stdout: "printed\n", Stderr: "warned\n"}); err != nil {
		t.Fatal(err)
	}
}

func TestRecordAndLoad(t *testing.T) {
	dir := t.TempDir()
	record(t, open(t, dir, nil))
	recording, err := open(t, dir, nil).Load("run_1")
	if err != nil {
		t.Fatal(err)
	}
	if recording.Head != head() || recording.OutputDigest != "sha256:out" ||
		string(recording.Envelope) != `{"run_id":"run_1"}` || recording.Stdout != "printed\n" ||
		recording.Stderr != "warned\n" || len(recording.Exchanges) != 4 || recording.Exchanges[0].Number != 1 {
		t.Errorf("got %+v", recording)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.draft")); len(left) != 0 {
		t.Errorf("drafts left: %q", left)
	}
}

// Recordings take over what others have ended with: none gets into another.
func TestRecordingsAfterOneAnother(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	var ended *replay.Recorder
	for n := range 3 {
		h := head()
		h.RunID = fmt.Sprintf("run_%d", n)
		r, err := s.Create(h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Answered(exchange(1, "read", fmt.Sprintf(`{"path":"/%d"}`, n))); err != nil {
			t.Fatal(err)
		}
		if ended != nil {
			if err := ended.Answered(exchange(2, "read", `{"path":"/late"}`)); err == nil {
				t.Error("an answer after the end was recorded")
			}
		}
		if err := r.Close(replay.Output{Stdout: h.RunID}); err != nil {
			t.Fatal(err)
		}
		ended = r
	}
	for n := range 3 {
		got, err := s.Load(fmt.Sprintf("run_%d", n))
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"path":"/%d"}`, n)
		if len(got.Exchanges) != 1 || string(got.Exchanges[0].Arguments) != want || got.Stdout != got.RunID {
			t.Errorf("recording %d: got %+v, want one exchange with %s", n, got, want)
		}
	}
}

func BenchmarkRecording(b *testing.B) {
	s, err := replay.Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		h := head()
		h.RunID = fmt.Sprintf("run_%d", n)
		r, err := s.Create(h, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Close(replay.Output{Stdout: "printed"}); err != nil {
			b.Fatal(err)
		}
	}
}

func TestNothingIsReadableAtRest(t *testing.T) {
	dir := t.TempDir()
	record(t, open(t, dir, nil))
	files, _ := filepath.Glob(filepath.Join(dir, "*.age"))
	if len(files) != 1 {
		t.Fatalf("got %q, want one recording", files)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// Words that no random bytes happen to have.
	for _, word := range []string{"a secret of the code", "9007199254740993", `"path"`, "printed"} {
		if bytes.Contains(data, []byte(word)) {
			t.Errorf("%q is in the clear", word)
		}
	}
	for _, path := range []string{files[0], filepath.Join(dir, "keys", "replay.key")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", path, info.Mode(), err)
		}
	}
}

func TestPlayer(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	record(t, s)
	recording, err := s.Load("run_1")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		calls [][2]string // name and arguments
		want  []string    // the answers' numbers, or a divergence
		end   string      // how the whole replay diverged; empty: it did not
	}{
		{"the same calls", [][2]string{{"read", `{"path":"/a","n":9007199254740993}`}, {"read", `{"path":"/b"}`},
			{"poll", `{}`}, {"poll", ``}}, []string{"1", "2", "3", "4"}, ""},
		{"at once, in another order, members too",
			[][2]string{{"poll", `{}`}, {"read", `{"path":"/b"}`}, {"read", `{"n":9007199254740993,"path":"/a"}`}},
			[]string{"3", "2", "1"}, "call 4 was not made: the recorded run called files/poll"},
		{"no call at all", nil, nil, "call 1 was not made: the recorded run called files/read"},
		{"another tool", [][2]string{{"read", `{"path":"/b"}`}, {"write", `{}`}},
			[]string{"2", "call 2 is files/write, where the recorded run called files/read"}, "call 2 is files/write"},
		{"other arguments", [][2]string{{"read", `{"path":"/c"}`}},
			[]string{"call 1 is files/read with other arguments"}, "call 1 is files/read"},
		{"a number that differs beyond a double", [][2]string{{"read", `{"path":"/a","n":9007199254740992}`}},
			[]string{"with other arguments"}, "call 1 is"},
		{"one call too many", [][2]string{{"poll", `{}`}, {"poll", `{}`}, {"read", `{"path":"/b"}`},
			{"read", `{"path":"/a","n":9007199254740993}`}, {"poll", `{}`}},
			[]string{"3", "4", "2", "1", "made no more calls"}, "call 5"},
		{"nothing is answered after a divergence", [][2]string{{"write", `{}`}, {"poll", `{}`}},
			[]string{"call 1", "call 1"}, "call 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := recording.Player()
			for i, call := range test.calls {
				answer, d := p.Call("files", call[0], json.RawMessage(call[1]))
				got := string(answer)
				if d != nil {
					got = d.Error()
				}
				if want := test.want[i]; !strings.Contains(got, want) {
					t.Errorf("call %d: got %s, want %s", i+1, got, want)
				}
			}
			end := ""
			if d := p.Diverged(); d != nil {
				end = d.Error()
			}
			if !strings.HasPrefix(end, test.end) || (test.end == "") != (end == "") {
				t.Errorf("at its end: got %q, want %q", end, test.end)
			}
		})
	}
}

func TestRecordingsExpire(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	opts := &replay.Options{Keep: time.Hour, Now: func() time.Time { return now }}
	s := open(t, dir, opts)
	record(t, s)
	now = now.Add(2 * time.Hour)
	if _, err := s.Load("run_1"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("two hours later: got %v, want ErrNotFound", err)
	}
	open(t, dir, opts)
	if files, _ := filepath.Glob(filepath.Join(dir, "*.age")); len(files) != 0 {
		t.Errorf("files left: %q", files)
	}
}

func TestLoadRefuses(t *testing.T) {
	tests := []struct {
		name   string
		run    string
		damage func(t *testing.T, dir, path string)
		want   string
	}{
		{"a run that was not recorded", "run_2", func(*testing.T, string, string) {}, "no recording"},
		{"a name that is a path", "run_/../../etc/passwd", func(*testing.T, string, string) {}, "not the ID of a run"},
		{"a recording that was cut off", "run_1", func(t *testing.T, _, path string) {
			if err := os.Truncate(path, 300); err != nil {
				t.Fatal(err)
			}
		}, "loading"},
		{"a recording that was changed", "run_1", func(t *testing.T, _, path string) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-20] ^= 1
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "incomplete or damaged"},
		{"another run's recording", "run_3", func(t *testing.T, dir, path string) {
			if err := os.Rename(path, filepath.Join(dir, "run_3.replay.age")); err != nil {
				t.Fatal(err)
			}
		}, `recording of "run_1"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir, nil)
			record(t, s)
			test.damage(t, dir, filepath.Join(dir, "run_1.replay.age"))
			if _, err := s.Load(test.run); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestOneThatCannotBeFinishedLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	r, err := open(t, dir, nil).Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Answered(exchange(1, "read", `{"path":`)); err == nil {
		t.Error("half a value was recorded")
	}
	if err := r.Close(replay.Output{OutputDigest: "sha256:out", Envelope: json.RawMessage(`{"run_id":"run_1"}`),
		Stdout: "printed\n", Stderr: "warned\n"}); err == nil {
		t.Error("a recording with a gap was finished")
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "run_*")); len(files) != 0 {
		t.Errorf("files left: %q", files)
	}
}

func TestRunWithoutCalls(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(replay.Output{OutputDigest: "sha256:out", Envelope: json.RawMessage(`{"run_id":"run_1"}`),
		Stdout: "printed\n", Stderr: "warned\n"}); err != nil {
		t.Fatal(err)
	}
	if recording, err := s.Load("run_1"); err != nil || recording.OutputDigest != "sha256:out" ||
		len(recording.Exchanges) != 0 {
		t.Errorf("got %+v, %v, want a recording without exchanges", recording, err)
	}
}

func TestManyAnswersAtOnce(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			if err := r.Answered(exchange(i+1, "read", `{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := r.Close(replay.Output{OutputDigest: "sha256:o"}); err != nil {
		t.Fatal(err)
	}
	if recording, err := s.Load("run_1"); err != nil || len(recording.Exchanges) != 50 {
		t.Errorf("got %v, %v, want 50 exchanges", recording, err)
	}
}

func TestRecordingsAreCompressed(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Answered(exchange(1, "read", `{"text":"`+strings.Repeat("the same ", 20_000)+`"}`)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(replay.Output{OutputDigest: "sha256:out"}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "run_1.replay.age"))
	if err != nil || info.Size() > 10_000 {
		t.Errorf("got %d bytes, %v, want 180 kB to take less than 10", info.Size(), err)
	}
	if recording, err := s.Load("run_1"); err != nil || len(recording.Exchanges) != 1 {
		t.Errorf("got %+v, %v", recording, err)
	}
}

func TestToolsAreKeptOnceForAllRecordings(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	asked := 0
	tools := func() ([]byte, error) { asked++; return []byte("the tools"), nil }
	for i := range 3 {
		h := head()
		h.RunID, h.Snapshot = fmt.Sprintf("run_%d", i), "sha256:"+strings.Repeat("ab", 32)
		r, err := s.Create(h, tools)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(replay.Output{}); err != nil {
			t.Fatal(err)
		}
		if recording, err := s.Load(h.RunID); err != nil || string(recording.Tools) != "the tools" {
			t.Errorf("got %+v, %v, want the tools", recording, err)
		}
	}
	if asked != 1 {
		t.Errorf("the tools were asked for %d times, want once", asked)
	}
}

// With any number of runs, the recordings stay within their limit, and the newest one is
// kept.
func TestRecordingsAreBounded(t *testing.T) {
	dir := t.TempDir()
	const most = 40_000
	s := open(t, dir, &replay.Options{Size: most})
	noise := make([]byte, 1500)
	var newest string
	for i := range 60 {
		h := head()
		h.RunID, h.Snapshot = fmt.Sprintf("run_%d", i), "sha256:"+strings.Repeat("cd", 32)
		newest = h.RunID
		r, err := s.Create(h, func() ([]byte, error) { return []byte("tools"), nil })
		if err != nil {
			t.Fatal(err)
		}
		rand.Read(noise)
		if err := r.Answered(exchange(1, "read", fmt.Sprintf(`{"noise":"%x"}`, noise))); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(replay.Output{}); err != nil {
			t.Fatal(err)
		}
	}
	total, count := int64(0), 0
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			total, count = total+info.Size(), count+1
		}
	}
	if total > most+most/16 || count < 5 || count > 50 {
		t.Errorf("got %d bytes in %d files, want at most about %d", total, count, most)
	}
	if recording, err := s.Load(newest); err != nil || string(recording.Tools) != "tools" {
		t.Errorf("the newest: got %+v, %v, want it with its tools", recording, err)
	}
	if _, err := s.Load("run_0"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("the oldest: got %v, want ErrNotFound", err)
	}
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	big := make([]byte, most)
	rand.Read(big)
	if err := r.Answered(exchange(1, "read", fmt.Sprintf(`{"noise":"%x"}`, big))); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(replay.Output{}); err == nil {
		t.Error("one that is larger than all may be: got nil, want an error")
	}
}

// A recording of the version before there was compression.
func TestRecordingsOfOlderVersions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, nil)
	text, err := os.ReadFile(filepath.Join(dir, "keys", "replay.key"))
	if err != nil {
		t.Fatal(err)
	}
	identity, err := age.ParseX25519Identity(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	var sealed bytes.Buffer
	out, err := age.Encrypt(&sealed, identity.Recipient())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(out, `{"head":{"run_id":"run_1","language":"python","code":"1","code_hash":"","image":"","snapshot":""}}
{"end":{"output_digest":"sha256:out","exchanges":0}}
`)
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "run_1.replay.age"), sealed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if recording, err := s.Load("run_1"); err != nil || recording.OutputDigest != "sha256:out" ||
		recording.Tools != nil {
		t.Errorf("got %+v, %v, want it as it was", recording, err)
	}
}

// Recorded answers are returned byte for byte, in any formatting.
func TestExchangesComeBackAsTheyWere(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	odd := replay.Exchange{Number: 1, ServerID: "a\"\\\n\u2028<b>", Name: "größe\x00",
		Arguments: json.RawMessage("{\n \"a\" : \"<&>\\u003c\" }"),
		Answer:    json.RawMessage(`{"ok":true,"raw":{"a":"<&>","b":1.0e+2}}`)}
	none := replay.Exchange{Number: 2, ServerID: "s", Name: "n", Answer: json.RawMessage(`{}`)}
	for _, e := range []replay.Exchange{odd, none} {
		if err := r.Answered(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(replay.Output{}); err != nil {
		t.Fatal(err)
	}
	recording, err := s.Load("run_1")
	if err != nil {
		t.Fatal(err)
	}
	none.Arguments = json.RawMessage("null")
	for i, want := range []replay.Exchange{odd, none} {
		if got := recording.Exchanges[i]; !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// An exchange that is no JSON leaves no recording that could be taken for a whole one.
func TestAnExchangeThatIsNoJSONEndsTheRecording(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	broken := exchange(1, "read", `{}},"exchange":{`)
	if err := r.Answered(broken); err == nil {
		t.Error("it was recorded")
	}
	if err := r.Close(replay.Output{}); err == nil {
		t.Error("the recording was finished")
	}
	if _, err := s.Load("run_1"); !errors.Is(err, replay.ErrNotFound) {
		t.Errorf("got %v, want no recording", err)
	}
}
