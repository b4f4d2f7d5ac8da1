package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// While the disk makes an intent durable, an outcome is written and answered; an intent is not answered
// before the disk is done, and neither is one that comes meanwhile.
func TestAnOutcomeDoesNotWaitForTheDisk(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	if err := l.Append(t.Context(), intent("call_1")); err != nil {
		t.Fatal(err)
	}
	release := l.HoldDisk()
	answered := make(chan error, 2)
	announce := func(id string) { go func() { answered <- l.Append(t.Context(), intent(id)) }() }
	announce("call_2")
	for !bytes.Contains(readFile(t, filepath.Join(dir, "audit-000000000001.jsonl")), []byte("call_2")) {
	}
	announce("call_3")
	if err := l.Note(t.Context(), outcome("call_1")); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answered:
		t.Fatalf("an intent was answered while the disk was held up: %v", err)
	default:
	}
	release()
	for range 2 {
		if err := <-answered; err != nil {
			t.Error(err)
		}
	}
	verified(t, dir)
}

// If the disk fails, all waiting callers get an error, including those whose records were written
// meanwhile, and nothing is recorded any more.
func TestADiskThatFails(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, nil)
	release := l.HoldDisk()
	const callers = 8
	answered := make(chan error, callers)
	for range callers {
		go func() { answered <- l.Append(t.Context(), intent("call_1")) }()
	}
	for !bytes.Contains(readFile(t, filepath.Join(dir, "audit-000000000001.jsonl")), []byte("call_1")) {
	}
	l.BreakDisk()
	release()
	for range callers {
		if err := <-answered; err == nil {
			t.Error("an intent was confirmed that is not durable")
		}
	}
	if err := l.Append(t.Context(), intent("call_2")); err == nil {
		t.Error("a call was recorded after the disk had failed")
	}
	if err := l.Note(t.Context(), outcome("call_2")); err == nil {
		t.Error("an outcome was recorded after the disk had failed")
	}
	head, err := os.ReadFile(filepath.Join(dir, "head"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err == nil {
		t.Error("the log was closed as if nothing had happened")
	}
	if after := readFile(t, filepath.Join(dir, "head")); !bytes.Equal(after, head) {
		t.Errorf("what may not be durable was signed:\n%s", after)
	}
}
