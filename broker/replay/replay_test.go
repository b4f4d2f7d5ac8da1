package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

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

// Issue 27: the console shows the envelope of a recording, which had \u003c in place of <.
func TestAnEnvelopeKeepsItsBytes(t *testing.T) {
	s := open(t, t.TempDir(), nil)
	r, err := s.Create(head(), nil)
	if err != nil {
		t.Fatal(err)
	}
	const envelope = `{"traceback":"File \"<agent_code>\" & more"}`
	if err := r.Close(replay.Output{Envelope: json.RawMessage(envelope)}); err != nil {
		t.Fatal(err)
	}
	if recording, err := s.Load("run_1"); err != nil || string(recording.Envelope) != envelope {
		t.Errorf("got %s, %v, want %s", recording.Envelope, err, envelope)
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

// An exchange that is not JSON leaves no recording that could be taken for a whole one.
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
