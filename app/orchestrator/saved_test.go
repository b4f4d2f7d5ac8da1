package orchestrator

import (
	"reflect"
	"testing"

	"github.com/airlock-mcp/airlock/app/suspended"
	"github.com/airlock-mcp/airlock/internal/caller"
)

// issue 29: another process reads a suspended run as it was stored.
func TestASuspendedRunIsReadAsItWasStored(t *testing.T) {
	store, err := suspended.Open(t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	request := Request{ID: "run_1", Code: []byte("result = 1"), Caller: caller.Caller{Principal: "ann"}}
	want := &savedRun{
		Request: request, Image: "python@sha256:1", Number: 2,
		Open: []savedCall{{ID: []byte("1"), Params: []byte("{}")}},
	}
	if err := store.Put("run_1", want, want.about()); err != nil {
		t.Fatal(err)
	}
	got := &savedRun{}
	if err := store.Get("run_1", got); err != nil || !reflect.DeepEqual(got.about(), want.about()) ||
		!reflect.DeepEqual(got.Open, want.Open) || string(got.Request.Code) != "result = 1" {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}
