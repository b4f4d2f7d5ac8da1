package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/audit"
	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/broker/replay"
)

func TestRecordAndReplay(t *testing.T) {
	f := newFixture(t, nil)
	n := 0
	f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		n++
		return json.RawMessage(fmt.Sprintf(`{"content":[{"type":"text","text":"answer %d"}]}`, n)), nil
	}
	store, err := replay.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	recorder, err := store.Create(replay.Head{RunID: "run_1", Language: "python"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	calls := []broker.Call{
		call("read_file", `{"path":"a"}`), call("read_file", `{"path":"b"}`),
		call("read_file", `{"path":"a"}`), call("delete_file", `{}`), call("nope", `{}`),
	}
	s := f.openWith(&broker.RunOptions{Recording: recorder})
	var recorded []broker.Answer
	for _, c := range calls {
		recorded = append(recorded, s.Call(t.Context(), c))
	}
	s.Close()
	if err := recorder.Close(replay.Output{OutputDigest: "sha256:o"}); err != nil {
		t.Fatal(err)
	}
	recording, err := store.Load("run_1")
	if err != nil {
		t.Fatal(err)
	}

	player, before := recording.Player(), len(f.upstream.calls)
	again := open(t, f.Broker, broker.Run{ID: "run_2"}, f.snapshot, &broker.RunOptions{Player: player})
	for i, c := range calls {
		if got := again.Call(t.Context(), c); !reflect.DeepEqual(got, recorded[i]) {
			t.Errorf("call %d: got %+v, want %+v", i, got, recorded[i])
		}
	}
	if d := player.Diverged(); d != nil {
		t.Errorf("got %v, want the very same calls", d)
	}
	answer := again.Call(t.Context(), call("read_file", `{"path":"c"}`))
	if answer.OK || !strings.Contains(answer.Error.Message, "diverged") || player.Diverged() == nil {
		t.Errorf("another call: got %+v, want a divergence", answer)
	}
	again.Close()
	if len(f.upstream.calls) != before {
		t.Error("the replay called a server")
	}
	for _, r := range f.records(t) {
		if r.RunID == "run_2" && (r.Kind != audit.KindOutcome || r.Detail == "") {
			t.Errorf("got a record of kind %s with %q, want outcomes that name the recording", r.Kind, r.Detail)
		}
	}
}

// fullRecording is a recording to which writes fail.
type fullRecording struct{ abandoned error }

func (r *fullRecording) Abandon(reason error) { r.abandoned = reason }

func (*fullRecording) Answered(replay.Exchange) error { return errors.New("no space left on device") }

func TestRecordingThatFailsDoesNotStopTheRun(t *testing.T) {
	full := &fullRecording{}
	s := newFixture(t, nil).openWith(&broker.RunOptions{Recording: full})
	if answer := s.Call(t.Context(), call("read_file", `{"path":"a"}`)); !answer.OK {
		t.Errorf("got %+v, want ok", answer.Error)
	}
	if full.abandoned == nil {
		t.Error("the recording without the call was not abandoned")
	}
}
